"""Whether a reservation holds its claim, releases it, or asks for nothing."""

from __future__ import annotations

from dataclasses import replace as replace_state
from datetime import timedelta

import pytest
from msgspec.structs import replace

from claimctl.reservation.assessment.retention import Action, RetentionDecision, decide_retention
from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import (
    ConfirmWorkload,
    ListChildren,
    RemoveClaimFinalizer,
    SetFinalizer,
    WriteList,
)
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import OwnerReference
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    after,
    claim,
    deployment_ref,
    finished,
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
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)


def test_an_idle_hold_is_released_in_one_write_after_its_timeout() -> None:
    on = stage(claim(WORKLOAD), IDLE)
    assert on.settle(seconds=59) == []
    writes = on.settle(seconds=2)
    assert [type(w) for w in writes] == [WriteList, RemoveClaimFinalizer]
    assert lists(writes) == [((), True)]
    assert condition(on, "Released") == ("True", "Idle")
    assert on.settle(seconds=600) == []


def test_manual_holds_even_after_the_end_until_it_is_asked_to_release() -> None:
    reserved = reservation(status=held_status(), retention_policy="Manual")
    on = stage(claim(WORKLOAD), GONE, reserved=reserved)
    assert on.settle(seconds=1000) == []
    asked = replace(reserved.metadata, annotations={"claimctl.io/release": "uid-slice"})
    on.reservations["train-slice"] = (replace(reserved, metadata=asked), GONE)
    assert lists(on.settle(seconds=1)) == [((), True)]
    assert on.reservations["train-slice"][0].metadata.annotations is None


def test_two_holders_let_go_one_after_the_other() -> None:
    other = deployment_ref("other", "uid-other")
    on = stage(claim(WORKLOAD, other), GONE)
    second = reservation("other", workload="other", status=held_status(reserved_for=other))
    on.reservations["other"] = (second, WorkloadState(WorkloadPhase.ACTIVE, "uid-other", wants=1))
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


def test_a_replica_set_that_lives_on_keeps_the_hold_of_its_deleted_deployment() -> None:
    on = stage(
        claim(WORKLOAD), WorkloadState(WorkloadPhase.ABSENT, orphaned_replica_sets=("train-abc",))
    )
    assert on.settle(seconds=3600) == []


def decision(
    workload: WorkloadState,
    on: ResourceClaim | None = None,
    *pods: Pod,
    reserved: ClaimReservation | None = None,
    rules: Rules = HOLD,
) -> RetentionDecision:
    """What one reservation of the claim asks for; by default it holds the claim already."""
    held = Held(reserved or reservation(status=held_status()), workload)
    snapshot = Snapshot(NOW, NAMESPACE, CLAIM, on or claim(WORKLOAD), (held,), pods, rules=rules)
    return decide_retention(snapshot, held, frozenset())


def recorded(
    *, deleting: bool = False, asked: str = "", retention_policy: str = "WhileRunning"
) -> ClaimReservation:
    """A reservation that holds the claim."""
    return reservation(
        status=held_status(),
        deleting=deleting,
        annotations={"claimctl.io/release": asked} if asked else None,
        retention_policy=retention_policy,
    )


NEW = reservation()
"""A reservation that has held nothing yet."""
ENDED = WorkloadState(WorkloadPhase.ENDED, "uid-train")
UNREADABLE = WorkloadState(WorkloadPhase.UNREADABLE, "uid-train", problem="cannot be read")
HELD_POD = claim(pod_ref("a"), WORKLOAD)
IDLE_SINCE = reservation(status=held_status(idle_since=after(-60)))
FULL = claim(*(tomb(f"p{number}") for number in range(255)), WORKLOAD)
FILLING = tuple(finished(f"p{number}") for number in range(255))


