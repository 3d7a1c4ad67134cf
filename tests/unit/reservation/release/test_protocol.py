"""Whole stories of one claim: which writes follow what, step by step."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.reservation.decision import (
    RemoveClaimFinalizer,
    SetFinalizer,
    WriteList,
)
from claimctl.reservation.snapshot import Rules
from claimctl.reservation.workloads import Life, WorkloadState
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import ForceDeletedPod
from tests.support.builders import (
    NOW,
    after,
    claim,
    deployment_ref,
    finished,
    node,
    pending,
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
    OLD_HOLD,
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)


def test_a_hold_is_added_beside_the_pods_of_an_allocated_claim() -> None:
    on = stage(claim(pod_ref("a")), ACTIVE, recorded=False)
    on.put(running("a"))
    assert lists(on.settle()) == [((pod_ref("a"), WORKLOAD), False)]
    assert condition(on, "Reserved") == ("True", "Reserved")
    assert on.settle(seconds=5) == []


def test_nothing_is_added_to_a_claim_that_is_not_allocated_or_being_deleted() -> None:
    assert stage(claim(allocated=False), ACTIVE, recorded=False).settle() == []
    on = stage(claim(pod_ref("a"), deleting=True), ACTIVE, recorded=False)
    on.put(running("a"))
    assert on.settle(seconds=60) == []


def test_native_adds_the_reference_only_where_the_allocation_serves_any_pod() -> None:
    on = stage(claim(shared=True, created_for=WORKLOAD), ACTIVE, NATIVE, recorded=False)
    on.put(running("a"))
    assert lists(on.settle()) == [((WORKLOAD,), False)]
    on = stage(claim(pod_ref("a"), created_for=WORKLOAD), ACTIVE, NATIVE, recorded=False)
    on.put(running("a"))
    assert lists(on.settle()) == []
    assert condition(on, "Reserved") == ("False", "ClaimNotCreatedForWorkload")


@pytest.mark.parametrize(
    ("created_for", "reason"),
    [
        (None, "ClaimNotCreatedForWorkload"),
        (deployment_ref("other", "uid-other"), "AlreadyReservedFor"),
    ],
)
def test_native_refuses_claims_made_for_somebody_else(
    created_for: Reference | None, reason: str
) -> None:
    on = stage(claim(pod_ref("a"), created_for=created_for), ACTIVE, NATIVE, recorded=False)
    on.put(running("a"))
    assert on.settle(seconds=60) == []
    assert condition(on, "Reserved") == ("False", reason)


def test_native_folds_live_pod_references_into_the_workload_reference() -> None:
    on = stage(claim(pod_ref("a"), pod_ref("b"), shared=True, created_for=WORKLOAD), ACTIVE, NATIVE)
    on.put(running("a"), running("b"))
    assert lists(on.settle()) == [((WORKLOAD,), False)]


def test_an_idle_hold_is_released_in_one_write_after_its_timeout() -> None:
    on = stage(claim(WORKLOAD), IDLE)
    assert on.settle(seconds=59) == []
    writes = on.settle(seconds=2)
    assert [type(w) for w in writes] == [WriteList, RemoveClaimFinalizer]
    assert lists(writes) == [((), True)]
    assert condition(on, "Released") == ("True", "Idle")
    assert on.settle(seconds=600) == []


@pytest.mark.parametrize("policy", ["Persistent", "Manual"])
def test_other_policies_hold_through_idle(policy: str) -> None:
    reserved = reservation(status=held_status(), retention_policy=policy)
    on = stage(claim(WORKLOAD), IDLE, reserved=reserved)
    assert on.settle(seconds=100_000) == []


def test_manual_holds_even_after_the_end_until_it_is_asked_to_release() -> None:
    reserved = reservation(status=held_status(), retention_policy="Manual")
    on = stage(claim(WORKLOAD), GONE, reserved=reserved)
    assert on.settle(seconds=1000) == []
    asked = replace(reserved.metadata, annotations={"claimctl.io/release": "uid-slice"})
    on.reservations["train-slice"] = (replace(reserved, metadata=asked), GONE)
    assert lists(on.settle(seconds=1)) == [((), True)]
    assert on.reservations["train-slice"][0].metadata.annotations is None


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
    anew = WorkloadState(Life.ACTIVE, "uid-anew", wants=1)
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


def test_a_consumer_keeps_the_claim_of_an_ended_workload() -> None:
    for shared in (False, True):
        refs = (WORKLOAD,) if shared else (pod_ref("a"), WORKLOAD)
        created_for = WORKLOAD if shared else None
        on = stage(
            claim(*refs, shared=shared, created_for=created_for), GONE, NATIVE if shared else HOLD
        )
        on.put(running("a"))
        assert on.settle(seconds=3600) == []
        assert condition(on, "Released") == ("False", "ConsumersLeft")


def test_a_ghost_keeps_the_claim_for_its_grace() -> None:
    on = stage(claim(WORKLOAD), GONE)
    ghost = ForceDeletedPod(uid="g", name="a", node_name="node-0", boot_id="boot-1", since=NOW)
    on.ghosts = {"g": (ghost, 0.0)}
    assert on.settle(seconds=299) == []
    assert on.reservations["train-slice"][0].status.force_deleted_pods == (ghost,)
    assert lists(on.settle(seconds=2)) == [((), True)]


def test_a_new_boot_of_its_node_ends_a_ghost_and_a_missing_node_does_not() -> None:
    ghost = ForceDeletedPod(uid="g", name="a", node_name="node-0", boot_id="boot-1", since=NOW)
    on = stage(claim(WORKLOAD), GONE)
    on.ghosts = {"g": (ghost, 0.0)}
    on.nodes = {}
    assert on.settle(seconds=100) == []
    on.nodes = {"node-0": node(boot="boot-2")}
    assert lists(on.settle(seconds=1)) == [((), True)]


def test_a_claim_allocated_before_the_controller_looked_waits_for_the_grace() -> None:
    on = stage(claim(WORKLOAD), GONE)
    on.watched_since_before_allocation = False
    assert on.settle(seconds=299) == []
    assert lists(on.settle(seconds=2)) == [((), True)]


def test_a_finished_pod_beside_a_hold_becomes_a_tombstone_until_it_is_gone() -> None:
    for rules in (HOLD, OLD_HOLD):
        on = stage(claim(pod_ref("a"), pod_ref("b"), WORKLOAD), ACTIVE, rules)
        on.put(finished("a"), running("b"))
        assert lists(on.settle()) == [((tomb("a"), pod_ref("b"), WORKLOAD), False)]
        on.remove("a")
        assert lists(on.settle(seconds=20)) == [((pod_ref("b"), WORKLOAD), False)]


def test_a_finished_pod_that_is_not_listed_gets_a_tombstone_too() -> None:
    on = stage(claim(pod_ref("b"), WORKLOAD), ACTIVE)
    on.put(finished("a"), running("b"))
    assert lists(on.settle()) == [((pod_ref("b"), WORKLOAD, tomb("a")), False)]


def test_a_vanished_pod_is_left_to_a_kcm_that_cleans_and_removed_beside_one_that_does_not() -> None:
    on = stage(claim(pod_ref("a"), pod_ref("b"), WORKLOAD), ACTIVE, OLD_HOLD)
    on.put(running("b"))
    assert lists(on.settle()) == [((pod_ref("b"), WORKLOAD), False)]
    on = stage(claim(pod_ref("a"), pod_ref("b"), WORKLOAD), ACTIVE)
    on.put(running("b"))
    assert lists(on.settle(seconds=9)) == []
    assert lists(on.settle(seconds=2)) == [((pod_ref("b"), WORKLOAD), False)]


def test_a_listed_pod_that_only_the_cache_lacks_stays() -> None:
    on = stage(claim(pod_ref("new"), WORKLOAD), ACTIVE, OLD_HOLD)
    on.unseen_pods = {"uid-new": running("new")}
    assert on.settle(seconds=60) == []


def test_a_recreated_workload_takes_the_place_of_its_earlier_incarnation() -> None:
    on = stage(claim(pod_ref("a"), WORKLOAD), WorkloadState(Life.ACTIVE, "uid-2", wants=1))
    on.put(running("a"))
    new = deployment_ref(uid="uid-2")
    assert lists(on.settle()) == [((pod_ref("a"), new), False)]


def test_unknown_references_are_left_alone_and_reported() -> None:
    foreign = Reference(api_group="example.com", resource="vms", name="vm", uid="v")
    on = stage(claim(foreign, WORKLOAD), GONE)
    assert on.settle(seconds=3600) == []
    assert condition(on, "Released") == ("False", "UnknownReferences")
    assert condition(on, "Consistent") == ("False", "UnknownReferences")


def test_two_holders_let_go_one_after_the_other() -> None:
    other = deployment_ref("other", "uid-other")
    on = stage(claim(WORKLOAD, other), GONE)
    second = reservation("other", workload="other", status=held_status(reserved_for=other))
    on.reservations["other"] = (second, WorkloadState(Life.ACTIVE, "uid-other", wants=1))
    assert lists(on.settle(seconds=60)) == [((other,), False)]
    on.reservations["other"] = (on.reservations["other"][0], GONE)
    assert lists(on.settle(seconds=1)) == [((), True)]


def test_a_withdrawn_hold_goes_at_once_and_the_pods_keep_theirs() -> None:
    reserved = reservation(status=held_status(), deleting=True)
    on = stage(claim(pod_ref("a"), WORKLOAD), ACTIVE, reserved=reserved)
    on.put(running("a"))
    writes = on.settle(seconds=1)
    assert lists(writes) == [((pod_ref("a"),), False)]
    assert isinstance(writes[-1], SetFinalizer)
    assert on.reservations == {}


def test_a_withdrawn_native_hold_waits_for_its_consumers() -> None:
    reserved = reservation(status=held_status(), deleting=True)
    on = stage(
        claim(WORKLOAD, shared=True, created_for=WORKLOAD), ACTIVE, NATIVE, reserved=reserved
    )
    on.put(running("a"))
    assert on.settle(seconds=600) == []
    on.remove("a")
    assert lists(on.settle(seconds=6)) == [((), False), ((), True)]
    assert on.reservations == {}


def test_a_withdrawn_hold_without_consumers_is_a_release() -> None:
    reserved = reservation(status=held_status(), deleting=True)
    on = stage(claim(WORKLOAD), ACTIVE, reserved=reserved)
    writes = on.settle(seconds=1)
    assert [type(w) for w in writes] == [WriteList, RemoveClaimFinalizer, SetFinalizer]
    assert lists(writes) == [((), True)]


def test_a_claim_being_deleted_is_settled_and_deallocated_in_one_write() -> None:
    for rules, shared in ((NATIVE, True), (HOLD, False)):
        on = stage(claim(WORKLOAD, shared=shared, deleting=True), ACTIVE, rules)
        assert on.settle(seconds=4.9) == []
        writes = on.settle(seconds=0.2)
        assert [type(w) for w in writes] == [WriteList, RemoveClaimFinalizer]
        assert lists(writes) == [((), True)]


def test_devices_that_pods_cannot_reach_are_given_up_after_the_timeout() -> None:
    for rules, shared in ((NATIVE, True), (HOLD, False)):
        created_for = WORKLOAD if shared else None
        on = stage(claim(WORKLOAD, shared=shared, created_for=created_for), ACTIVE, rules)
        on.nodes = {"node-0": node(cordoned=True), "node-1": node("node-1")}
        on.put(pending("a", unschedulable_at=after(0)))
        assert on.settle(seconds=59) == []
        assert lists(on.settle(seconds=68))[-1] == ((), True)
        assert condition(on, "Released") == ("True", "Reallocated")


@pytest.mark.parametrize(
    "what", ["a bound pod", "a usable node", "no timeout", "a listed pending pod"]
)
def test_devices_are_not_given_up_while(what: str) -> None:
    timeout = None if what == "no timeout" else 60
    reserved = reservation(status=held_status(), reallocate_timeout_seconds=timeout)
    refs = (pod_ref("b"), WORKLOAD) if what == "a listed pending pod" else (WORKLOAD,)
    on = stage(claim(*refs), ACTIVE, reserved=reserved)
    on.nodes = {"node-0": node(cordoned=what != "a usable node")}
    on.put(pending("a", unschedulable_at=after(0)))
    if what == "a listed pending pod":
        on.put(pending("b"))
    if what == "a bound pod":
        on.put(running("b"))
    assert on.settle(seconds=3600) == []


def test_the_hold_steps_aside_for_a_waiting_pod_when_the_list_is_full() -> None:
    pods = [running(f"p{i}") for i in range(255)]
    refs = [pod_ref(f"p{i}") for i in range(255)]
    on = stage(claim(*refs, WORKLOAD), ACTIVE)
    on.put(*pods, pending("waiting"))
    assert lists(on.settle(seconds=60)) == [(tuple(refs), False)]
    assert condition(on, "Reserved") == ("False", "HoldYielded")
    on.remove("waiting")
    assert lists(on.settle(seconds=60)) == [((*refs, WORKLOAD), False)]


def test_a_list_that_somebody_else_keeps_changing_back_is_reported_and_left() -> None:
    on = stage(claim(pod_ref("a")), ACTIVE)
    on.put(running("a"))
    on.repeated_writes = 3
    assert on.settle(seconds=60) == []
    assert condition(on, "Consistent") == ("False", "FightingWriter")


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


def test_frozen_for_a_downgrade_no_workload_reference_is_added_and_new_pods_are_listed() -> None:
    on = stage(claim(pod_ref("a"), shared=True, created_for=WORKLOAD), ACTIVE, NATIVE)
    on.frozen = True
    on.put(running("a"), running("b"))
    assert lists(on.settle(seconds=5)) == [((pod_ref("a"), pod_ref("b")), False)]
    assert condition(on, "Reserved") == ("False", "FrozenForDowngrade")


def test_frozen_a_workload_reference_that_still_stands_is_left_as_it_is() -> None:
    on = stage(claim(WORKLOAD, shared=True, created_for=WORKLOAD), ACTIVE, NATIVE)
    on.frozen = True
    on.put(running("a"))
    assert on.settle(seconds=5) == []


def test_a_replica_set_that_lives_on_keeps_the_hold_of_its_deleted_deployment() -> None:
    on = stage(claim(WORKLOAD), WorkloadState(Life.ABSENT, orphaned_replica_sets=("train-abc",)))
    assert on.settle(seconds=3600) == []


def test_a_pod_list_without_anything_of_ours_is_left_to_kcm_until_that_should_be_done() -> None:
    on = stage(claim(pod_ref("a")), GONE)
    assert on.settle(seconds=9) == []
    assert lists(on.settle(seconds=3)) == [((), True)]


def test_an_allocation_that_somebody_left_behind_is_settled_for_its_reservation() -> None:
    on = stage(claim(), IDLE)
    on.settle(seconds=70)
    assert on.claim is not None
    assert on.claim.status.allocation is None


def test_killed_before_the_status_was_written_the_hold_is_still_known_as_ours() -> None:
    on = stage(claim(WORKLOAD, shared=True, created_for=WORKLOAD), GONE, NATIVE, recorded=False)
    assert lists(on.settle(seconds=6)) == [((), False), ((), True)]


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
