"""To whom a claim is left when its reservation is withdrawn: to bound pods, and to nobody else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from claimctl.reservation.facts.decision import SetFinalizer
from claimctl.reservation.facts.snapshot import Rules
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import ForceDeletedPod
from tests.support.builders import (
    NOW,
    after,
    claim,
    deployment_ref,
    finished,
    pending,
    pod_ref,
    reservation,
    running,
    written_by_claimctl,
)
from tests.support.claim_cases import (
    ACTIVE,
    GONE,
    HOLD,
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)
from tests.support.stage import DecisionStage

BEFORE_1_36 = Rules("hold", kcm_cleans_mixed_lists=False)
BEFORE_1_34 = replace(BEFORE_1_36, kcm_looks_at_claims=False)
THING = Reference(api_group="example.com", resource="things", name="x", uid="uid-thing")


def withdrawn(
    *listed: str, held: bool = True, others: tuple[Reference, ...] = (), rules: Rules = HOLD
) -> DecisionStage:
    made = reservation(status=held_status(), deleting=True)
    refs = [*map(pod_ref, listed), *others, *([WORKLOAD] if held else [])]
    return stage(claim(*refs), ACTIVE, rules, reserved=made)


def test_a_reservation_stays_until_a_pod_that_the_scheduler_listed_is_bound() -> None:
    on = withdrawn("a")
    on.put(pending("a"))
    assert lists(on.settle(seconds=600)) == [((pod_ref("a"),), False)]
    assert on.reservations
    on.put(running("a"))
    assert [type(write) for write in on.settle(seconds=600)] == [SetFinalizer]


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


@pytest.mark.parametrize("held", [True, False], ids=["hold", "no hold"])
def test_before_1_34_a_claim_is_not_left_to_its_pods(held: bool) -> None:
    """KCM does not look at the claim again if it was down when the last pod ended."""
    on = withdrawn("a", held=held, rules=BEFORE_1_34)
    on.put(running("a"))
    assert on.settle(seconds=600) == []
    assert len(on.reservations) == 1
    on.remove("a")
    assert lists(on.settle(seconds=600))[-1] == ((), True)
    assert on.reservations == {}


def test_before_1_34_a_claim_is_left_to_another_entry_when_its_pods_are_gone() -> None:
    """KCM does not remove a pod beside that entry, and does not see when the entry goes."""
    on = withdrawn("a", others=(THING,), rules=BEFORE_1_34)
    on.put(running("a"))
    assert on.settle(seconds=600) == []
    assert len(on.reservations) == 1
    on.remove("a")
    assert lists(on.settle(seconds=600))[-1] == ((THING,), False)
    assert on.reservations == {}


@pytest.mark.parametrize("rules", [BEFORE_1_36, HOLD], ids=["1.34", "1.36"])
def test_from_1_34_on_a_claim_is_left_to_its_pods_and_another_entry(rules: Rules) -> None:
    on = withdrawn("a", others=(THING,), rules=rules)
    on.put(running("a"))
    assert lists(on.settle(seconds=600)) == [((pod_ref("a"), THING), False)]
    assert on.reservations == {}


GHOST = ForceDeletedPod(uid="g", name="x", node_name="node-0", boot_id="boot-1", since=NOW)
EVAL = deployment_ref("eval", "uid-eval")


def beside_another(grace: int, others: int) -> DecisionStage:
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


def test_a_withdrawal_beside_running_pods_gives_back_what_was_listed_ahead_first() -> None:
    """Two such entries alone would keep the scheduler from freeing the claim for their pods."""
    on = withdrawn("a", "b")
    assert on.claim is not None
    on.claim = written_by_claimctl(on.claim, ["uid-b", WORKLOAD.uid])
    on.put(running("a"), pending("b"))
    assert lists(on.settle(seconds=1)) == [((pod_ref("a"), WORKLOAD), False)]
    assert on.settle(seconds=58) == []
    writes = on.settle(seconds=8)
    assert lists(writes) == [((pod_ref("a"),), False)]
    assert [type(write) for write in writes[1:]] == [SetFinalizer]


def test_a_withdrawn_hold_stays_while_a_cache_that_is_late_lacks_a_pod_listed_ahead() -> None:
    """The pod may be pending. Without the hold, nobody would take its entry out."""
    on = withdrawn("a", "b")
    assert on.claim is not None
    on.claim = written_by_claimctl(on.claim, ["uid-b", WORKLOAD.uid])
    on.put(running("a"))
    on.unseen_pods["uid-b"] = pending("b")
    assert on.settle(seconds=70) == []
    assert condition(on, "Released") == ("False", "ConsumersLeft")
    on.put(on.unseen_pods.pop("uid-b"))
    assert lists(on.settle(seconds=1)) == [((pod_ref("a"), WORKLOAD), False)]
    assert lists(on.settle(seconds=66)) == [((pod_ref("a"),), False)]


def test_a_reservation_whose_hold_is_lost_stays_until_its_entries_ahead_are_gone() -> None:
    on = withdrawn()
    on.claim = written_by_claimctl(claim(pod_ref("a"), pod_ref("b")), ["uid-a", "uid-b"])
    on.put(*(pending(name, unschedulable_at=after(0)) for name in "ab"))
    assert lists(on.settle(seconds=1)) == [((WORKLOAD,), False)]
    assert lists(on.settle(seconds=60)) == [((), True)]
    assert on.reservations == {}
