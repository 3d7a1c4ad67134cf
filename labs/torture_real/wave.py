"""Several schedules at once, with a common begin, faults, and a common end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from claimctl_demo.documents import DocumentClient
from labs.torture_real.cluster import SharedCluster
from labs.torture_real.controllers import Controllers
from labs.torture_real.faults import RealFaults
from labs.torture_real.report import RealTally
from labs.torture_real.schedule import RealSchedule

PLAY = (60.0, 90.0, 120.0)
"""Seconds of user actions and faults."""
SHORTEST = 20.0
"""The same for a wave that begins when little of the budget is left."""
BEGIN, CONCLUDE = 120.0, 600.0
"""Seconds after which a begin, and an end, fail."""
ELECT = 0.5
"""The share of waves with leader election. A killed leader keeps the Lease for 15 seconds."""
END = 30.0
"""Seconds for deleting nodes."""


@dataclass
class Wave:
    """The schedules of consecutive seeds, from ``seed`` on."""

    cluster: SharedCluster
    controllers: Controllers
    seed: int
    size: int

    def __post_init__(self) -> None:
        seeds = range(self.seed, self.seed + self.size)
        self.rng = Random(f"wave {self.seed}")
        self.schedules = [RealSchedule(self.cluster, seed) for seed in seeds]
        client = DocumentClient(self.cluster.transport, "administrator")
        self.faults = RealFaults(self.cluster, self.controllers, self.rng, client)
        self.names = self.rng.choice([["one"], ["one", "two"]])
        """The names of the controllers."""
        self.elect = self.faults.elect = self.rng.random() < ELECT
        self.faults.restored = self._restart_kubelets

    async def play(self, left: float, tally: RealTally) -> None:
        """Play the wave, from the first process to the last verdict.

        Args:
            left: the remaining seconds of the budget.
        """
        seconds = min(self.rng.choice(PLAY), max(left, SHORTEST))
        supervisor = asyncio.create_task(self.faults.supervise())
        try:
            self.controllers.elect = self.elect
            for name in self.names:
                self.controllers.start(name)
            await self._together(BEGIN, (schedule.begin() for schedule in self.schedules), "begin")
            await self._disturb(seconds)
            await self._together(
                CONCLUDE, (schedule.conclude() for schedule in self.schedules), "end"
            )
            await self.cluster.history.caught_up()
        finally:
            # A schedule that was interrupted is judged as far as it got.
            for schedule in self.schedules:
                schedule.judge(self.faults.log)
                tally.end(schedule)
            tally.count(self.faults.counts, pair=len(self.names) == 2, elect=self.elect)
            await self._leave(supervisor)
        self.cluster.history.revisions.clear()

    async def _together(self, limit: float, work: Iterable[Awaitable[None]], what: str) -> None:
        try:
            async with asyncio.timeout(limit):
                await asyncio.gather(*work)
        except TimeoutError:
            for schedule in self.schedules:
                schedule.verdict.say("stuck", [f"the wave did not {what} within {limit:g} s"])

    async def _disturb(self, seconds: float) -> None:
        """Let users act and faults happen for ``seconds``, then repair everything."""
        tasks = [asyncio.create_task(schedule.play()) for schedule in self.schedules]
        tasks.append(asyncio.create_task(self.faults.run()))
        try:
            done, _ = await asyncio.wait(
                tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION
            )
            for task in done:
                task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.faults.calm()

    async def _restart_kubelets(self) -> None:
        await asyncio.gather(*(schedule.restart_kubelets() for schedule in self.schedules))

    async def _leave(self, supervisor: asyncio.Task[None]) -> None:
        supervisor.cancel()
        with suppress(TimeoutError):
            async with asyncio.timeout(END):
                await asyncio.gather(supervisor, return_exceptions=True)
                await asyncio.gather(*(schedule.end() for schedule in self.schedules))
                await asyncio.to_thread(self.controllers.stop_all)
        if not supervisor.cancelled():
            supervisor.result()
