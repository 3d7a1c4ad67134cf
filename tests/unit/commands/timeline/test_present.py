"""A timeline from what objects and Events say now."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.commands.timeline.model import (
    GONE,
    RUNNING,
    UNKNOWN,
    WAITING,
    Lane,
    Mark,
    Source,
    TimelineSpan,
)
from claimctl.commands.timeline.present import Seen, timeline
from claimctl.commands.timeline.shapes import TimedEvent, TimedPod
from claimctl.wire.base import from_plain
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.coordination import EventSeries, ObjectReference
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus, ReleaseProgress
from tests.support.builders import after, claim, deployment_ref, pod_ref, reservation

HELD = claim(pod_ref("a"), deployment_ref())


def dated(found: ResourceClaim, created: float = 0.0) -> ResourceClaim:
    meta = replace(found.metadata, creation_timestamp=after(created))
    return replace(found, metadata=meta)


def stamp(seconds: float) -> str:
    return after(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def timed(name: str, phase: str, **state: dict[str, str]) -> TimedPod:
    plain = {
        "metadata": {"name": name, "creationTimestamp": stamp(1)},
        "status": {"phase": phase, "containerStatuses": [{"name": "c", "state": state}]},
    }
    return from_plain(plain, TimedPod)


def holding(**status: object) -> ClaimReservation:
    reserved = Condition(
        type="Reserved", status="True", reason="Reserved", last_transition_time=after(5)
    )
    return reservation(
        status=ClaimReservationStatus(
            reserved_for=deployment_ref(),
            allocation_time=after(2),
            conditions=(reserved,),
            **status,  # type: ignore[arg-type]  # the fields that a test wants
        )
    )


def test_times_come_from_conditions_and_containers() -> None:
    pods = (
        timed("a", "Running", running={"startedAt": stamp(4)}),
        timed("b", "Succeeded", terminated={"startedAt": stamp(3), "finishedAt": stamp(9)}),
        timed("c", "Pending", waiting={}),
    )
    found = timeline(Seen(after(100), dated(HELD), pods, (holding(),)))
    assert found.source is Source.OBJECTS
    assert {span for span in found.spans if span.state != UNKNOWN} == {
        TimelineSpan(Lane.DEVICE, "node-0/gpu-0", after(2)),
        TimelineSpan(Lane.HOLDER, "deployments/train", after(5)),
        TimelineSpan(Lane.POD, "a", after(1), after(4), WAITING),
        TimelineSpan(Lane.POD, "a", after(4), None, RUNNING),
        TimelineSpan(Lane.POD, "b", after(1), after(3), WAITING),
        TimelineSpan(Lane.POD, "b", after(3), after(9), RUNNING),
        TimelineSpan(Lane.POD, "c", after(1), None, WAITING),
    }


def test_what_began_at_an_unknown_time_says_so() -> None:
    found = timeline(Seen(after(100), dated(HELD, 7)))
    known = [each for each in found.spans if each.state != UNKNOWN]
    assert {(each.start, each.started_before) for each in known} == {(after(7), True)}
    assert "pods that are gone, and earlier allocations, but for what Events tell" in found.notes[0]


def test_what_objects_do_not_tell_is_not_known() -> None:
    found = timeline(Seen(after(100), dated(HELD), (), (holding(),)))
    assert [span for span in found.spans if span.state == UNKNOWN] == [
        TimelineSpan(Lane.DEVICE, "node-0/gpu-0", after(0), after(2), UNKNOWN),
        TimelineSpan(Lane.HOLDER, "deployments/train", after(0), after(5), UNKNOWN),
        TimelineSpan(Lane.POD, GONE, after(0), None, UNKNOWN),
    ]
    assert found.of(Lane.POD) == ()


def event(reason: str, at: float, **more: object) -> TimedEvent:
    time = after(at).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    about = ObjectReference(kind="ResourceClaim", name="slice")
    return TimedEvent(event_time=time, reason=reason, regarding=about, **more)  # type: ignore[arg-type]  # the fields that a test wants


def test_events_are_marks_and_a_condition_of_the_same_news_is_not_told_twice() -> None:
    events = (
        event("Reserved", 6, note="held", type="Normal"),
        event("Full", 8, note="full", type="Warning", series=EventSeries(count=3)),
    )
    found = timeline(Seen(after(100), dated(HELD), (), (holding(),), events))
    assert found.marks == (
        Mark(after(0), "ResourceClaim/slice", "Created", "created"),
        Mark(after(6), "ResourceClaim/slice", "Reserved", "held"),
        Mark(after(8), "ResourceClaim/slice", "Full", "full (3 times)", warning=True),
    )


def test_a_release_and_the_time_since_when_a_workload_is_idle_are_marks() -> None:
    release = ReleaseProgress(step="Fenced", reason="Idle", since=after(60))
    made = holding(idle_since=after(30), release=release)
    reasons = [each.reason for each in timeline(Seen(after(100), dated(HELD), (), (made,))).marks]
    assert reasons == ["Created", "Reserved", "IdleSince", "ReleaseFenced"]
