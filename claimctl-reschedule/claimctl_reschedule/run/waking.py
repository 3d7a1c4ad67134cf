"""Wakes the loop as soon as a pod needs it: one that a kubelet refuses, or a critical one."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

import structlog

from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError
from claimctl.kube.retry import Backoff
from claimctl.wire.seams import Clock
from claimctl_reschedule.plan.avoidance import ENOUGH
from claimctl_reschedule.plan.policy import CriticalPods, Policy
from claimctl_reschedule.plan.refusals import Refusal, refusal
from claimctl_reschedule.plan.strategies.critical import waiting_since
from claimctl_reschedule.shapes.scheduling import SCHEDULING_PODS, SchedulingPod

log = structlog.get_logger(__name__)

FAILED = "status.phase=Failed"
WITHOUT_NODE = "spec.nodeName="
MOST = 200
"""How many refused pods are remembered between two runs."""
_AGAIN = Backoff(first=1.0, cap=30.0)


@dataclass(frozen=True, slots=True)
class PodSigns:
    """Watches the pods that a field selector selects, and calls ``seen`` with each that comes or
    changes. ``opened`` is called when the watch begins. Without it, ``seen`` is called with the
    pods that are there already."""

    client: Client
    clock: Clock
    rng: Random
    selector: str
    seen: Callable[[SchedulingPod], Awaitable[None]]
    opened: Callable[[], None] | None = None

    async def run(self) -> None:
        """Watch until cancelled. A watch that fails begins again; its loss costs time only."""
        failures = 0
        while True:
            try:
                await self._watch()
                failures = 0
            except KubeError as error:
                failures += 1
                log.warning("cannot watch pods", selector=self.selector, error=str(error))
            await self.clock.sleep(_AGAIN.delay(failures, self.rng) if failures else 0.0)

    async def _watch(self) -> None:
        listing = await self.client.list(
            SCHEDULING_PODS, field_selector=self.selector, partial=True
        )
        version = listing.resource_version
        stream = self.client.watch(
            SCHEDULING_PODS, resource_version=version, field_selector=self.selector
        )
        if self.opened is not None:
            self.opened()
        else:
            for pod in listing.items:
                await self.seen(pod)
        async with aclosing(stream) as events:
            async for event in events:
                if isinstance(event.object, SchedulingPod) and event.type != "DELETED":
                    await self.seen(event.object)


@dataclass(slots=True)
class Refusals:
    """Wakes the loop for each pod that a node refuses, and calls ``react`` with all of them, from
    the second one of an owner on."""

    clock: Clock
    woken: asyncio.Event
    react: Callable[[Iterable[SchedulingPod]], Awaitable[None]]
    _not_before: float = 0.0
    _recent: deque[SchedulingPod] = field(default_factory=lambda: deque(maxlen=MOST))
    _known: set[str] = field(default_factory=set)

    async def see(self, pod: SchedulingPod) -> None:
        if refusal(pod) is not Refusal.BY_NODE or pod.metadata.uid in self._known:
            return
        if len(self._recent) == MOST:
            self._known.discard(self._recent[0].metadata.uid)
        self._recent.append(pod)
        self._known.add(pod.metadata.uid)
        owner = pod.metadata.controller()
        if owner is None:
            return
        if sum(recent.metadata.controller() == owner for recent in self._recent) >= ENOUGH:
            await self._react()
        self.woken.set()

    async def _react(self) -> None:
        """React, but spend at most a fifth of the time on it: plans of large clusters take long."""
        began = self.clock.monotonic()
        if began >= self._not_before:
            await self.react(tuple(self._recent))
            ended = self.clock.monotonic()
            self._not_before = ended + 4 * (ended - began)


@dataclass(slots=True)
class CriticalWaits:
    """Wakes the loop when a critical pod has waited for a node long enough to be helped.

    Each pod wakes it once for each time it becomes unschedulable. After that, what a run says of it
    decides when the next one looks.
    """

    clock: Clock
    policy: Policy
    wake: Callable[[], None]
    _due: dict[str, datetime] = field(default_factory=dict)
    _timers: set[asyncio.Task[None]] = field(default_factory=set)

    async def see(self, pod: SchedulingPod) -> None:
        due = min(self._dues(pod), default=None)
        if due is None or self._due.get(pod.metadata.uid) == due:
            return
        while len(self._due) >= MOST:
            self._due.pop(next(iter(self._due)))
        self._due[pod.metadata.uid] = due
        timer = asyncio.create_task(self._wake_at(due), name="a critical pod is due")
        self._timers.add(timer)
        timer.add_done_callback(self._timers.discard)

    def _dues(self, pod: SchedulingPod) -> Iterable[datetime]:
        for strategy in self.policy.strategies:
            if isinstance(strategy, CriticalPods) and (since := waiting_since(pod, strategy)):
                yield since + timedelta(seconds=strategy.unschedulable_seconds)

    async def _wake_at(self, due: datetime) -> None:
        await self.clock.sleep(max((due - self.clock.now()).total_seconds(), 0.0))
        self.wake()
