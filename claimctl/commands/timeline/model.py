"""The timeline of one claim: spans in lanes, and marks. All times are in UTC."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import msgspec

from claimctl.cli.documents import Document, Part

WAITING, RUNNING = "Waiting", "Running"
"""The states of a pod's spans: it uses the claim and has not started, or it has started."""
UNKNOWN = "Unknown"
"""The state of a span of which nothing is known."""
GONE = "(gone)"
"""Stands for all pods that do not exist any more."""


class Lane(StrEnum):
    """What a span is about."""

    DEVICE = "device"
    """A device that the claim has."""
    HOLDER = "holder"
    """An entry of the claim's list that is not a pod: a workload or a PodGroup."""
    POD = "pod"


class Source(StrEnum):
    """Where a timeline comes from."""

    HISTORY = "history"
    """Every change since the claim was created."""
    OBJECTS = "objects"
    """The objects as they are now, and Events. What they do not say is missing."""


class TimelineSpan(Part, frozen=True, kw_only=False):
    """Something that lasted from ``start`` to ``end``."""

    lane: Lane
    name: str
    start: datetime
    end: datetime | None = None
    """None: it still lasts at the end of the timeline."""
    state: str = ""
    """Waiting or Running for a pod, Unknown if nothing is known of the time, else empty."""
    started_before: bool = False
    """True: it began at ``start`` or earlier; the objects do not say when."""


class Mark(Part, frozen=True, kw_only=False):
    """Something that happened at one moment."""

    at: datetime
    about: str = msgspec.field(name="object")
    """The object, like ``ResourceClaim/train-slice``."""
    reason: str
    message: str = ""
    warning: bool = False


FEW_PODS = 6
"""Up to so many pods have a bar of their own in pictures."""


class Timeline(Document, frozen=True, kw_only=False, tag="ClaimTimeline"):
    """Everything that is known about one claim between ``begin`` and ``end``."""

    namespace: str
    claim: str
    begin: datetime
    end: datetime
    spans: tuple[TimelineSpan, ...]
    marks: tuple[Mark, ...]
    source: Source
    notes: tuple[str, ...] = ()
    """What the reader must know about gaps."""

    @property
    def seconds(self) -> float:
        """How long the timeline is; never 0, so that places on it can be computed."""
        return max((self.end - self.begin).total_seconds(), 0.001)

    def place(self, at: datetime) -> float:
        """Where a time is, between 0 (``begin``) and 1 (``end``)."""
        return min(max((at - self.begin).total_seconds() / self.seconds, 0.0), 1.0)

    def of(self, lane: Lane, state: str = "") -> tuple[TimelineSpan, ...]:
        """The known spans of a lane; with ``state``, only those."""
        known = (span for span in self.spans if span.lane is lane and span.state != UNKNOWN)
        return tuple(span for span in known if state in ("", span.state))

    def rows(self, lane: Lane) -> dict[str, tuple[TimelineSpan, ...]]:
        """The spans of a lane by name, in the order of their first start."""
        rows: dict[str, list[TimelineSpan]] = {}
        of_lane = (span for span in self.spans if span.lane is lane)
        for span in sorted(of_lane, key=lambda span: span.start):
            rows.setdefault(span.name, []).append(span)
        return {name: tuple(spans) for name, spans in rows.items()}

    @property
    def many_pods(self) -> bool:
        """Whether pictures show how many pods there are, and no bar for each."""
        return len(self.rows(Lane.POD)) > FEW_PODS

    @property
    def bars(self) -> tuple[tuple[str, tuple[TimelineSpan, ...]], ...]:
        """What every picture shows as bars, by name: devices, holders, and pods if they are few."""
        bars = [*self.rows(Lane.DEVICE).items(), *self.rows(Lane.HOLDER).items()]
        for name, spans in self.rows(Lane.POD).items():
            if name == GONE or not self.many_pods:
                bars.append((f"pods/{name}", spans))
        return tuple(bars)

    @property
    def remarks(self) -> tuple[str, ...]:
        """Where the timeline comes from, and what it lacks."""
        source = "every change that the server made"
        if self.source is Source.OBJECTS:
            source = "the objects as they are now, and Events"
        return (f"Source: {source}.", *self.notes)


@dataclass(frozen=True, slots=True)
class CountAt:
    """From ``at`` on there are ``count`` of something."""

    at: datetime
    count: int


def levels(spans: Iterable[TimelineSpan]) -> tuple[CountAt, ...]:
    """How many of the spans there are at each time, as steps."""
    changes: dict[datetime, int] = {}
    for span in spans:
        changes[span.start] = changes.get(span.start, 0) + 1
        if span.end is not None:
            changes[span.end] = changes.get(span.end, 0) - 1
    steps: list[CountAt] = []
    count = 0
    for at in sorted(changes):
        if changes[at]:
            count += changes[at]
            steps.append(CountAt(at, count))
    return tuple(steps)


def most(steps: Sequence[CountAt]) -> int:
    """The highest level; 0 if there is none."""
    return max((step.count for step in steps), default=0)
