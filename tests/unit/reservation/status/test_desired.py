"""Statuses stay within what the schema and etcd take, however much there is to tell."""

from __future__ import annotations

import json
from dataclasses import replace as replaced
from datetime import timedelta
from typing import Any

import pytest
from kube_in_process.crd.structural import validate
from kube_in_process.errors import FieldError
from msgspec.structs import replace

from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import Decision, SetFinalizer, WriteStatus
from claimctl.reservation.facts.reasons import Reason, ReleaseStep
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.status.conditions import LONGEST_MESSAGE
from claimctl.reservation.status.desired import MOMENT, NOTHING_YET, refused_status
from claimctl.reservation.users.ghosts import MOST
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.fitted import status_body
from claimctl.wire.limits import MAX_ITEMS, TEN_YEARS
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import ClaimReservationStatus, ForceDeletedPod, ReleaseProgress
from tests.support.builders import (
    NOW,
    after,
    claim,
    deployment_ref,
    pod_ref,
    reservation,
    running,
    written_by_claimctl,
)
from tests.support.claim_cases import status_with
from tests.support.crds import definitions
from tests.support.stage import DecisionStage

ETCD_TAKES = 1_500_000
"""Bytes of a request; managedFields come on top of the status."""
MANY = 3 * MOST
ACTIVE = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=3)
GONE = WorkloadState(WorkloadPhase.ABSENT)


def ghost(number: int, **changes: Any) -> ForceDeletedPod:
    """One whose fields are as long as Kubernetes makes them."""
    made = ForceDeletedPod(
        uid=f"{number:036d}",
        name=f"{number:0253d}",
        node_name=f"{number:0253d}",
        boot_id=f"{number:036d}",
        since=NOW,
    )
    return replace(made, **changes)


def desired(on: DecisionStage) -> ClaimReservationStatus:
    return on.decide().statuses["train-slice"]


def stage(
    *ghosts: ForceDeletedPod, recorded: tuple[ForceDeletedPod, ...] = (), nodes: int = 0
) -> DecisionStage:
    made = reservation(
        status=ClaimReservationStatus(
            claim_uid="uid-slice",
            reserved_for=deployment_ref(),
            force_deleted_pods=recorded,
        )
    )
    on = DecisionStage(claim(deployment_ref()), {"train-slice": (made, ACTIVE if nodes else GONE)})
    on.ghosts = {each.uid: (each, 0.0) for each in (*recorded, *ghosts)}
    on.put(*(running(f"pod-{number}", f"{number:0253d}") for number in range(nodes)))
    return on


def refusals(status: dict[str, Any]) -> list[FieldError]:
    """What the schema of ClaimReservations does not take of a status."""
    [definition] = [each for each in definitions() if "claimreservations." in str(each["metadata"])]
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return validate(schema["properties"]["status"], json.loads(json.dumps(status)))


def condition(status: ClaimReservationStatus, type_: str) -> Condition:
    return next(each for each in status.conditions if each.type == type_)


def test_a_status_with_more_than_fits_is_one_that_the_schema_and_etcd_take() -> None:
    status = desired(stage(*map(ghost, range(MANY)), nodes=MANY))
    assert (len(status.nodes), len(status.force_deleted_pods)) == (MOST, MOST)
    body = status_body(status)
    assert refusals(body) == []
    assert len(json.dumps(body)) < ETCD_TAKES * 2 / 3
    assert MOST <= MAX_ITEMS


def test_what_is_left_out_is_said() -> None:
    shorten = condition(desired(stage(*map(ghost, range(MANY)), nodes=MANY)), "Consistent")
    assert (shorten.status, shorten.reason) == ("True", "StatusShortened")
    assert shorten.message == (
        "the status lists 1000 nodes and vanished pods, which is its limit; all of them count"
    )
    assert condition(desired(stage(nodes=MOST)), "Consistent").reason != "StatusShortened"
    nodes = condition(desired(stage(nodes=MOST + 1)), "Consistent")
    assert nodes.message.startswith("the status lists 1000 nodes, which is its limit")


