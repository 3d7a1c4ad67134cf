"""When a claim is deallocated at once: the claim's own versions name every pod that used it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import Decision, ListLivePods, WriteList
from claimctl.reservation.facts.memory import Memory, Openings, SeenGhost
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Evidence, Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import (
    ClaimReservation,
    ClaimReservationStatus,
    ForceDeletedPod,
    ReleaseProgress,
)
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    finished,
    pending,
    pod_group,
    pod_ref,
    reservation,
    running,
    tomb,
)

HOLD = deployment_ref()
NOTED = Memory(history_complete=True, version_age=100.0)


def ended(*references: Reference, memory: Memory = NOTED, pods: tuple[Pod, ...] = ()) -> Snapshot:
    """A claim of a workload that has ended; the intent is on record."""
    status = ClaimReservationStatus(
        claim_uid="uid-slice",
        reserved_for=HOLD,
        release=ReleaseProgress(
            step="Intent", reason=Reason.WORKLOAD_ENDED, since=NOW, claim_uid="uid-slice"
        ),
    )
    held = Held(reservation(status=status), WorkloadState(WorkloadPhase.ABSENT, confirmed=True))
    return Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name=CLAIM,
        claim=claim(*references),
        reservations=(held,),
        pods=pods,
        rules=Rules("hold"),
        memory=memory,
    )


def at_once(decision: Decision) -> bool:
    return isinstance(decision.write, WriteList) and decision.write.deallocate


def asks_for_a_list(decision: Decision) -> bool:
    return any(isinstance(need, ListLivePods) for need in decision.needs)


def test_a_claim_whose_pods_were_all_seen_done_is_deallocated_without_a_list() -> None:
    assert at_once(decide(ended(HOLD)))
    assert at_once(decide(replace(ended(HOLD), rules=Rules("podgroup"))))
    assert at_once(decide(ended(HOLD, tomb("a"), pods=(finished("a"),))))


def test_the_entry_of_a_pod_that_went_when_it_was_done_does_not_ask_for_a_list() -> None:
    gone = replace(NOTED, done_pods=frozenset({"uid-a"}))
    assert at_once(decide(ended(HOLD, pod_ref("a"), memory=gone)))


@pytest.mark.parametrize(
    "snapshot",
    [
        pytest.param(ended(HOLD, memory=replace(NOTED, history_complete=False)), id="pods missed"),
        pytest.param(ended(HOLD, pod_ref("a")), id="a listed pod whose end was not seen"),
        pytest.param(
            ended(HOLD, memory=replace(NOTED, openings=Openings(group_age=3000.0))),
            id="a group was listed",
        ),
        pytest.param(
            replace(
                ended(HOLD, memory=replace(NOTED, openings=Openings(watched_age=4.0))),
                rules=Rules("podgroup"),
                groups=(pod_group(),),
            ),
            id="a group may have left the list just before this process looked",
        ),
    ],
)
def test_any_doubt_asks_for_a_live_list(snapshot: Snapshot) -> None:
    decision = decide(snapshot)
    assert decision.write is None
    assert asks_for_a_list(decision)


def test_a_pending_pod_asks_for_a_live_list_where_it_gives_way() -> None:
    """It was listed before and may be bound by now, on the list as it was then."""
    snapshot = ended(HOLD, pods=(pending("a"),))
    held = replace(snapshot.reservations[0], reservation=_withdrawn(snapshot))
    decision = decide(replace(snapshot, reservations=(held,)))
    assert not at_once(decision)
    assert asks_for_a_list(decision)


def _withdrawn(snapshot: Snapshot) -> ClaimReservation:
    return reservation(deleting=True, status=snapshot.reservations[0].reservation.status)


def test_a_claim_that_was_read_live_proves_nothing() -> None:
    """The watch has not brought the versions in between, so their pods are not noted."""
    read = Evidence(claim_read_for=WriteList("1", ()))
    assert asks_for_a_list(decide(replace(ended(HOLD), evidence=read)))


def test_a_running_pod_or_a_ghost_blocks_as_before() -> None:
    assert decide(ended(HOLD, pod_ref("a"), pods=(running("a"),))).blockers
    ghost = ForceDeletedPod(uid="uid-a", name="a", node_name="node-0", since=NOW)
    decision = decide(replace(ended(HOLD), ghosts=(SeenGhost(ghost),)))
    assert [blocker.reason for blocker in decision.blockers] == [Reason.FORCE_DELETED_PODS]


def test_a_ghost_that_was_seen_bound_does_not_count_after_its_grace() -> None:
    ghost = ForceDeletedPod(uid="uid-a", name="a", node_name="node-0", since=NOW)
    assert at_once(decide(replace(ended(HOLD), ghosts=(SeenGhost(ghost, 1000.0),))))


def test_a_noted_pod_that_the_cache_never_showed_asks_for_a_list_after_its_grace() -> None:
    """It may exist, and the pod cache is late."""
    ghost = ForceDeletedPod(uid="uid-a", name="a", since=NOW)
    assert asks_for_a_list(decide(replace(ended(HOLD), ghosts=(SeenGhost(ghost, 1000.0),))))


def test_native_is_fenced_first() -> None:
    assert asks_for_a_list(decide(replace(ended(HOLD), rules=Rules("native"))))
