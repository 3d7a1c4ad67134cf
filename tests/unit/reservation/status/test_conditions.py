"""The conditions of a ClaimReservation."""

from __future__ import annotations

import pytest

from claimctl.reservation.facts.decision import WriteStatus
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.meta import find_condition
from tests.support.builders import claim, deployment_ref, node, pod_ref, reservation, running
from tests.support.claim_cases import ACTIVE, GONE, WORKLOAD, condition, held_status, stage
from tests.support.stage import DecisionStage

EVAL = deployment_ref("eval", "uid-eval")


def test_a_bound_pod_on_a_claim_without_allocation_is_reported_as_stranded() -> None:
    on = stage(claim(allocated=False), ACTIVE)
    on.put(running("a"))
    on.settle(seconds=1)
    assert condition(on, "Consistent") == ("False", "StrandedPod")


def test_a_pod_on_a_node_that_the_claim_is_not_allocated_for_is_reported_as_stranded() -> None:
    on = stage(claim(WORKLOAD, pod_ref("a"), pod_ref("b")), ACTIVE)
    on.nodes = {"node-0": node(), "node-1": node("node-1")}
    on.put(running("a"), running("b", "node-1"))
    on.settle(seconds=1)
    assert condition(on, "Consistent") == ("False", "StrandedPod")
    on.remove("b")
    on.settle(seconds=1)
    assert condition(on, "Consistent") == ("True", "Consistent")


def test_the_status_of_a_finished_release_says_that_the_workload_has_ended() -> None:
    """Then it need not change again."""
    on = stage(claim(WORKLOAD), WorkloadState(WorkloadPhase.ENDED, "uid-train"))
    on.settle(seconds=5)
    assert condition(on, "Reserved") == ("False", "WorkloadEnded")
    assert condition(on, "Released") == ("True", "WorkloadEnded")
    cleared = [write for write in on.writes if isinstance(write, WriteStatus)][-2:]
    assert [write.status.release is None for write in cleared] == [False, True]


def test_messages_name_the_objects_of_the_reservation() -> None:
    without_claim = stage(None, ACTIVE)
    without_claim.settle(seconds=1)
    assert "ResourceClaim slice does not exist" in _message(without_claim, "Ready")
    without_workload = stage(claim(allocated=False), WorkloadState(WorkloadPhase.ABSENT))
    without_workload.settle(seconds=1)
    assert "Deployment train does not exist" in _message(without_workload, "Ready")


def test_a_reservation_that_goes_asks_nobody_to_create_its_claim() -> None:
    """Such as that of a sticky claim, which goes with its ordinal."""
    on = stage(None, ACTIVE, reserved=reservation(status=held_status(), deleting=True))
    on.reservations_deleting_since = on.time
    on.settle(seconds=1)
    assert condition(on, "Reserved") == ("False", "Withdrawn")
    assert condition(on, "Ready") == ("True", "Ready")
    assert _message(on, "Ready") == "the ClaimReservation was deleted"


def beside_another() -> DecisionStage:
    """A Deployment that has ended, and another one that holds the same claim."""
    on = stage(claim(WORKLOAD, EVAL), GONE)
    other = reservation("eval", workload="eval", status=held_status(reserved_for=EVAL))
    on.reservations["eval"] = (other, WorkloadState(WorkloadPhase.ACTIVE, EVAL.uid, wants=1))
    on.settle(seconds=30)
    return on


@pytest.mark.parametrize("type_", ["Reserved", "Released"])
def test_a_hold_that_is_over_says_for_whom_the_claim_stays(type_: str) -> None:
    on = beside_another()
    assert condition(on, type_) == ("False", "OtherHolders")
    over = "this hold is over: Deployment train will create no more pods"
    assert _message(on, type_) == f"{over}; ResourceClaim slice stays for Deployment eval"
    assert condition(on, type_, "eval")[1] in ("Reserved", "Held")


def test_a_hold_that_was_over_is_released_with_the_last_one() -> None:
    on = beside_another()
    on.reservations["eval"] = (on.reservations["eval"][0], GONE)
    on.settle(seconds=30)
    assert condition(on, "Released") == ("True", "WorkloadEnded")


def _message(on: DecisionStage, type_: str) -> str:
    shown = find_condition(on.reservations["train-slice"][0].status.conditions, type_)
    assert shown is not None
    return shown.message


def test_a_hold_that_is_about_to_be_written_is_pending() -> None:
    on = stage(claim(), ACTIVE)
    on.put(running("a"))
    reserved = find_condition(on.decide().statuses["train-slice"].conditions, "Reserved")
    assert reserved is not None
    assert (reserved.status, reserved.reason) == ("False", Reason.PENDING)
