"""Finds out how far a quiet watch has come: a probe is a second watch from the same version on.

A quiet stream brings a bookmark only about once a minute, and a late stream looks the same as a
quiet one. A short watch gets a bookmark within seconds. If that is its first event, the stream has
brought everything up to the bookmark's version.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass
from math import inf
from typing import Any

from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError
from claimctl.telemetry.face import LateLogger
from claimctl.wire.meta import reaches
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Clock

log = LateLogger(__name__)

_LOOK_SECONDS = 0.05
"""Time between two looks at the position."""
_GIVEN_SECONDS = 0.3
"""``catch_up`` waits this long for the stream before the first probe."""
_PAUSE_SECONDS = 1.0
"""Time between two probes of one ``catch_up``."""
_PROBE_SECONDS = 3
"""timeoutSeconds of a probe. The server sends the last bookmark two seconds before the end."""
_LEAD_SECONDS = (1.05, 0.55, 0.05)
"""How long before an expected ``catch_up`` probes begin.

A server answers the waiting probes about once a second: each 0 to 2.25 s after its start. An answer
from before the ``catch_up`` is of no use. Of three probes, half a second apart, one is left for the
first answer after it.
"""
_SAME_SECONDS = 0.3
"""Expected times that differ by less share a probe."""
_SILENT_SECONDS = 60.0
"""A warning is logged when no ``catch_up`` has succeeded for so long."""
_OVER_SECONDS = 30.0
"""A ``catch_up`` that failed longer ago than this does not count, if none failed since."""


@dataclass(slots=True)
class WatchPosition:
    """How far a cache has followed the server.

    Attributes:
        version: the version that the cache has reached; '' while it is being listed.
        reached: the same, but it stays while the cache is being listed.
        following: whether a watch is open.
        lists: how often the objects were listed.
    """

    version: str = ""
    reached: str = ""
    following: bool = False
    lists: int = 0

    def advance(self, version: str) -> None:
        self.version = self.reached = version


class _Silence:
    """Warns when the server does not say for long how far its watch has come.

    An API server learns that of etcd, from 3.4.31 and 3.5.13 on (kube-apiserver,
    ``RequestWatchProgress``). With an older etcd, it knows the version of the last object that
    changed, and the objects may not change for hours.
    """

    def __init__(
        self, resource: Resource[Any], clock: Clock, report_broken: Callable[[int], None]
    ) -> None:
        self._plural, self._clock, self._report_broken = resource.plural, clock, report_broken
        self._since: float | None = None
        self._last = -inf
        self._told = False

    def note(self, *, answered: bool) -> None:
        """Note whether a ``catch_up`` succeeded."""
        if answered:
            self._end()
            return
        now = self._clock.monotonic()
        if self._since is None or now - self._last > _OVER_SECONDS:
            self._since = now
        self._last = now
        if now - self._since < _SILENT_SECONDS:
            return
        if not self._told:
            log.warning(
                "the server does not say how far its watch has come; releases wait until it does, "
                "or until an object of the resource changes",
                resource=self._plural,
                seconds=round(now - self._since),
                hint="with an etcd older than 3.4.31 or 3.5.13, no API server says it",
            )
        self._told = True
        self._report_broken(1)

    def _end(self) -> None:
        if self._told:
            log.info("the server says again how far its watch has come", resource=self._plural)
            self._report_broken(0)
        self._since, self._told = None, False


class WatchProbes:
    """The probes beside the watch of one informer.

    Args:
        namespace: the namespace that the informer follows; empty means all.
        position: of the informer's cache. Probes advance it.
        report_broken: reports whether the watch is broken: 1, or 0.
    """

    def __init__(
        self,
        client: Client,
        resource: Resource[Any],
        namespace: str,
        clock: Clock,
        position: WatchPosition,
        report_broken: Callable[[int], None],
    ) -> None:
        self._client = client
        self._resource = resource
        self._namespace = namespace
        self._clock = clock
        self._position = position
        self._silence = _Silence(resource, clock, report_broken)
        self._probing = asyncio.Lock()
        self._expected: dict[float, asyncio.Task[None]] = {}
        """By the time at which it begins: the probes for an expected ``catch_up``."""

    async def catch_up(self, version: str, seconds: float) -> bool:
        """Wait until the cache has everything up to ``version``; False if not within ``seconds``.

        The stream may bring it, or one of the probes may.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wait_for(version, _GIVEN_SECONDS)
                while not self._reaches(version):
                    async with self._probing:
                        await self._probe_for(version)
                    await self._wait_for(version, _PAUSE_SECONDS)
        self._silence.note(answered=self._reaches(version))
        return self._reaches(version)

    def expect(self, seconds: float) -> None:
        """Expect a ``catch_up`` in so many seconds: probes that begin before it answer sooner."""
        now = self._clock.monotonic()
        for lead in _LEAD_SECONDS:
            at = max(now + seconds - lead, now)
            if all(abs(at - other) > _SAME_SECONDS for other in self._expected):
                self._expected[at] = self._start(self._probe_at(at))

    def cancel(self) -> None:
        """Cancel the probes for what is expected."""
        for probe in self._expected.values():
            probe.cancel()

    def _reaches(self, version: str) -> bool:
        return reaches(self._position.version, version)

    async def _wait_for(self, version: str, seconds: float) -> None:
        end = self._clock.monotonic() + seconds
        while self._clock.monotonic() < end and not self._reaches(version):
            await self._clock.sleep(_LOOK_SECONDS)

    async def _probe_for(self, version: str) -> None:
        """Probe until the cache has reached the version, or the probe has ended."""
        if self._reaches(version):
            return
        probe = self._start(self._probe())
        try:
            while not probe.done() and not self._reaches(version):
                await asyncio.wait((probe,), timeout=_LOOK_SECONDS)
        finally:
            probe.cancel()
            await asyncio.wait((probe,))
        if not probe.cancelled():
            probe.result()

    async def _probe_at(self, at: float) -> None:
        try:
            await self._clock.sleep(max(at - self._clock.monotonic(), 0.0))
            await self._probe()
            # where pods change all the time, a probe ends at once; another must not follow at once
            await self._clock.sleep(_SAME_SECONDS)
        finally:
            del self._expected[at]

    def _start(self, probe: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.create_task(probe, name=f"probe of {self._resource.plural}")

    async def _probe(self) -> None:
        """Open a second watch from the last event on, and advance the position by its first event.

        If that is a bookmark, there was no event between the cache's version at the start of the
        probe and the bookmark's version. Any other event says nothing: the stream brings it, too.
        If the cache was listed anew meanwhile, the answer does not count: after a restore of etcd,
        versions begin again.
        """
        position = self._position
        since, lists = position.version, position.lists
        if not position.following or not since:
            return
        stream = self._client.watch(
            self._resource, self._namespace, resource_version=since, timeout_seconds=_PROBE_SECONDS
        )
        with suppress(KubeError):
            async with aclosing(stream):
                async for event in stream:
                    at, known = event.resource_version, position.version
                    # there was no event after ``since`` up to ``at``
                    valid = event.type == "BOOKMARK" and position.lists == lists and known
                    # the stream may have come beyond ``at`` meanwhile: the position never goes back
                    if valid and (known == since or reaches(at, known)):
                        position.advance(at)
                    return