def test_what_is_on_record_stays_and_the_rest_follows_as_places_become_free() -> None:
    recorded = tuple(ghost(number) for number in range(MANY, MANY + MOST - 1))
    status = desired(stage(*map(ghost, range(10)), recorded=recorded))
    assert status.force_deleted_pods == (ghost(0), *recorded)
    again = desired(stage(*map(ghost, range(1, 10)), recorded=status.force_deleted_pods))
    assert again.force_deleted_pods == status.force_deleted_pods


def test_a_ghost_that_has_no_place_on_record_counts_for_its_whole_grace() -> None:
    """The last one of many that vanished keeps the claim allocated, though nobody wrote it down."""
    on = stage(*map(ghost, range(MANY)))
    last = ghost(MANY)
    on.ghosts = {uid: (each, -301.0) for uid, (each, _) in on.ghosts.items()}
    on.ghosts[last.uid] = (last, 0.0)
    recorded = tuple(ghost(number, uid=f"r-{number}") for number in range(MOST))
    made, workload = on.reservations["train-slice"]
    full = replace(made, status=replace(made.status, force_deleted_pods=recorded))
    on.reservations["train-slice"] = full, workload
    on.ghosts |= {each.uid: (each, 0.0) for each in recorded}
    assert last not in desired(on).force_deleted_pods
    assert on.settle(seconds=299) == []
    assert on.settle(seconds=10) != []


@pytest.mark.parametrize(
    ("odd", "told"),
    [
        (ghost(0, uid="u" * 129), ()),
        (ghost(0, name="n" * 254), (ghost(0, name=""),)),
        (ghost(0, boot_id="b" * 129), (ghost(0, boot_id=""),)),
        (
            ghost(0, termination_grace_period_seconds=2**63 - 1),
            (ghost(0, termination_grace_period_seconds=TEN_YEARS),),
        ),
    ],
)
def test_what_the_schema_does_not_take_of_a_ghost_is_not_told_and_the_ghost_counts(
    odd: ForceDeletedPod, told: tuple[ForceDeletedPod, ...]
) -> None:
    on = stage(odd)
    status = desired(on)
    assert status.force_deleted_pods == told
    assert condition(status, "Released").reason == "ForceDeletedPods"
    assert refusals(status_body(status)) == []


def test_a_release_that_waits_for_many_names_a_few() -> None:
    released = condition(desired(stage(*map(ghost, range(MANY)))), "Released")
    assert len(released.message) <= LONGEST_MESSAGE
    on = stage(*(ghost(number, name=f"p-{number}", node_name="n") for number in range(9)))
    message = condition(desired(on), "Released").message
    assert message.count("vanished while running") == 3
    assert message.endswith("; and 6 more")


def test_a_refusal_takes_the_place_of_ready_and_is_written_once() -> None:
    wanted = status_with(("Ready", "True", "Ready"), ("Reserved", "True", "Reserved"))
    first = refused_status(reservation(), wanted, Reason.FORBIDDEN, "no", NOW)
    assert first.conditions == (
        Condition(
            type="Ready",
            status="False",
            reason="Forbidden",
            message="no",
            observed_generation=1,
            last_transition_time=NOW,
        ),
        *status_with(("Reserved", "True", "Reserved")).conditions,
    )
    again = refused_status(reservation(status=first), wanted, Reason.FORBIDDEN, "no", after(60))
    assert again == first


def test_a_refusal_of_any_length_is_a_message_that_the_schema_takes() -> None:
    text = "x" * 100_000
    (ready,) = refused_status(reservation(), status_with(), Reason.INVALID, text, NOW).conditions
    assert (ready.reason, len(ready.message)) == ("Invalid", LONGEST_MESSAGE)
    assert ready.message.endswith("x...")


def held_claim(*, recorded: bool = False, shown: bool = True) -> DecisionStage:
    """A claim that has just got its hold, as a watch showed it."""
    status = ClaimReservationStatus(claim_uid="uid-slice", reserved_for=deployment_ref())
    made = reservation(status=status if recorded else ClaimReservationStatus())
    held = claim(deployment_ref())
    if shown:
        held = written_by_claimctl(held, {deployment_ref().uid})
    return DecisionStage(held, {"train-slice": (made, ACTIVE)})


