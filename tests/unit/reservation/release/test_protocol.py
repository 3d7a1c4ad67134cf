"""Whole stories of one claim: which writes follow what, step by step."""

from __future__ import annotations

import pytest

from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import ListLivePods, RemoveClaimFinalizer, WriteList
from claimctl.reservation.facts.snapshot import Rules
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from tests.support.builders import (
    claim,
    finished,
    group_ref,
    pod_group,
    pod_ref,
    reservation,
    running,
    tomb,
)
from tests.support.claim_cases import (
    ACTIVE,
    GONE,
    HOLD,
    IDLE,
    NATIVE,
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)


def test_native_fences_settles_and_only_then_deallocates() -> None:
    on = stage(claim(WORKLOAD, shared=True, created_for=WORKLOAD), GONE, NATIVE)
    assert lists(on.settle(seconds=4.9)) == [((), False)]
    progress = on.reservations["train-slice"][0].status.release
    assert progress is not None
    assert (progress.step, progress.resource_version) == ("Fenced", "11")
    writes = on.settle(seconds=0.2)
    assert [type(w) for w in writes] == [WriteList, RemoveClaimFinalizer]
    assert lists(writes) == [((), True)]
    assert condition(on, "Released") == ("True", "WorkloadEnded")


def test_the_intent_is_on_record_before_the_claim_is_touched() -> None:
    on = stage(claim(WORKLOAD, shared=True, created_for=WORKLOAD), GONE, NATIVE)
    on.settle(seconds=1)
    first = next(i for i, w in enumerate(on.writes) if isinstance(w, WriteList))
    intents = [w.status.release for w in on.writes[:first] if hasattr(w, "status")]
    assert [i.step for i in intents if i] == ["Intent"]


def test_a_consumer_that_comes_to_a_fenced_claim_gets_its_holder_back() -> None:
    on = stage(claim(WORKLOAD, shared=True, created_for=WORKLOAD), GONE, NATIVE)
    on.settle(seconds=1)
    on.put(running("late"))
    assert lists(on.settle(seconds=60)) == [((WORKLOAD,), False)]
    on.remove("late")
    assert lists(on.settle(seconds=6)) == [((), False), ((), True)]


def test_the_holder_that_comes_back_is_the_incarnation_that_the_claim_was_made_for() -> None:
    anew = WorkloadState(WorkloadPhase.ACTIVE, "uid-anew", wants=1)
    on = stage(claim(WORKLOAD, shared=True, created_for=WORKLOAD), anew, NATIVE)
    on.settle(seconds=1)
    on.put(running("late"))
    assert lists(on.settle(seconds=60)) == [((WORKLOAD,), False)]


@pytest.mark.parametrize("rules", [NATIVE, HOLD])
def test_a_pod_that_only_a_live_list_shows_stops_the_release(rules: Rules) -> None:
    shared = rules is NATIVE
    on = stage(
        claim(WORKLOAD, shared=shared, created_for=WORKLOAD if shared else None), GONE, rules
    )
    on.unseen_pods = {"uid-new": running("new")}
    assert on.settle(seconds=8) == []


def test_a_pod_seen_only_after_the_fence_stops_the_deallocation() -> None:
    on = stage(claim(WORKLOAD, shared=True, created_for=WORKLOAD), GONE, NATIVE)
    on.settle(seconds=1)
    on.unseen_pods = {"uid-new": running("new")}
    assert on.settle(seconds=10) == []


def test_a_write_by_anybody_restarts_the_settle_time() -> None:
    on = stage(claim(WORKLOAD, shared=True, created_for=WORKLOAD), GONE, NATIVE)
    on.settle(seconds=4)
    on._change_claim()
    assert on.settle(seconds=4.5) == []
    assert lists(on.settle(seconds=1)) == [((), True)]


