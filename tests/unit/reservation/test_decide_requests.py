"""The annotation ``claimctl.io/reallocate``: a claim's devices are given up without a timeout."""

from __future__ import annotations

from dataclasses import replace as replace_state
from typing import Any

import pytest
from msgspec.structs import replace

from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import ClearReleaseRequest, RemoveClaimFinalizer, WriteList
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Rules
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import (
    REALLOCATE_ANNOTATION,
    ClaimReservation,
    ForceDeletedPod,
    ReleaseProgress,
)
from tests.support.builders import (
    after,
    claim,
    deployment_ref,
    group_ref,
    node,
    owned,
    pending,
    pod_group,
    pod_ref,
    reservation,
    running,
)
from tests.support.claim_cases import (
    ACTIVE,
    HOLD,
    IDLE,
    NATIVE,
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)
from tests.support.stage import DecisionStage

ASKED = {REALLOCATE_ANNOTATION: "uid-slice"}
BEGUN = ReleaseProgress(
    step="Intent", reason=Reason.REALLOCATED, since=after(-5), claim_uid="uid-slice"
)


def asking(uid: str = "uid-slice", **changes: Any) -> ClaimReservation:
    annotations = {REALLOCATE_ANNOTATION: uid}
    return reservation(status=held_status(), annotations=annotations, **changes)


def asked_for(
    *listed: Reference, reserved: ClaimReservation | None = None, rules: Rules = HOLD
) -> DecisionStage:
    """A held claim on an open node. Its devices are to be given up."""
    shared = rules is NATIVE
    held = claim(*listed or (WORKLOAD,), shared=shared, created_for=WORKLOAD if shared else None)
    return stage(held, ACTIVE, rules, reserved=reserved or asking())


def message(on: DecisionStage) -> str:
    conditions = on.reservations["train-slice"][0].status.conditions
    return next(each.message for each in conditions if each.type == "Released")


def test_devices_are_given_up_at_once_and_the_request_goes() -> None:
    on = asked_for()
    writes = on.settle(seconds=0.1)
    assert lists(writes) == [((), True)]
    assert [type(each) for each in writes] == [WriteList, ClearReleaseRequest, RemoveClaimFinalizer]
    assert condition(on, "Released") == ("True", "Reallocated")
    assert on.reservations["train-slice"][0].metadata.annotations is None


def test_a_pod_that_waits_does_not_keep_the_devices() -> None:
    on = asked_for()
    on.put(pending("a"))
    assert lists(on.settle(seconds=1)) == [((), True)]


def test_a_fence_comes_first_where_pods_are_not_listed() -> None:
    on = asked_for(rules=NATIVE)
    on.put(pending("a"))
    assert lists(on.settle(seconds=59)) == [((), False)]
    assert lists(on.settle(seconds=10)) == [((), True)]


def test_a_listed_group_is_fenced_and_its_pods_may_be_bound_for_a_while() -> None:
    on = asked_for(group_ref(), WORKLOAD, rules=Rules("podgroup"))
    on.reservations["train-slice"] = (
        asking(),
        WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1, pod_group="train"),
    )
    on.groups = {"train": pod_group()}
    on.put(pending("a", group="train"))
    assert lists(on.settle(seconds=59)) == [((WORKLOAD,), False)]
    assert lists(on.settle(seconds=10)) == [((), True)]


def test_a_bound_pod_keeps_the_claim_held_and_the_request_waits() -> None:
    on = asked_for(pod_ref("a"), WORKLOAD)
    on.put(running("a"))
    assert on.settle(seconds=3600) == []
    assert condition(on, "Released") == ("False", "Held")
    assert "asks to give the devices up when no pod uses them" in message(on)
    del on.pods["uid-a"]
    on.vanished_pods.add("uid-a")
    assert lists(on.settle(seconds=60))[-1] == ((), True)