def due(on: DecisionStage, **changes: Any) -> Decision:
    snapshot = on.snapshot()
    (held,) = snapshot.reservations
    return decide(replaced(snapshot, reservations=(replaced(held, **changes),)))


def test_a_new_hold_is_told_when_nothing_more_changed_for_a_moment() -> None:
    early = due(held_claim(), due_age=0.25)
    assert early.write is None
    assert early.after == pytest.approx(MOMENT - 0.25)
    assert isinstance(due(held_claim(), due_age=MOMENT).write, WriteStatus)
    assert due(held_claim(), due_age=0.0).write is None


def test_a_hold_that_only_the_status_could_tell_is_recorded_at_once() -> None:
    assert isinstance(due(held_claim(shown=False), due_age=0.0).write, WriteStatus)


def test_a_hold_in_place_of_another_is_recorded_at_once() -> None:
    """Until then, the recorded one counts."""
    on = held_claim(recorded=True)
    made, _ = on.reservations["train-slice"]
    old = replace(deployment_ref(), uid="uid-old")
    for changed in ({"reserved_for": old}, {"claim_uid": "uid-old"}):
        status = replace(made.status, **changed)
        on.reservations["train-slice"] = (reservation(status=status), ACTIVE)
        assert isinstance(due(on, due_age=0.0).write, WriteStatus)


def test_that_others_released_the_claim_is_told_after_a_moment() -> None:
    on = held_claim()
    on.settle()
    told, _ = on.reservations["train-slice"]
    status = replace(told.status, reserved_for=None)
    free = claim(allocated=False, finalizer=False)
    on = DecisionStage(free, {"train-slice": (reservation(status=status), ACTIVE)})
    assert due(on, due_age=MOMENT - 0.1).write is None
    assert isinstance(due(on, due_age=MOMENT).write, WriteStatus)


def test_counts_wait_longer_than_conditions() -> None:
    on = held_claim()
    on.settle()
    on.put(running("a"))
    counts = due(on, due_age=5.0, status_age=5.0)
    assert counts.write is None
    assert counts.after == pytest.approx(on.rules.status_seconds - 5.0)
    late = on.rules.status_seconds
    assert isinstance(due(on, due_age=late, status_age=late).write, WriteStatus)


def test_the_time_of_the_last_consumer_waits_for_the_end_of_a_job_only() -> None:
    """The time until devices out of reach are given up counts from it."""
    on = held_claim()
    on.put(running("a"))
    on.settle()
    on.remove("a")
    recent = 5.0
    early = due(on, due_age=MOMENT, status_age=recent)
    assert early.write is None
    late = due(on, due_age=2 * MOMENT, status_age=recent).write
    assert isinstance(late, WriteStatus)
    assert late.status.last_consumer_time is not None


@pytest.mark.parametrize("changes", [{"template_missing": True}, {"template_refused": "no"}])
def test_what_is_wrong_with_a_template_is_told_at_once(changes: dict[str, Any]) -> None:
    """The next reconcile asks for the template again, and knows nothing of this one."""
    made = reservation(resource_claim_template_name="slices")
    snapshot = replaced(DecisionStage(None, {"train-slice": (made, ACTIVE)}).snapshot(), **changes)
    (held,) = snapshot.reservations
    decision = decide(replaced(snapshot, reservations=(replaced(held, due_age=0.0),)))
    assert isinstance(decision.write, WriteStatus)


def test_that_a_claim_waits_for_its_first_pod_is_told_last() -> None:
    on = DecisionStage(claim(allocated=False), {"train-slice": (reservation(), ACTIVE)})
    assert due(on, due_age=MOMENT).write is None
    assert isinstance(due(on, due_age=NOTHING_YET).write, WriteStatus)


def test_that_a_claim_without_devices_has_a_problem_is_told_after_a_moment() -> None:
    """Only what is as it should be can wait for the first pod."""
    on = DecisionStage(claim(allocated=False), {"train-slice": (reservation(), ACTIVE)})
    on.put(running("stranded"))
    assert isinstance(due(on, due_age=MOMENT).write, WriteStatus)


