"""Plays stories on both clusters, several at once, and confirms each difference by more tries."""

from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from kube_in_process.real.transport import HttpTransport
from kube_in_process.serving.kubeconfig import read_kubeconfig

from judges.differential.actions.clusters import RealCluster
from judges.differential.actions.judge import StoryDifference
from judges.differential.actions.play import PlayedStory, Player
from judges.differential.actions.rehearsal import (
    Rehearsal,
    Rehearsals,
    Target,
    compared,
    rehearsed,
    story,
)
from judges.differential.actions.story import Story

QUIET = 1.2
"""Seconds without an event after which the real cluster is at rest. Job syncs wait for 1 s."""
SLOWER = 1.7
"""Factor by which rests are longer on the tries after the first."""
CONFIRMING = (1, 2)
"""How many more times a story that differed is played: once, and then two times at once."""
_RESERVED = 1 + len(CONFIRMING)
"""A story is begun only if this many times its duration is left."""

_UNDISTURBED = 3
"""How many times a story is played on a machine that is too slow for it."""
_SLOW_CANARY = 3.0
"""Seconds. While the canary takes longer, no further story is begun."""
_STAGGERED = 0.3
"""Seconds between the first stories of two slots."""
_LONGER = 60.0
"""Seconds by which a run may take longer, to confirm differences."""


@dataclass
class Result:
    """The result of a story. ``differences`` came on every try, ``unsteady`` ones did not."""

    number: int
    told: Story
    differences: list[StoryDifference] = field(default_factory=list)
    unsteady: list[StoryDifference] = field(default_factory=list)

    def shown(self) -> str:
        lines = [f"story {self.number}: {self.told.shown()}"]
        lines += [
            f"  after step {difference.step}: {difference.shown()}"
            for difference in self.differences
        ]
        return "\n".join(lines)


class Disturbed(Exception):
    """The machine was too slow for the story."""


class Comparer:
    """Compares both clusters; use ``with Comparer(...)`` in a running loop."""

    def __init__(self, real: RealCluster, pool: ProcessPoolExecutor) -> None:
        self._real = real
        self._pool = pool
        self._target = (real.version, real.pod_groups)
        self._serial = itertools.count()

    async def on_real(self, story: Story, quiet: float = QUIET) -> PlayedStory:
        """Play a story; again if nodes were lost because the machine was too slow for their Leases.

        Raises:
            Disturbed: the machine was too slow on every try.
        """
        for _ in range(_UNDISTURBED):
            namespace, played = await self._on_real(story, quiet)
            if namespace not in self._real.disturbed:
                return played
        raise Disturbed(f"nodes of {story.theme} were lost because the machine is too slow")

    def is_slow(self) -> bool:
        """Whether the servers are overloaded."""
        return self._real.canary.longest() > _SLOW_CANARY

    async def _on_real(self, story: Story, quiet: float) -> tuple[str, PlayedStory]:
        namespace = f"s{next(self._serial)}"
        stage = await self._real.open(namespace, story.nodes, story.devices, quiet)
        try:
            return namespace, await Player(stage, namespace).play(story, to_the_end=False)
        finally:
            await self._real.close(stage)

    async def look(self, rehearsal: Rehearsal, quiet: float = QUIET) -> list[StoryDifference]:
        theirs = await self.on_real(rehearsal.told, quiet)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._pool, compared, self._target, rehearsal, theirs)

    async def again(self, rehearsal: Rehearsal, first: list[StoryDifference]) -> Result:
        """Play a story that differed again.

        If one more try goes as on the embedded cluster, the real cluster does not always do the
        same, and nothing differs. Otherwise all tries differ; what all of them show counts.
        """
        tries = [first]
        for count in CONFIRMING:
            looks = (self.look(rehearsal, QUIET * SLOWER) for _ in range(count))
            more = await asyncio.gather(*looks)
            if not all(more):
                return Result(rehearsal.number, rehearsal.told, unsteady=first)
            tries += more
        kinds = set.intersection(
            *({difference.kind for difference in attempt} for attempt in tries)
        )
        shown = [difference for difference in first if difference.kind in kinds]
        return Result(rehearsal.number, rehearsal.told, shown or tries[-1])

    async def shrink(self, result: Result, until: float) -> None:
        """Find the fewest steps that still lead to the first difference."""
        loop = asyncio.get_running_loop()
        wanted = result.differences[0].kind
        story = result.told.without(result.differences[0].step, len(result.told.steps))
        index = len(story.steps) - 2
        while index >= 0 and time.monotonic() < until:
            shorter = story.without(index, 1)
            arguments = (self._target, result.number, shorter)
            seen = await self.look(await loop.run_in_executor(self._pool, rehearsed, *arguments))
            if any(difference.kind == wanted for difference in seen):
                story = shorter
                result.differences = seen
            index -= 1
        result.told = story


