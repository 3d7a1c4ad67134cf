"""Ways in which a claim, or a reservation of it, could be caught for good; and that it is not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.reservation.decide import FIGHT_REST, decide
from claimctl.reservation.facts.decision import SetFinalizer, WriteStatus
from claimctl.reservation.facts.snapshot import Evidence, LiveList, Rules
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from claimctl.wire.meta import OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation, ReleaseProgress
from tests.support.builders import (
    after,
    claim,
    deployment_ref,
    finished,
    gated,
    pending,
    pod_ref,
    reservation,
    running,
    tomb,
    written_by_claimctl,
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
from tests.support.stage import DecisionStage

FOREIGN = Reference(api_group="example.com", resource="vms", name="vm", uid="v")


def test_a_reservation_that_another_one_of_the_workload_replaces_may_go() -> None:
    on = stage(claim(pod_ref("a"), WORKLOAD), ACTIVE)
    on.put(running("a"))
    second = reservation("owned", status=held_status(), deleting=True)
    on.reservations["owned"] = (second, ACTIVE)
    assert [type(w) for w in on.settle(seconds=5)] == [SetFinalizer]
    assert list(on.reservations) == ["train-slice"]


def test_a_withdrawn_reservation_does_not_wait_for_holders_that_are_not_its_own() -> None:
    on = stage(claim(FOREIGN), ACTIVE, reserved=reservation(status=held_status(), deleting=True))
    on.settle(seconds=5)
    assert on.reservations == {}
    assert on.claim is not None
    assert on.claim.status.reserved_for == (FOREIGN,)


def test_a_withdrawn_reservation_of_a_kind_that_cannot_hold_goes_at_once() -> None:
    odd = reservation(kind="CronJob", deleting=True)
    on = stage(claim(FOREIGN), WorkloadState(WorkloadPhase.UNSEEN), reserved=odd)
    on.settle(seconds=5)
    assert on.reservations == {}


def test_a_consumer_that_is_first_seen_waiting_at_a_fenced_claim_gets_its_holder_back() -> None:
    on = stage(claim(WORKLOAD, shared=True, created_for=WORKLOAD), GONE, NATIVE)
    on.settle(seconds=1)
    on.put(pending("late"))
    assert on.settle(seconds=1) == []
    on.put(running("late"))
    assert lists(on.settle(seconds=60)) == [((WORKLOAD,), False)]


@pytest.mark.parametrize("rules", [NATIVE, HOLD], ids=["native", "hold"])
@pytest.mark.parametrize(
    "waits",
    [
        pytest.param(pending("a", unschedulable_at=after(0)), id="the hold keeps it out"),
        pytest.param(gated(pending("a")), id="whoever gates it may wait for the device"),
    ],
)
def test_the_devices_of_an_ended_workload_go_to_a_pod_that_waits(rules: Rules, waits: Pod) -> None:
    shared = rules is NATIVE
    on = stage(
        claim(WORKLOAD, shared=shared, created_for=WORKLOAD if shared else None), GONE, rules
    )
    on.put(waits)
    assert lists(on.settle(seconds=68))[-1] == ((), True)


def test_a_pod_with_a_scheduling_gate_takes_no_device_from_a_workload_that_wants_pods() -> None:
    on = stage(claim(WORKLOAD), ACTIVE)
    on.put(gated(pending("a")))
    assert lists(on.settle(seconds=600)) == []


def test_a_fight_is_not_given_up_for_good() -> None:
    on = stage(claim(pod_ref("a")), ACTIVE)
    on.put(running("a"))
    on.repeated_writes = 3
    on.settle(seconds=5)
    assert on.decide().after is not None
    on.repeated_writes = 0
    assert lists(on.settle(seconds=600)) == [((pod_ref("a"), WORKLOAD), False)]


def test_the_end_of_a_fight_is_told_although_nothing_else_happens() -> None:
    on = stage(claim(pod_ref("a"), WORKLOAD), ACTIVE)
    on.put(running("a"))
    on.repeated_writes = 3
    on.settle(seconds=5)
    assert condition(on, "Consistent") == ("False", "FightingWriter")
    assert on.decide().after == FIGHT_REST
    on.repeated_writes = 0
    on.settle(seconds=FIGHT_REST)
    assert condition(on, "Consistent") == ("True", "Consistent")


def test_a_listed_pod_that_never_named_the_claim_is_asked_for_at_leisure() -> None:
    intent = ReleaseProgress(step="Intent", reason="WorkloadEnded", claim_uid="uid-slice")
    begun = held_status(release=intent)
    on = stage(claim(pod_ref("odd"), WORKLOAD), GONE, reserved=reservation(status=begun))
    live = LiveList("10", (), frozenset({"uid-odd"}), settled=True)
    evidence = Evidence(live=live)
    told = decide(on.snapshot(evidence)).write
    assert isinstance(told, WriteStatus)
    on.apply(told)
    decision = decide(on.snapshot(evidence))
    assert (decision.write, decision.after) == (None, HOLD.dead_reference_seconds)


def test_nobody_looks_again_at_a_list_that_living_pods_keep() -> None:
    on = stage(claim(pod_ref("a")), GONE)
    on.put(running("a"))
    assert on.settle(seconds=2) == []
    assert on.decide().after is None


def test_a_hold_withdrawn_because_its_workload_is_gone_waits_for_the_pods() -> None:
    owner = OwnerReference(
        api_version="apps/v1", kind="Deployment", name="train", uid="uid-train", controller=True
    )
    made = reservation(status=held_status(), deleting=True)
    made = replace(made, metadata=replace(made.metadata, owner_references=(owner,)))
    for left in (GONE, WorkloadState(WorkloadPhase.ABSENT, orphaned_replica_sets=("train-abc",))):
        on = stage(claim(pod_ref("a"), WORKLOAD), left, reserved=made)
        on.put(running("a"))
        assert on.settle(seconds=60) == []


def test_an_idle_time_of_the_future_is_not_waited_for() -> None:
    ahead = held_status(idle_since=after(365 * 24 * 3600), consumers=0)
    on = stage(claim(WORKLOAD), IDLE, reserved=reservation(status=ahead))
    assert lists(on.settle(seconds=120)) == [((), True)]


@pytest.mark.parametrize("rules", [NATIVE, HOLD], ids=["native", "hold"])
def test_an_older_view_of_the_workload_does_not_undo_what_a_newer_one_did(rules: Rules) -> None:
    new = deployment_ref(uid="uid-2")
    shared = rules is NATIVE
    on = stage(
        claim(new, shared=shared, created_for=new if shared else None),
        ACTIVE,
        rules,
        reserved=reservation(status=held_status(reserved_for=new)),
    )
    on.live_workloads = {"train": WorkloadState(WorkloadPhase.ACTIVE, "uid-2", wants=3)}
    assert on.settle(seconds=60) == []


def test_a_withdrawn_reservation_of_a_kind_that_cannot_hold_leaves_what_others_leaked() -> None:
    odd = reservation(kind="CronJob", deleting=True)
    on = stage(claim(), WorkloadState(WorkloadPhase.UNSEEN), reserved=odd)
    assert [type(w) for w in on.settle(seconds=60)] == [SetFinalizer]


def test_a_withdrawn_hold_for_an_earlier_incarnation_goes_at_once_too() -> None:
    made = reservation(status=held_status(), deleting=True)
    again = WorkloadState(WorkloadPhase.ACTIVE, "uid-2", wants=1)
    on = stage(claim(pod_ref("a"), WORKLOAD), again, reserved=made)
    on.put(running("a"))
    assert lists(on.settle(seconds=5)) == [((pod_ref("a"),), False)]
    assert on.reservations == {}


def test_a_withdrawn_hold_stays_while_a_pod_that_left_the_list_may_be_bound() -> None:
    made = reservation(status=held_status(), deleting=True)
    listed = claim(pod_ref("a"), pod_ref("late"), WORKLOAD)
    on = stage(written_by_claimctl(listed, ["uid-late"]), ACTIVE, reserved=made)
    on.put(running("a"), pending("late"))
    assert lists(on.settle(seconds=30)) == [((pod_ref("a"), WORKLOAD), False)]
    on.unseen_pods["uid-late"] = running("late")
    assert on.settle(seconds=600) == []
    del on.unseen_pods["uid-late"]
    assert lists(on.settle()) == [((pod_ref("a"),), False)]


def test_pods_that_a_scheduler_left_listed_beside_others_give_way_together() -> None:
    listed = claim(pod_ref("left"), pod_ref("ahead"), WORKLOAD)
    long_ago = held_status(allocation_time=after(-3600), consumers=0)
    made = reservation(status=long_ago)
    on = stage(written_by_claimctl(listed, ["uid-ahead"]), ACTIVE, reserved=made)
    on.put(*(pending(name, unschedulable_at=after(-600)) for name in ("left", "ahead")))
    assert lists(on.settle(seconds=200)) == [
        ((WORKLOAD,), False),
        ((), True),
    ]


def test_a_hold_steps_aside_for_a_pod_of_a_scheduler_also_beside_pods_listed_ahead() -> None:
    """The pod of the scheduler may be bound at any moment; the scheduler frees the claim for it."""
    listed = claim(pod_ref("new"), pod_ref("ahead"), WORKLOAD)
    long_ago = held_status(allocation_time=after(-3600), consumers=0)
    on = stage(
        written_by_claimctl(listed, ["uid-ahead"]), ACTIVE, reserved=reservation(status=long_ago)
    )
    on.put(pending("new"), pending("ahead", unschedulable_at=after(-600)))
    assert lists(on.settle(seconds=200)) == [
        ((pod_ref("new"), WORKLOAD), False),
        ((pod_ref("new"),), False),
    ]


def test_tombstones_stand_beside_a_hold_for_an_earlier_incarnation_too() -> None:
    """Without them, kube-controller-manager lists the finished pod again before any release."""
    ended = WorkloadState(WorkloadPhase.ENDED, "uid-2")
    for listed in ((WORKLOAD, pod_ref("a")), (WORKLOAD,)):
        on = stage(claim(*listed), ended)
        on.put(finished("a"))
        assert lists(on.settle(seconds=60)) == [((WORKLOAD, tomb("a")), False), ((), True)]


def test_a_hold_for_an_earlier_incarnation_leaves_when_another_holds() -> None:
    other = deployment_ref("other", "uid-other")
    on = stage(
        claim(pod_ref("a"), WORKLOAD, other),
        WorkloadState(WorkloadPhase.ACTIVE, "uid-2", wants=1),
        reserved=reservation(status=held_status(), deleting=True),
    )
    on.put(running("a"))
    second = reservation("other", workload="other", status=held_status(reserved_for=other))
    on.reservations["other"] = (second, WorkloadState(WorkloadPhase.ACTIVE, "uid-other", wants=1))
    assert lists(on.settle(seconds=5)) == [((pod_ref("a"), other), False)]
    assert list(on.reservations) == ["other"]


ASKED = {"claimctl.io/release": "uid-slice"}
NEVER = reservation(
    "first",
    workload="first",
    status=held_status(reserved_for=deployment_ref("first", "uid-first")),
    reallocate_timeout_seconds=None,
)


def out_of_reach(*reserved: ClaimReservation, workload: WorkloadState) -> DecisionStage:
    """Held for train, whose pod finds no node with the claim."""
    on = stage(claim(WORKLOAD), workload, reserved=reserved[0])
    for one in reserved[1:]:
        on.reservations[one.metadata.name] = (one, workload)
    on.put(pending("a", unschedulable_at=after(0)))
    return on


@pytest.mark.parametrize(
    ("reserved", "workload"),
    [
        ((reservation(status=held_status(), annotations=ASKED),), ACTIVE),
        ((NEVER, reservation(status=held_status())), GONE),
        ((NEVER, reservation(status=held_status(), annotations=ASKED)), GONE),
    ],
    ids=["a request", "another's end", "an end and a request"],
)
def test_whatever_else_a_claim_is_let_go_for_its_devices_are_given_up_for_waiting_pods(
    reserved: tuple[ClaimReservation, ...], workload: WorkloadState
) -> None:
    on = out_of_reach(*reserved, workload=workload)
    assert lists(on.settle(seconds=8))[-1] == ((), True)


def test_a_pod_that_will_be_bound_keeps_a_claim_that_is_asked_for() -> None:
    asked = reservation(status=held_status(), annotations=ASKED)
    on = out_of_reach(asked, workload=ACTIVE)
    on.put(pending("a"))
    assert on.settle(seconds=3600) == []


def test_a_pod_that_waits_for_an_allocation_somebody_left_behind_gets_another() -> None:
    on = stage(claim(), GONE, recorded=False)
    on.put(pending("a", unschedulable_at=after(0)))
    assert lists(on.settle(seconds=8)) == [((), True)]


@pytest.mark.parametrize(
    ("annotations", "workload"),
    [(None, ACTIVE), (ASKED, ACTIVE), (ASKED, GONE)],
    ids=["held", "asked for", "asked for, and ended"],
)
def test_tombstones_that_fill_the_list_go_for_the_next_pod(
    annotations: dict[str, str] | None, workload: WorkloadState
) -> None:
    names = [f"p{i}" for i in range(255)]
    made = reservation(status=held_status(), annotations=annotations)
    on = stage(claim(*map(tomb, names), WORKLOAD), workload, reserved=made)
    on.put(*map(finished, names), pending("next"))
    assert lists(on.settle(seconds=5)) == [((), True)]


def test_a_manual_hold_is_not_let_go_with_devices_that_another_one_goes_on_holding() -> None:
    manual = reservation(status=held_status(), retention_policy="Manual")
    on = out_of_reach(manual, workload=GONE)
    other = deployment_ref("other", "uid-other")
    second = reservation(
        "other", workload="other", status=held_status(), reallocate_timeout_seconds=None
    )
    on.reservations["other"] = (second, WorkloadState(WorkloadPhase.ACTIVE, "uid-other", wants=1))
    assert lists(on.settle(seconds=3600)) == [((WORKLOAD, other), False)]