@pytest.mark.parametrize(
    ("found", "action", "reason"),
    [
        pytest.param(
            decision(ACTIVE), Action.HOLD, Reason.WORKLOAD_WANTS_PODS, id="the workload wants pods"
        ),
        pytest.param(
            decision(GONE), Action.RELEASE, Reason.WORKLOAD_ENDED, id="the workload is gone"
        ),
        pytest.param(
            decision(ENDED), Action.RELEASE, Reason.WORKLOAD_ENDED, id="the workload has ended"
        ),
        pytest.param(
            decision(ENDED, reserved=recorded(retention_policy="Persistent")),
            Action.RELEASE,
            Reason.WORKLOAD_ENDED,
            id="the workload has ended, Persistent",
        ),
        pytest.param(
            decision(ENDED, reserved=recorded(retention_policy="Manual")),
            Action.HOLD,
            Reason.RETENTION,
            id="the workload has ended, Manual",
        ),
        pytest.param(
            decision(ENDED, reserved=recorded(retention_policy="WhileItRains")),
            Action.HOLD,
            Reason.RETENTION,
            id="the workload has ended, unknown policy",
        ),
        pytest.param(
            decision(IDLE), Action.HOLD, Reason.IDLE_TIMEOUT, id="idle, and not on record yet"
        ),
        pytest.param(
            decision(IDLE, reserved=IDLE_SINCE),
            Action.RELEASE,
            Reason.IDLE,
            id="idle for as long as the timeout",
        ),
        pytest.param(
            decision(IDLE, HELD_POD, running("a"), reserved=IDLE_SINCE),
            Action.HOLD,
            Reason.CONSUMERS_LEFT,
            id="idle, and a pod still uses the claim",
        ),
        pytest.param(
            decision(IDLE, reserved=recorded(retention_policy="Persistent")),
            Action.HOLD,
            Reason.RETENTION,
            id="idle, Persistent",
        ),
        pytest.param(
            decision(ACTIVE, claim(WORKLOAD, deleting=True)),
            Action.RELEASE,
            Reason.CLAIM_DELETED,
            id="the claim is being deleted",
        ),
        pytest.param(
            decision(ACTIVE, reserved=recorded(deleting=True)),
            Action.RELEASE,
            Reason.WITHDRAWN,
            id="the reservation is being deleted",
        ),
        pytest.param(
            decision(ACTIVE, claim(WORKLOAD, deleting=True), reserved=recorded(deleting=True)),
            Action.RELEASE,
            Reason.CLAIM_DELETED,
            id="both are being deleted",
        ),
        pytest.param(
            decision(ACTIVE, reserved=recorded(asked="uid-slice")),
            Action.RELEASE,
            Reason.RELEASE_REQUESTED,
            id="a release is requested",
        ),
        pytest.param(
            decision(ACTIVE, reserved=recorded(asked="uid-of-an-earlier-claim")),
            Action.HOLD,
            Reason.WORKLOAD_WANTS_PODS,
            id="a release of an earlier claim was requested",
        ),
        pytest.param(
            decision(UNREADABLE), Action.HOLD, Reason.UNREADABLE, id="the workload cannot be read"
        ),
        pytest.param(
            decision(UNREADABLE, reserved=NEW),
            Action.NONE,
            Reason.UNREADABLE,
            id="new, and the workload cannot be read",
        ),
        pytest.param(
            decision(ACTIVE, reserved=reservation(kind="CronJob")),
            Action.NONE,
            Reason.WORKLOAD_KIND_UNSUPPORTED,
            id="an unsupported kind",
        ),
        pytest.param(
            decision(GONE, claim(pod_ref("a")), reserved=NEW),
            Action.NONE,
            Reason.WORKLOAD_NOT_FOUND,
            id="new, and the workload is gone",
        ),
        pytest.param(
            decision(ENDED, claim(pod_ref("a")), reserved=NEW),
            Action.NONE,
            Reason.WORKLOAD_ENDED,
            id="new, and the workload has ended",
        ),
        pytest.param(
            decision(ENDED, claim(), reserved=NEW),
            Action.RELEASE,
            Reason.WORKLOAD_ENDED,
            id="new, the workload has ended, and no other component deallocates",
        ),
        pytest.param(
            decision(replace_state(ACTIVE, names_claim=False), claim(pod_ref("a")), reserved=NEW),
            Action.NONE,
            Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE,
            id="new, and the pod template does not name the claim",
        ),
        pytest.param(
            decision(ACTIVE, claim(shared=True), reserved=NEW, rules=NATIVE),
            Action.NONE,
            Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD,
            id="new, and the dialect refuses the claim",
        ),
        pytest.param(
            decision(
                ACTIVE,
                claim(shared=True, created_for=deployment_ref(uid="uid-old")),
                reserved=recorded(),
                rules=NATIVE,
            ),
            Action.RELEASE,
            Reason.WORKLOAD_RECREATED,
            id="the claim was created for an earlier incarnation",
        ),
        pytest.param(
            decision(ACTIVE, FULL, *FILLING, pending("waits")),
            Action.RELEASE,
            Reason.HOLD_YIELDED,
            id="tombstones fill the list, and a pod waits for a place",
        ),
        pytest.param(
            decision(ACTIVE, FULL, *FILLING),
            Action.HOLD,
            Reason.WORKLOAD_WANTS_PODS,
            id="tombstones fill the list, and no pod waits",
        ),
    ],
)
def test_a_reservation_asks_for(found: RetentionDecision, action: Action, reason: Reason) -> None:
    """With HOLD, ``reason`` is why the claim is not released."""
    said = found.blocker.reason if found.action is Action.HOLD and found.blocker else found.reason
    assert (found.action, said) == (action, reason)


@pytest.mark.parametrize("ahead", [timedelta(0), timedelta(days=1)])
def test_a_pod_that_cannot_be_scheduled_is_looked_at_again_after_the_timeout(
    ahead: timedelta,
) -> None:
    """Also if its scheduler's clock is ahead: this process's clock may be set right meanwhile."""
    reserved = reservation(status=held_status(), reallocate_timeout_seconds=5)
    waiting = pending("a", unschedulable_at=NOW + ahead)
    blocker = decision(ACTIVE, claim(WORKLOAD), waiting, reserved=reserved).blocker
    assert blocker is not None
    assert blocker.after == 5


UNKNOWN = WorkloadState(WorkloadPhase.UNKNOWN, "uid-train", problem="ended fails: no such key")