def test_an_allocation_without_a_time_counts_from_when_it_was_first_told() -> None:
    on = held_claim()
    assert desired(on).allocation_time == on.snapshot().now
    made, _ = on.reservations["train-slice"]
    earlier = NOW - timedelta(hours=1)
    status = replace(made.status, claim_uid="uid-slice", allocation_time=earlier)
    on.reservations["train-slice"] = (reservation(status=status), ACTIVE)
    assert desired(on).allocation_time == earlier


def test_a_reservation_that_goes_after_its_release_gets_no_last_status() -> None:
    recorded = held_claim(recorded=True).reservations["train-slice"][0]
    going = reservation(deleting=True, status=recorded.status)
    on = DecisionStage(claim(allocated=False, finalizer=False), {"train-slice": (going, GONE)})
    assert not isinstance(due(on).write, WriteStatus)
    release = ReleaseProgress(step="Intent", reason="Idle", since=NOW, claim_uid="uid-slice")
    begun = reservation(deleting=True, status=replace(recorded.status, release=release))
    on = DecisionStage(claim(allocated=False, finalizer=False), {"train-slice": (begun, GONE)})
    decision = due(on)
    assert decision.write == SetFinalizer(begun, present=False)
    assert decision.statuses["train-slice"].release is None
    kept = replace(begun.metadata, finalizers=(*begun.metadata.finalizers, "foregroundDeletion"))
    staying = replace(begun, metadata=kept)
    on = DecisionStage(claim(allocated=False, finalizer=False), {"train-slice": (staying, GONE)})
    assert isinstance(due(on).write, WriteStatus)
    allocated_anew = DecisionStage(claim(pod_ref("new")), {"train-slice": (begun, GONE)})
    allocated_anew.put(running("new"))
    assert isinstance(due(allocated_anew).write, WriteStatus)


def reporting(
    status: ClaimReservationStatus | None = None,
    *,
    on: ResourceClaim | None = None,
    workload: WorkloadState = ACTIVE,
) -> DecisionStage:
    """A held claim with a running pod, whose reservation has another status than it should have."""
    listed = written_by_claimctl(claim(deployment_ref(), pod_ref("a")), ["uid-train"])
    made = reservation(status=status or ClaimReservationStatus())
    on_stage = DecisionStage(on or listed, {"train-slice": (made, workload)})
    on_stage.put(running("a"))
    on_stage.time += 60
    return on_stage


def last(on: DecisionStage) -> bool | None:
    """Whether the status is the last write; None if no status is written."""
    write = on.decide().write
    return write.last if isinstance(write, WriteStatus) else None


def test_nothing_is_left_to_do_after_a_status_that_reports_a_hold() -> None:
    assert last(reporting()) is True


def _with_another(on: DecisionStage) -> DecisionStage:
    made = reservation("other", workload="other")
    on.reservations["other"] = made, WorkloadState(WorkloadPhase.ACTIVE, "uid-other", wants=1)
    return on


RELEASE = ReleaseProgress(
    step=ReleaseStep.INTENT, reason=Reason.IDLE, since=NOW, claim_uid="uid-slice"
)
UNUSED = DecisionStage(
    written_by_claimctl(claim(deployment_ref()), ["uid-train"]),
    {"train-slice": (reservation(status=ClaimReservationStatus()), ACTIVE)},
)


@pytest.mark.parametrize(
    "on",
    [
        pytest.param(reporting(ClaimReservationStatus(release=RELEASE)), id="a release ends"),
        pytest.param(_with_another(reporting()), id="another reservation"),
        pytest.param(UNUSED, id="no pod uses the claim"),
        pytest.param(reporting(workload=GONE), id="a release"),
        pytest.param(stage(ghost(1), nodes=1), id="a pod has vanished"),
        pytest.param(reporting(on=claim(allocated=False)), id="nothing is allocated"),
    ],
)
def test_a_decision_may_follow_from_any_other_status(on: DecisionStage) -> None:
    assert last(on) is not True


def test_a_decision_may_follow_from_the_name_of_a_group() -> None:
    on = reporting(workload=replaced(ACTIVE, pod_group="train"))
    assert last(on) is False
