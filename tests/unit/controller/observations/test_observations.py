"""What the controller learns from its own writes, and what forgets it."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from structlog.testing import capture_logs

from claimctl.controller.keys import ClaimKey, GroupKey, WorkloadKey
from claimctl.controller.observations.observations import (
    ABSENT_SECONDS,
    Observations,
)
from claimctl.kube.informer import Change
from claimctl.reservation.facts.decision import WriteList
from claimctl.reservation.facts.memory import Memory
from claimctl.reservation.facts.snapshot import Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    finished,
    group_ref,
    pod_ref,
    reservation,
    running,
    tomb,
)
from tests.support.hand_clock import HandClock
from tests.support.seen_ghosts import ages_of

RULES = Rules(kcm_cleans_mixed_lists=True, dead_reference_seconds=10)
CLEANED = WriteList("10", (deployment_ref(),))


def seen(age: float, rules: Rules = RULES) -> Snapshot:
    """A claim that lists a pod which is dead for so long, beside a hold."""
    on, memory = claim(pod_ref("dead"), deployment_ref()), Memory(dead_age={"uid-dead": age})
    return Snapshot(NOW, NAMESPACE, CLAIM, on, rules=rules, memory=memory)


@pytest.mark.parametrize(
    ("snapshot", "write", "learned"),
    [
        pytest.param(seen(10.0), CLEANED, True, id="KCM had its time"),
        pytest.param(seen(9.9), CLEANED, False, id="KCM had less"),
        pytest.param(
            seen(10.0), WriteList("10", (pod_ref("dead"),)), False, id="the pod's entry stays"
        ),
        pytest.param(seen(10.0), replace(CLEANED, fence=True), False, id="a fence"),
        pytest.param(
            seen(10.0, replace(RULES, kcm_cleans_mixed_lists=False)),
            CLEANED,
            False,
            id="KCM of this cluster is known not to do it",
        ),
    ],
)
def test_kcm_is_not_waited_for_again_once_it_left_a_dead_pod(
    snapshot: Snapshot, write: WriteList, learned: bool
) -> None:
    observations = Observations(HandClock())
    with capture_logs() as lines:
        observations.wrote(snapshot, write, claim().metadata)
    assert observations.kcm_left_dead_references is learned
    assert len(lines) == int(learned)


def test_a_cluster_that_is_looked_at_anew_gets_another_chance() -> None:
    observations = Observations(HandClock())
    observations.wrote(seen(10.0), CLEANED, claim().metadata)
    observations.cluster_changed()
    assert not observations.kcm_left_dead_references


def test_the_name_of_a_group_was_used_until_its_entry_left_a_list() -> None:
    clock = HandClock()
    observations = Observations(clock)
    observations.group_names.known()
    clock.time += 5
    old, new = claim(pod_ref("a"), group_ref()), claim(pod_ref("a"), version="11")
    observations.claim_changed(Change(RESOURCECLAIMS, NAMESPACE, CLAIM, old, new, relist=False))
    clock.time += 1
    assert observations.group_names.quiet(GroupKey(NAMESPACE, group_ref().name)) == 1.0
    assert observations.group_names.quiet(GroupKey(NAMESPACE, "a")) == 6.0


def test_a_deleted_reservation_is_forgotten_and_one_that_stays_is_not() -> None:
    observations, before = Observations(HandClock()), reservation()
    observations.reservations.wrote_status(before, ClaimReservationStatus())

    def changed(new: ClaimReservation | None) -> float:
        change = Change(CLAIMRESERVATIONS, NAMESPACE, "train-slice", before, new, relist=False)
        observations.reservation_changed(change)
        held = Held(before, WorkloadState(WorkloadPhase.ABSENT))
        return observations.reservations.with_memory(held).status_age

    assert changed(before) == 0
    assert changed(None) == inf


def test_a_list_of_all_pods_counts_for_claims_and_for_ghosts() -> None:
    clock = HandClock()
    observations, key = Observations(clock), ClaimKey(NAMESPACE, CLAIM)
    observations.pods_listed("", "5")
    held = claim(pod_ref("a"), version="7")
    observations.claim_changed(Change(RESOURCECLAIMS, NAMESPACE, CLAIM, None, held, relist=False))
    observations.ghosts.observe_list(key, held.status.reserved_for, (), "7")
    clock.time = 100
    observations.pods_listed("6", "9")
    assert ages_of(observations.ghosts.of(key)) == {"uid-a": 0}
    assert observations.claims.memory(held).blind_age == 0


def test_a_workload_that_was_not_found_is_gone_for_a_moment_or_until_it_changes() -> None:
    clock = HandClock()
    observations, key = Observations(clock), WorkloadKey("apps", "Deployment", NAMESPACE, "train")
    assert key not in observations.gone_workloads
    observations.gone_workloads[key] = None
    clock.time += ABSENT_SECONDS - 0.5
    assert key in observations.gone_workloads
    clock.time += 0.5
    assert key not in observations.gone_workloads
    observations.gone_workloads[key] = None
    observations.workload_changed(key)
    assert key not in observations.gone_workloads


@pytest.mark.parametrize(
    ("before", "after", "learned"),
    [
        ((), (pod_ref("a"),), True),
        ((), (pod_ref("b"),), False),
        ((), (tomb("a"),), False),
        ((pod_ref("a"),), (pod_ref("a"), pod_ref("b")), False),
    ],
    ids=["a finished pod", "a running pod", "a tombstone", "a finished pod was listed before"],
)
def test_a_finished_pod_that_is_listed_again_shows_that_it_needs_a_tombstone(
    before: tuple[Reference, ...], after: tuple[Reference, ...], learned: bool
) -> None:
    """By 1.38, KCM does not do it; the API server may be newer than KCM."""
    observations = Observations(HandClock())
    old, new = claim(*before), claim(*after, version="11")
    change = Change(RESOURCECLAIMS, NAMESPACE, CLAIM, old, new, relist=False)
    observations.list_changed(change, [finished("a"), running("b")])
    assert observations.kcm_listed_finished_pod is learned
    observations.cluster_changed()
    assert not observations.kcm_listed_finished_pod