@pytest.mark.parametrize("policy", ["WhileRunning", "Persistent"])
@pytest.mark.parametrize("kept", [(), (pending("late", unschedulable_at=NOW),)])
def test_an_unknown_state_holds_and_says_why(policy: str, kept: tuple[Pod, ...]) -> None:
    """Also beside pods that cannot be scheduled: nothing is given up for them."""
    reserved = reservation(status=held_status(), retention_policy=policy)
    on = stage(claim(WORKLOAD), UNKNOWN, reserved=reserved)
    on.pods = {pod.metadata.name: pod for pod in kept}
    assert lists(on.settle(seconds=100_000)) == []
    assert condition(on, "Ready") == ("False", "WorkloadStateUnknown")
    assert condition(on, "Reserved") == ("True", "Reserved")


def test_an_unknown_state_does_not_keep_a_claim_from_becoming_held() -> None:
    on = stage(claim(pod_ref("one")), UNKNOWN)
    on.pods = {"one": running("one")}
    assert lists(on.settle(seconds=10)) == [((pod_ref("one"), WORKLOAD), False)]


def test_a_kind_that_cannot_be_read_keeps_its_hold_until_a_user_withdraws_it() -> None:
    unread = WorkloadState(WorkloadPhase.UNKNOWN, problem="the cluster serves no JobSet")
    on = stage(claim(WORKLOAD), unread, reserved=reservation(status=held_status()))
    assert lists(on.settle(seconds=100_000)) == []
    going = reservation(status=held_status(), deleting=True)
    on.reservations["train-slice"] = (going, unread)
    assert lists(on.settle(seconds=600))[-1] == ((), True)


OVER = WorkloadState(
    WorkloadPhase.ENDED, "uid-train", by_pods=True, root="uid-train", children=None, confirmed=True
)


@pytest.mark.parametrize("phase", [WorkloadPhase.ENDED, WorkloadPhase.ABSENT])
def test_children_that_are_left_keep_the_claim_of_a_workload_that_is_over(
    phase: WorkloadPhase,
) -> None:
    on = stage(claim(WORKLOAD), replace_state(OVER, phase=phase))
    on.children = ("Job train-1",)
    assert lists(on.settle(seconds=30)) == []
    blocked = on.reservations["train-slice"][0].status.conditions
    assert "objects that it made are left: Job train-1" in str(blocked)
    on.children = ()
    assert lists(on.settle(seconds=60)) == [((), True)]


@pytest.mark.parametrize(
    ("state", "orphans"),
    [
        (OVER, False),
        (replace_state(OVER, deleting=True), True),
        (replace_state(OVER, phase=WorkloadPhase.ABSENT, uid=""), True),
    ],
)
def test_objects_without_a_controller_may_be_children_once_the_workload_is_being_deleted(
    state: WorkloadState, orphans: bool
) -> None:
    (need,) = decide(stage(claim(WORKLOAD), state).snapshot()).needs
    assert isinstance(need, ListChildren)
    assert need.orphans is orphans


def test_an_end_by_a_rule_is_read_live_before_anything_depends_on_it() -> None:
    """A cache may be behind, and such an end may be over again."""
    cached = replace_state(OVER, confirmed=False)
    (need,) = decide(stage(claim(WORKLOAD), cached).snapshot()).needs
    assert isinstance(need, ConfirmWorkload)
    assert need.reference.name == "train"
    for state in (cached, OVER):
        in_use = stage(claim(WORKLOAD, pod_ref("one")), state)
        in_use.put(running("one"))
        assert decide(in_use.snapshot()).needs == (), "pods keep the claim anyway"


def test_children_of_a_workload_whose_pods_never_named_the_claim_keep_it() -> None:
    on = stage(claim(WORKLOAD), replace_state(OVER, names_claim=False))
    on.children = ("Job train-1",)
    assert lists(on.settle(seconds=120, limit=300)) == []


def test_children_that_are_left_keep_the_claim_of_a_collected_reservation() -> None:
    """Garbage collection deletes the ClaimReservation of a workload that is gone."""
    made = reservation(status=held_status(), deleting=True)
    owner = OwnerReference(
        api_version="jobset.x-k8s.io/v1alpha2",
        kind="JobSet",
        name="train",
        uid="uid-train",
        controller=True,
    )
    made = replace(made, metadata=replace(made.metadata, owner_references=(owner,)))
    gone = replace_state(OVER, phase=WorkloadPhase.ABSENT, uid="")
    on = stage(claim(WORKLOAD), gone, reserved=made)
    on.children = ("Job train-1",)
    assert lists(on.settle(seconds=30)) == []
    assert on.reservations
    on.children = ()
    assert lists(on.settle(seconds=60)) == [((), True)]
    assert on.reservations == {}


def test_the_claim_of_a_workload_that_only_its_pods_describe_waits_for_the_first_pod() -> None:
    waiting = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", by_pods=True, names_claim=False)
    on = stage(claim(pod_ref("one")), waiting, recorded=False)
    on.settle(seconds=10)
    assert condition(on, "Reserved") == ("False", "ClaimNotNamedByPod")
