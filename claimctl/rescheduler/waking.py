"""Wakes the loop as soon as a kubelet refuses a pod: its owner may make the next one at once."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass
from random import Random

import structlog

from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError
from claimctl.kube.retry import Backoff
from claimctl.rescheduler.evicting import SCHEDULING_PODS
from claimctl.rescheduling.refusals import refusal
from claimctl.wire.scheduling import SchedulingPod
from claimctl.wire.seams import Clock

log = structlog.get_logger(__name__)

_FAILED = "status.phase=Failed"
_AGAIN = Backoff(first=1.0, cap=30.0)


@dataclass(slots=True)
class Refusals:
    """Watches pods that have failed. ``woken`` is set for each one that a node refused."""

    client: Client
    clock: Clock
    woken: asyncio.Event
    rng: Random

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
                if isinstance(pod, SchedulingPod) and refusal(pod) is not None:
                    self.woken.set()
