"""To whom a claim is left when its reservation is withdrawn: to bound pods, and to nobody else."""

from __future__ import annotations

import pytest

from claimctl.reservation.decision import SetFinalizer
from claimctl.reservation.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.reservations import ForceDeletedPod
from tests.support.builders import (
    NOW,
    claim,
    deployment_ref,
    finished,
    pending,
    pod_ref,
    reservation,
    running,
)
from tests.support.claim_cases import ACTIVE, GONE, WORKLOAD, held_status, lists, stage
from tests.support.stage import Stage


def withdrawn(*listed: str, held: bool = True) -> Stage:
    made = reservation(status=held_status(), deleting=True)
    refs = [*map(pod_ref, listed), *([WORKLOAD] if held else [])]
    return stage(claim(*refs), ACTIVE, reserved=made)


def test_a_listed_pod_that_is_not_bound_yet_is_not_left_alone_with_the_claim() -> None:
    on = withdrawn("a")
    on.put(pending("a"))
    assert on.settle(seconds=600) == []
    on.put(running("a"))
    writes = on.settle(seconds=600)
    assert lists(writes) == [((pod_ref("a"),), False)]
    assert [type(write) for write in writes[1:]] == [SetFinalizer]


def test_a_claim_that_the_scheduler_gives_up_is_released_before_its_reservation_goes() -> None:
    on = withdrawn("a")
    on.put(pending("a"))
    on.settle(seconds=60)
    assert on.claim is not None
    on.claim = claim(WORKLOAD, version="11")
    assert lists(on.settle(seconds=60)) == [((), True)]
    assert on.reservations == {}


def test_the_reservation_stays_while_none_but_unbound_pods_are_listed() -> None:
    on = withdrawn("a", held=False)
    on.put(pending("a"))
    assert on.settle(seconds=600) == []
    on.claim = claim(version="11")
    assert lists(on.settle(seconds=60)) == [((), True)]
    assert on.reservations == {}


def test_the_reservation_stays_until_kcm_has_taken_out_the_last_finished_pod() -> None:
    on = withdrawn("a", held=False)
    on.put(finished("a"))
    assert on.settle(seconds=9) == []
    on.claim = claim(allocated=False, version="11")
    on.settle(seconds=60)
    assert on.reservations == {}


def test_one_bound_pod_is_enough() -> None:
    on = withdrawn("a", "b")
    on.put(running("a"), pending("b"))
    assert lists(on.settle(seconds=60)) == [((pod_ref("a"), pod_ref("b")), False)]
    assert on.reservations == {}


GHOST = ForceDeletedPod(uid="g", name="x", node_name="node-0", boot_id="boot-1", since=NOW)
EVAL = deployment_ref("eval", "uid-eval")


def beside_another(grace: int, others: int) -> Stage:
    """A withdrawn reservation of which nothing is listed, and one that goes on holding."""
    made = reservation(status=held_status(), deleting=True, force_deleted_pod_grace_seconds=grace)
    on = stage(claim(EVAL), ACTIVE, reserved=made)
    status = held_status(reserved_for=EVAL)
    other = reservation(
        "eval", workload="eval", status=status, force_deleted_pod_grace_seconds=others
    )
    on.reservations["eval"] = (other, WorkloadState(WorkloadPhase.ACTIVE, EVAL.uid, wants=1))
    return on


def test_a_longer_grace_stays_with_its_reservation_until_the_vanished_pod_is_past_it() -> None:
    on = beside_another(300, 10)
    on.ghosts = {"g": (GHOST, 0.0)}
    on.settle(seconds=299)
    assert list(on.reservations) == ["train-slice", "eval"]
    assert "vanished" in on.reservations["train-slice"][0].status.conditions[-1].message
    on.settle(seconds=2)
    assert list(on.reservations) == ["eval"]


def test_a_claim_is_not_deallocated_under_the_grace_of_a_withdrawn_reservation() -> None:
    on = beside_another(300, 0)
    on.ghosts = {"g": (GHOST, 0.0)}
    on.settle(seconds=10)
    on.reservations["eval"] = (on.reservations["eval"][0], GONE)
    assert on.settle(seconds=289) == []
    assert ((), True) in lists(on.settle(seconds=2))


def test_a_longer_grace_stays_also_for_what_nobody_saw() -> None:
    on = beside_another(300, 10)
    on.watched_since_before_allocation = False
    on.settle(seconds=299)
    assert list(on.reservations) == ["train-slice", "eval"]


@pytest.mark.parametrize(("grace", "others"), [(300, 300), (10, 300)])
def test_a_grace_that_others_ask_for_too_keeps_no_reservation(grace: int, others: int) -> None:
    on = beside_another(grace, others)
    on.ghosts = {"g": (GHOST, 0.0)}
    on.settle(seconds=5)
    assert list(on.reservations) == ["eval"]


def test_the_last_reservation_leaves_no_grace_behind() -> None:
    on = withdrawn("a")
    on.put(running("a"))
    on.ghosts = {"g": (GHOST, 0.0)}
    on.settle(seconds=10)
    assert on.reservations == {}