@contextmanager
def processes(count: int) -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("forkserver")
    pool = ProcessPoolExecutor(count, mp_context=context)
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@dataclass
class Session:
    """Plays stories of a seed until the time is over or ``count`` were played."""

    target: Target
    kubeconfig: Path
    seed: int
    seconds: float
    slots: int = 56
    count: int | None = None
    theme: str = ""
    numbers: tuple[int, ...] = ()
    once: bool = False
    """Whether a difference counts without another try."""
    results: list[Result] = field(default_factory=list)
    shrinks: bool = False
    said: Callable[[Result], object] = lambda _: None
    """Called with each result."""
    disturbed: int = 0
    """How many stories the machine was too slow for."""
    undecided: list[int] = field(default_factory=list)
    """The numbers of stories that differed and were not played again, for lack of time."""
    slowness: float = 0.0
    """The last measurement of the canary, in seconds."""
    known: set[str] = field(default_factory=set)
    """Kinds of difference that were shrunk already."""

    _doubted: dict[int, Result] = field(default_factory=dict)
    """Stories with differences that wait for another try."""

    async def run(self) -> list[Result]:
        with processes(2) as pool:
            async with HttpTransport(read_kubeconfig(self.kubeconfig)) as transport:
                real = RealCluster(transport, *self.target)
                await real.start()
                try:
                    with suppress(TimeoutError):
                        async with asyncio.timeout(self.seconds + _LONGER):
                            await self._all(Comparer(real, pool), pool)
                    real.ends = True
                    self.slowness = real.canary.longest()
                finally:
                    await real.stop()
        # There was no time for another try.
        self.undecided = sorted(self._doubted)
        for result in self._doubted.values():
            self._take(result)
        return self.results

    async def _all(self, comparer: Comparer, pool: ProcessPoolExecutor) -> None:
        end = time.monotonic() + self.seconds
        numbers = iter(self.numbers) if self.numbers else itertools.count()
        if self.count is not None:
            numbers = iter(itertools.islice(numbers, self.count))
        rehearsals = Rehearsals(pool, self.target, numbers, self._told)

        def left() -> float:
            return (end + _LONGER - time.monotonic()) / _RESERVED

        async def work(slot: int) -> None:
            await asyncio.sleep(slot * _STAGGERED)
            while rehearsal := await rehearsals.take(left):
                while comparer.is_slow() and time.monotonic() < end:  # noqa: ASYNC110 - a measure
                    await asyncio.sleep(1.0)
                try:
                    begun = time.monotonic()
                    first = await comparer.look(rehearsal)
                    rehearsals.note(rehearsal, time.monotonic() - begun)
                    await self._judge(comparer, rehearsal, first, end)
                except Disturbed:
                    self.disturbed += 1

        ahead = asyncio.create_task(rehearsals.run(), name="rehearsals")
        try:
            async with asyncio.TaskGroup() as group:
                for slot in range(self.slots):
                    group.create_task(work(slot), name=f"slot {slot}")
        finally:
            ahead.cancel()
            with suppress(asyncio.CancelledError):
                await ahead

    def _told(self, number: int) -> Story:
        return story(self.seed, number, *self.target, theme=self.theme)

    async def _judge(
        self, comparer: Comparer, rehearsal: Rehearsal, first: list[StoryDifference], end: float
    ) -> None:
        result = Result(rehearsal.number, rehearsal.told, first)
        if first and not self.once:
            self._doubted[result.number] = result
            try:
                result = await comparer.again(rehearsal, first)
            except Disturbed:
                del self._doubted[result.number]
                raise
            del self._doubted[result.number]
        fresh = {difference.kind for difference in result.differences} - self.known
        self.known |= fresh
        try:
            if fresh and self.shrinks:
                with suppress(Disturbed):
                    await comparer.shrink(result, end)
        finally:
            # Also if the run ends meanwhile.
            self._take(result)

    def _take(self, result: Result) -> None:
        self.results.append(result)
        self.said(result)