def test_a_claim_being_deleted_is_settled_and_deallocated_in_one_write() -> None:
    for rules, shared in ((NATIVE, True), (HOLD, False)):
        on = stage(claim(WORKLOAD, shared=shared, deleting=True), ACTIVE, rules)
        assert on.settle(seconds=4.9) == []
        writes = on.settle(seconds=0.2)
        assert [type(w) for w in writes] == [WriteList, RemoveClaimFinalizer]
        assert lists(writes) == [((), True)]


def test_a_pod_list_without_anything_of_ours_is_left_to_kcm_until_that_should_be_done() -> None:
    on = stage(claim(pod_ref("a")), GONE)
    assert on.settle(seconds=9) == []
    assert lists(on.settle(seconds=3)) == [((), True)]


def test_an_allocation_that_somebody_left_behind_is_settled_for_its_reservation() -> None:
    on = stage(claim(), IDLE)
    on.settle(seconds=70)
    assert on.claim is not None
    assert on.claim.status.allocation is None


def test_a_fence_leaves_no_dead_pod_for_kcm_to_deallocate_by() -> None:
    on = stage(claim(pod_ref("a"), WORKLOAD, shared=True, created_for=WORKLOAD), GONE, NATIVE)
    on.put(finished("a"))
    assert lists(on.settle(seconds=1)) == [((), False)]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(
    "listed", [(tomb("a"), WORKLOAD), (WORKLOAD,), (tomb("a"),)], ids=["both", "hold", "tombstone"]
)
def test_where_the_scheduler_lists_no_pod_beside_it_nothing_is_left_at_the_fence(
    listed: tuple[Reference, ...], shared: bool
) -> None:
    """Also what another dialect has left in a claim that was not made for the workload."""
    created_for = WORKLOAD if shared else None
    on = stage(claim(*listed, shared=shared, created_for=created_for), GONE, NATIVE)
    assert lists(on.settle(seconds=1))[-1] == ((), False)
    assert lists(on.settle(seconds=3.9)) == []
    assert lists(on.settle(seconds=2)) == [((), True)]


def test_finished_pods_do_not_keep_the_fence_up_where_the_scheduler_lists_no_pod_beside_them() -> (
    None
):
    on = stage(claim(tomb("a"), WORKLOAD, shared=True, created_for=WORKLOAD), GONE, NATIVE)
    on.put(finished("a"))
    assert lists(on.settle(seconds=1)) == [((), False)]
    assert lists(on.settle(seconds=6)) == [((), True)]


def test_a_consumer_that_comes_to_a_claim_left_by_another_dialect_is_left_to_kcm() -> None:
    on = stage(claim(WORKLOAD), GONE, NATIVE)
    assert lists(on.settle(seconds=1)) == [((), False)]
    on.put(running("late"))
    on.claim = claim(pod_ref("late"), version="20")
    assert on.settle(seconds=60) == []


@pytest.mark.parametrize(("rules", "vanished"), [(Rules("podgroup"), False), (NATIVE, True)])
def test_a_fence_that_leaves_the_hold_does_not_wait_for_the_pod_cache(
    rules: Rules, vanished: bool
) -> None:
    """A pod that vanished just before keeps its devices by the hold, until the next LIST."""
    shared = rules is NATIVE
    listed = (WORKLOAD,) if shared else (group_ref(), WORKLOAD)
    held = claim(*listed, shared=shared, created_for=WORKLOAD if shared else None)
    status = held_status(dialect=rules.dialect, pod_group_name="" if shared else "train")
    on = stage(held, GONE, rules, reserved=reservation(status=status))
    on.groups = {"train": pod_group()}
    asked: list[bool] = []
    for _ in range(10):
        needs = decide(on.snapshot()).needs
        asked += [each.vanished for each in needs if isinstance(each, ListLivePods)]
        if (write := on.decide().write) is not None:
            on.apply(write)
        on.time += 1.0
    assert not on.snapshot().allocated
    assert asked == [vanished, True]