def test_a_ghost_keeps_the_devices_for_its_grace() -> None:
    on = asked_for(reserved=asking(force_deleted_pod_grace_seconds=300))
    on.ghosts["uid-b"] = (ForceDeletedPod(uid="uid-b", name="b", node_name="node-0"), 0.0)
    assert lists(on.settle(seconds=299)) == []
    assert lists(on.settle(seconds=2)) == [((), True)]


@pytest.mark.parametrize(
    ("reserved", "says"),
    [
        (asking("uid-of-an-earlier-claim"), ""),
        (asking(reallocate_timeout_seconds=None), "is ignored, since reallocationPolicy is Never"),
        (asking(reallocation_policy="Never"), "is ignored, since reallocationPolicy is Never"),
    ],
    ids=["another claim", "null", "never"],
)
def test_a_request_that_does_not_count_is_ignored(reserved: ClaimReservation, says: str) -> None:
    on = asked_for(reserved=reserved)
    assert on.settle(seconds=3600) == []
    assert condition(on, "Released") == ("False", "Held")
    assert (REALLOCATE_ANNOTATION in message(on)) is bool(says)
    assert says in message(on)


def test_another_reservation_goes_on_holding_the_claim() -> None:
    other = deployment_ref("other", "uid-other")
    on = asked_for(WORKLOAD, other)
    second = reservation("other", workload="other", status=held_status(reserved_for=other))
    on.reservations["other"] = (second, WorkloadState(WorkloadPhase.ACTIVE, "uid-other", wants=1))
    assert on.settle(seconds=3600) == []


def test_a_claim_that_is_not_allocated_has_nothing_to_give_up() -> None:
    on = stage(claim(allocated=False, finalizer=False), ACTIVE, reserved=asking())
    (write,) = on.settle(seconds=60)
    assert isinstance(write, ClearReleaseRequest)
    assert on.reservations["train-slice"][0].metadata.annotations is None


def test_an_idle_claim_is_given_up_before_its_timeout() -> None:
    on = stage(claim(WORKLOAD), IDLE, reserved=asking(idle_timeout_seconds=3600))
    assert lists(on.settle(seconds=1)) == [((), True)]


def test_a_request_ends_with_a_release_that_came_to_nothing() -> None:
    """Killed after the deallocation, the controller finds the claim allocated anew."""
    status = held_status(release=BEGUN)
    on = asked_for(pod_ref("a"), reserved=replace(asking(), status=status))
    on.put(running("a"))
    writes = on.settle(seconds=60)
    assert isinstance(writes[0], ClearReleaseRequest)
    assert not any(isinstance(each, WriteList) and each.deallocate for each in writes)
    del on.pods["uid-a"]
    assert not any(each[1] for each in lists(on.settle(seconds=3600)))


def test_a_request_that_was_met_goes_before_the_next_allocation_is_looked_at() -> None:
    on = asked_for()
    snapshot = on.snapshot()
    met = replace_state(snapshot.reservations[0], requests_met=(REALLOCATE_ANNOTATION,))
    decision = decide(replace_state(snapshot, reservations=(met,)))
    assert decision.write == ClearReleaseRequest(asking(), REALLOCATE_ANNOTATION)


@pytest.mark.parametrize("asked", [False, True])
def test_no_pod_is_listed_ahead_in_a_claim_whose_devices_are_to_be_given_up(asked: bool) -> None:
    rules = Rules("hold", list_ahead=True, crowd=0)
    on = asked_for(pod_ref("a"), WORKLOAD, rules=rules)
    workload = replace_state(ACTIVE, pod_owners=frozenset({"uid-set"}))
    held = asking() if asked else reservation(status=held_status())
    on.reservations["train-slice"] = (held, workload)
    on.snapshot()
    on.put(running("a"))
    on.come(owned(pending("b")))
    assert bool(lists(on.settle(seconds=1))) is not asked


def test_a_request_does_not_matter_to_a_node_that_is_closed() -> None:
    on = asked_for()
    on.nodes = {"node-0": node(cordoned=True)}
    on.put(pending("a", unschedulable_at=after(0)))
    assert lists(on.settle(seconds=1)) == [((), True)]
