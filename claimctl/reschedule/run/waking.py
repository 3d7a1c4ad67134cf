"""Wakes the loop as soon as a kubelet refuses a pod: its owner may make the next one at once."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random

import structlog

from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError
from claimctl.kube.retry import Backoff
from claimctl.reschedule.plan.avoidance import ENOUGH
from claimctl.reschedule.plan.refusals import Refusal, refusal
from claimctl.reschedule.run.evicting import SCHEDULING_PODS
from claimctl.reschedule.shapes.scheduling import SchedulingPod
from claimctl.wire.seams import Clock

log = structlog.get_logger(__name__)

_FAILED = "status.phase=Failed"
MOST = 200
"""How many refused pods are remembered between two runs."""
_AGAIN = Backoff(first=1.0, cap=30.0)


@dataclass(slots=True)
class Refusals:
    """Watches pods that have failed.

    Args:
        woken: set for each pod that a node refused.
        react: called with all of them, from the second one of an owner on.
    """

    client: Client
    clock: Clock
    woken: asyncio.Event
    react: Callable[[Iterable[SchedulingPod]], Awaitable[None]]
    rng: Random
    _not_before: float = 0.0
    _recent: deque[SchedulingPod] = field(default_factory=lambda: deque(maxlen=MOST))

    async def run(self) -> None:
        """Watch until cancelled. A watch that fails begins again; its loss costs time only."""
        failures = 0
        while True:
            try:
                await self._watch()
                failures = 0
            except KubeError as error:
                failures += 1
                log.warning("cannot watch refused pods", error=str(error))
            await self.clock.sleep(_AGAIN.delay(failures, self.rng) if failures else 0.0)

    async def _watch(self) -> None:
        version = (
            await self.client.list(SCHEDULING_PODS, field_selector=_FAILED, partial=True)
        ).resource_version
        stream = self.client.watch(
            SCHEDULING_PODS, resource_version=version, field_selector=_FAILED
        )
        # a pod that was refused before the list is seen by the run that follows
        self.woken.set()
        async with aclosing(stream) as events:
            async for event in events:
                pod = event.object
                if isinstance(pod, SchedulingPod) and event.type == "ADDED":
                    await self._seen(pod)

    async def _seen(self, pod: SchedulingPod) -> None:
        if refusal(pod) is not Refusal.BY_NODE:
            return
        self._recent.append(pod)
        owner = pod.metadata.controller()
        if owner is None:
            return
        if sum(each.metadata.controller() == owner for each in self._recent) >= ENOUGH:
            await self._react()
        self.woken.set()

    async def _react(self) -> None:
        """React, but spend at most a fifth of the time on it: plans of large clusters take long."""
        began = self.clock.monotonic()
        if began >= self._not_before:
            await self.react(tuple(self._recent))
            ended = self.clock.monotonic()
            self._not_before = ended + 4 * (ended - began)
