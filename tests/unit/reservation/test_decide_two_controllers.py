"""Two controllers that know different things about the past, at the same release."""

from __future__ import annotations

from datetime import datetime

import pytest
from msgspec.structs import replace

from claimctl.reservation.assessment.retention import Action, decide_retention
from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import WriteStatus
from claimctl.reservation.facts.reasons import Reason, ReleaseStep
from claimctl.reservation.facts.snapshot import Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import ClaimReservationStatus, ForceDeletedPod, ReleaseProgress
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    after,
    claim,
    deployment_ref,
    reservation,
)
from tests.support.stage import DecisionStage


def test_the_record_of_an_intent_outlives_a_controller_that_started_later() -> None:
    """The other one deallocates just now; the finalizer goes only where that record is."""
    listed = claim(deployment_ref())
    begun = ReleaseProgress(
        step=ReleaseStep.INTENT, reason=Reason.WORKLOAD_ENDED, claim_uid=listed.metadata.uid
    )
    made = reservation(
        status=ClaimReservationStatus(
            claim_uid=listed.metadata.uid, reserved_for=deployment_ref(), release=begun
        )
    )
    gone = WorkloadState(WorkloadPhase.ABSENT)
    on = DecisionStage(
        listed, {made.metadata.name: (made, gone)}, watched_since_before_allocation=False
    )
    on.settle(seconds=5)
    told = [write.status for write in on.writes if isinstance(write, WriteStatus)]
    assert told
    for status in told:
        assert status.release is not None
        assert (status.release.step, status.release.claim_uid) == (begun.step, begun.claim_uid)


GHOST = ForceDeletedPod(
    uid="g", name="lost", node_name="node-0", boot_id="boot-1", since=after(-60)
)
IDLE = WorkloadState(WorkloadPhase.IDLE, "uid-train")
RECORDED = ClaimReservationStatus(
    claim_uid="uid-slice", reserved_for=deployment_ref(), idle_since=NOW
)


@pytest.mark.parametrize(
    ("recorded", "idle_age", "expected"),
    [
        pytest.param(NOW, 59.0, Action.HOLD, id="not for long enough"),
        pytest.param(NOW, 60.0, Action.RELEASE, id="for long enough"),
        pytest.param(after(-86_400), 0.0, Action.HOLD, id="written by a clock that is behind"),
        pytest.param(after(86_400), 60.0, Action.RELEASE, id="written by a clock that is ahead"),
        pytest.param(after(-60), None, Action.RELEASE, id="only the record knows"),
        pytest.param(None, None, Action.HOLD, id="not on record yet"),
    ],
)
def test_an_idle_time_passes_on_our_own_clock(
    recorded: datetime | None, idle_age: float | None, expected: Action
) -> None:
    assert idle(replace(RECORDED, idle_since=recorded), idle_age) is expected


@pytest.mark.parametrize(
    ("uid", "reason", "expected"),
    [
        ("uid-slice", Reason.IDLE, Action.RELEASE),
        ("uid-other", Reason.IDLE, Action.HOLD),
        ("uid-slice", Reason.WORKLOAD_ENDED, Action.HOLD),
    ],
)
def test_who_has_waited_for_less_goes_along_with_a_release_that_has_begun(
    uid: str, reason: Reason, expected: Action
) -> None:
    begun = ReleaseProgress(step=ReleaseStep.INTENT, reason=reason, claim_uid=uid)
    assert idle(replace(RECORDED, release=begun), 5.0) is expected


def idle(status: ClaimReservationStatus, idle_age: float | None) -> Action:
    held = Held(reservation(status=status), IDLE, idle_age=idle_age)
    snapshot = Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name=CLAIM,
        claim=claim(deployment_ref()),
        reservations=(held,),
    )
    return decide_retention(snapshot, held, frozenset()).action


def test_times_that_another_clock_told_stay_as_they_are() -> None:
    """Neither those ahead of us nor those behind: each writer would correct the other."""
    for moment in (after(-86_400), after(86_400)):
        status = replace(RECORDED, idle_since=moment, last_consumer_time=moment)
        made = reservation(status=status)
        on = DecisionStage(claim(deployment_ref()), {made.metadata.name: (made, IDLE)})
        told = on.decide().statuses[made.metadata.name]
        assert (told.idle_since, told.last_consumer_time) == (moment, moment)


@pytest.mark.parametrize(
    ("before", "ghosts", "expected"),
    [
        pytest.param("", (), ("HistoryUnknown", "pods may have vanished"), id="nothing is told"),
        pytest.param("Settling", (), ("Settling", "as told"), id="another one settles"),
        pytest.param("Releasing", (), ("Releasing", "as told"), id="another one goes on"),
        pytest.param(
            "ConsumersLeft", (), ("HistoryUnknown", "pods may have vanished"), id="no longer true"
        ),
        pytest.param(
            "Releasing", (GHOST,), ("ForceDeletedPods", "pod lost vanished"), id="a new ghost"
        ),
    ],
)
def test_what_only_one_controller_waits_for_does_not_overwrite_what_another_has_told(
    before: str, ghosts: tuple[ForceDeletedPod, ...], expected: tuple[str, str]
) -> None:
    begun = ReleaseProgress(
        step=ReleaseStep.INTENT, reason=Reason.WORKLOAD_ENDED, claim_uid="uid-slice"
    )
    told = Condition(
        type="Released",
        status="False",
        last_transition_time=NOW,
        reason=before,
        message="as told",
    )
    made = reservation(
        status=replace(
            RECORDED,
            idle_since=None,
            release=begun,
            conditions=(told,) if before else (),
            force_deleted_pods=ghosts,
        )
    )
    on = DecisionStage(
        claim(deployment_ref()),
        {made.metadata.name: (made, WorkloadState(WorkloadPhase.ABSENT))},
        ghosts={each.uid: (each, 0.0) for each in ghosts},
        watched_since_before_allocation=False,
    )
    (found,) = (
        each
        for each in on.decide().statuses[made.metadata.name].conditions
        if each.type == "Released"
    )
    assert found.reason == expected[0]
    assert expected[1] in found.message
    assert ("pods may have vanished" in found.message) == (expected[0] == "HistoryUnknown")


def test_a_fence_on_record_stays_while_one_waits_for_what_only_it_knows() -> None:
    begun = ReleaseProgress(
        step=ReleaseStep.FENCED,
        reason=Reason.WORKLOAD_ENDED,
        claim_uid="uid-slice",
        resource_version="10",
    )
    made = reservation(status=replace(RECORDED, idle_since=None, release=begun))
    workload = WorkloadState(WorkloadPhase.ABSENT)
    on = DecisionStage(
        claim(shared=True, created_for=deployment_ref()),
        {made.metadata.name: (made, workload)},
        rules=Rules("native"),
        watched_since_before_allocation=False,
    )
    assert on.decide().statuses[made.metadata.name].release == begun


def test_an_idle_time_from_before_the_last_use_is_told_anew() -> None:
    """Nobody led while the claim was used, so nobody took it out."""
    status = replace(RECORDED, idle_since=after(-300))
    held = Held(reservation(status=status), IDLE, idle_age=2.0, idle_outdated=True)
    snapshot = Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name=CLAIM,
        claim=claim(deployment_ref()),
        reservations=(held,),
    )
    assert decide(snapshot).statuses[held.name].idle_since == NOW
