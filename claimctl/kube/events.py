"""Record Kubernetes Events: aggregated, with limits, and without blocking the caller."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

from cachetools import LRUCache
from msgspec.structs import replace

from claimctl.kube.client import Client
from claimctl.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from claimctl.parallel import wait_for
from claimctl.telemetry.face import LateLogger
from claimctl.wire.base import to_plain
from claimctl.wire.coordination import Event, EventSeries, ObjectReference, micro_time
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import EVENTS
from claimctl.wire.seams import Clock

log = LateLogger(__name__)


@dataclass(frozen=True, slots=True)
class EventLimits:
    """The limits of the recorder, in seconds and counts.

    Attributes:
        window: an event that repeats within this time after the last one belongs to its series.
        update_every: least time between two writes of one series.
        pending: distinct events that may wait to be written; further new ones are dropped.
        series: the number of series in memory; the series that was unseen longest is dropped first.
        burst, refill: the limit of new Events about one object: ``burst`` at once, and one more
            every ``refill`` seconds.
        drain: how long ``drain`` tries.
    """

    window: float = 360.0
    update_every: float = 30.0
    pending: int = 1000
    series: int = 4096
    burst: int = 25
    refill: float = 60.0
    drain: float = 5.0


@dataclass(slots=True)
class _Series:
    """One Event on the server: how often it was recorded, and how many of those are written.

    Events that are equal but for their names and times belong to one series.
    """

    first_at: datetime
    last_at: datetime
    last_seen: float
    count: int = 1
    written: int = 0
    written_at: float = 0.0
    stored: Event | None = None

    def repeats(self, count: int) -> EventSeries:
        return EventSeries(count=count, last_observed_time=micro_time(self.last_at))


@dataclass(slots=True)
class _Bucket:
    tokens: float
    at: float


class EventRecorder:
    """Records events.k8s.io/v1 Events in memory and writes them in the background.

    ``record`` adds to the memory; ``run`` writes. An Event that cannot be written is logged and
    dropped.

    Args:
        component: the reportingController, such as ``claimctl.io/controller``.
        instance: the reportingInstance, such as the pod's name.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        component: str,
        instance: str,
        limits: EventLimits | None = None,
    ) -> None:
        self._client = client
        self._clock = clock
        self._ours = Event(reporting_controller=component, reporting_instance=instance[:128])
        self._limits = limits or EventLimits()
        self._buckets: LRUCache[tuple[str, str], _Bucket] = LRUCache(self._limits.series)
        self._series: OrderedDict[Event, _Series] = OrderedDict()
        self._pending: OrderedDict[Event, None] = OrderedDict()
        self._wake = asyncio.Event()
        self._dropped = 0
        self._number = 0

    def record(
        self,
        regarding: ObjectReference,
        *,
        type: str,
        reason: str,
        note: str,
        action: str,
        related: ObjectReference | None = None,
    ) -> None:
        """Record an Event about ``regarding``; never waits, never raises."""
        # without the resourceVersion, which would make every event a new one
        about = replace(regarding, resource_version="")
        text = note if len(note) <= 1024 else f"{note[:1021]}..."
        event = replace(
            self._ours,
            regarding=about,
            type=type,
            reason=reason[:128],
            note=text,
            action=action[:128],
            related=related,
        )
        now = self._clock.monotonic()
        series = self._series.get(event)
        if series is not None and now - series.last_seen <= self._limits.window:
            series.count += 1
            series.last_seen = now
            series.last_at = self._clock.now()
        elif not self._take_token(about, now) or not self._begin(event, now):
            return
        self._series.move_to_end(event)
        self._pending[event] = None
        self._wake.set()

    async def run(self) -> None:
        """Write recorded Events until cancelled."""
        while True:
            now = self._clock.monotonic()
            due = [event for event in self._pending if self._due_at(event) <= now]
            for event in due:
                await self._write(event)
            if not due:
                await self._wait()

    async def drain(self) -> None:
        """Write all waiting Events, for at most ``drain`` seconds. Call this after ``run``."""
        try:
            async with asyncio.timeout(self._limits.drain):
                while self._pending:
                    await self._write(next(iter(self._pending)))
        except TimeoutError:
            log.warning("events not written before the end", count=len(self._pending))

    def _take_token(self, about: ObjectReference, now: float) -> bool:
        """Take a token from the bucket of the object; False if it is empty."""
        key = (about.namespace, about.uid or f"{about.kind}/{about.name}")
        bucket = self._buckets.setdefault(key, _Bucket(self._limits.burst, now))
        earned = (now - bucket.at) / self._limits.refill
        bucket.tokens = min(self._limits.burst, bucket.tokens + earned)
        bucket.at = now
        if bucket.tokens < 1:
            return False
        bucket.tokens -= 1
        return True

    def _begin(self, event: Event, now: float) -> bool:
        """Begin a series; False if too many events wait."""
        if len(self._pending) >= self._limits.pending:
            self._dropped += 1
            if self._dropped == 1:
                log.warning("too many events wait, new ones are dropped")
            return False
        moment = self._clock.now()
        self._series[event] = _Series(moment, moment, now)
        if len(self._series) > self._limits.series:
            oldest, _ = self._series.popitem(last=False)
            self._pending.pop(oldest, None)
        return True

    def _due_at(self, event: Event) -> float:
        series = self._series[event]
        return series.written_at + self._limits.update_every if series.written else 0.0

    async def _wait(self) -> None:
        self._wake.clear()
        first = min((self._due_at(event) for event in self._pending), default=None)
        await wait_for(self._wake, None if first is None else first - self._clock.monotonic())

    async def _write(self, event: Event) -> None:
        series = self._series.get(event)
        if series is None:
            self._pending.pop(event, None)
            return
        count = series.count
        try:
            await self._store(event, series, count)
        except KubeError as error:
            # count it as written: an Event is not worth many retries
            log.warning("event not written", reason=event.reason, error=str(error))
        series.written = count
        series.written_at = self._clock.monotonic()
        if series.count == count:
            self._pending.pop(event, None)

    async def _store(self, event: Event, series: _Series, count: int) -> None:
        if series.stored is not None:
            patch, meta = {"series": to_plain(series.repeats(count))}, series.stored.metadata
            try:
                series.stored = await self._client.merge_patch(EVENTS, meta, patch)
            except (NotFound, Conflict):
                # the Event expired on the server, or another client wrote it: begin a new one
                series.stored = None
            else:
                return
        try:
            series.stored = await self._create(event, series, count)
        except AlreadyExists:
            series.stored = await self._create(event, series, count)

    async def _create(self, event: Event, series: _Series, count: int) -> Event:
        # by convention, Events about cluster-scoped objects are in the namespace 'default'
        namespace = event.regarding.namespace or "default"
        body = replace(
            event,
            metadata=ObjectMeta(name=self._name(event.regarding.name), namespace=namespace),
            event_time=micro_time(series.first_at),
            # the API requires a count of at least 2 in a series
            series=series.repeats(count) if count > 1 else None,
        )
        return await self._client.create(EVENTS, body, namespace)

    def _name(self, about: str) -> str:
        """A unique name, from the time and a counter."""
        self._number += 1
        micros = int(self._clock.now().timestamp() * 1_000_000)
        return f"{about[:200].rstrip('-.')}.{micros:x}.{self._number:x}"
