"""Plays stories on the embedded cluster first, to predict how long they take.

So a story for which the real cluster has no time left is never begun.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from kube_in_process.virtual import run as run_virtually

from judges.differential.actions.chance import by_chance
from judges.differential.actions.classics import classic, classics_of
from judges.differential.actions.clusters import embedded
from judges.differential.actions.judge import StoryDifference, differences
from judges.differential.actions.play import PlayedStory, Player
from judges.differential.actions.story import Story
from judges.processes import quiet

Target = tuple[tuple[int, int], bool]
"""The Kubernetes version, and whether PodGroups are on."""

AHEAD = 24
"""How many stories are played ahead of the real cluster."""
_AT_ONCE = 4
_SLOWER_AT_FIRST = 1.5
"""The assumed ratio of real to virtual duration until the first stories have ended."""


def story(seed: int, number: int, version: tuple[int, int], groups: bool, theme: str = "") -> Story:
    """The story with that number: classics first, then random stories."""
    names = classics_of(version)
    if number < len(names) and not theme:
        return classic(names[number], version)
    return by_chance(seed, number, version, groups, theme)


def on_embedded(target: Target, story: Story, namespace: str) -> PlayedStory:
    """Play the story on an embedded cluster on a virtual clock."""
    quiet()

    async def play() -> PlayedStory:
        stage = await embedded(*target, namespace, story.nodes, story.devices)
        try:
            played = await Player(stage, namespace).play(story)
            played.failures = [repr(failure) for failure in stage.cluster.failures]
            return played
        finally:
            await stage.cluster.stop()

    return run_virtually(play())


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A story as the embedded cluster played it. ``seconds`` is its virtual duration. ``ours`` is a
    pickled Played, which only the processes of the pool read."""

    number: int
    told: Story
    seconds: float
    ours: bytes


def rehearsed(target: Target, number: int, story: Story) -> Rehearsal:
    """Play a story; runs in a process of the pool."""
    played = on_embedded(target, story, "s0")
    return Rehearsal(number, story, played.ended - played.begun, pickle.dumps(played))


def compared(target: Target, rehearsal: Rehearsal, theirs: PlayedStory) -> list[StoryDifference]:
    """The differences between the embedded and the real cluster, as far as the story was played."""
    played = len(theirs.segments)
    if played < len(rehearsal.told.steps):
        story = rehearsal.told.without(played, len(rehearsal.told.steps))
        return differences(theirs, on_embedded(target, story, "s0"))
    return differences(theirs, pickle.loads(rehearsal.ours))


@dataclass
class Rehearsals:
    """Plays the stories of ``numbers`` ahead, and returns those for which there is time."""

    pool: ProcessPoolExecutor
    target: Target
    numbers: Iterator[int]
    tell: Callable[[int], Story]
    _ready: list[Rehearsal] = field(default_factory=list)
    _under_way: int = 0
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _over: bool = False
    _virtual: float = 0.0
    _real: float = 0.0

    async def run(self) -> None:
        """Play all numbers, until done or cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(_AT_ONCE):
                    group.create_task(self._work())
        finally:
            async with self._changed:
                self._over = True
                self._changed.notify_all()

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        for number in self.numbers:
            async with self._changed:
                await self._changed.wait_for(lambda: len(self._ready) + self._under_way < AHEAD)
                self._under_way += 1
            arguments = (self.target, number, self.tell(number))
            rehearsal = await loop.run_in_executor(self.pool, rehearsed, *arguments)
            async with self._changed:
                self._under_way -= 1
                self._ready.append(rehearsal)
                self._ready.sort(key=lambda rehearsal: rehearsal.number)
                self._changed.notify_all()

    async def take(self, left: Callable[[], float]) -> Rehearsal | None:
        """The first story that the real cluster can play in the seconds ``left``.

        None if there is none and no more are being played ahead.
        """
        async with self._changed:
            while True:
                for rehearsal in self._ready:
                    if rehearsal.seconds * self.slowness < left():
                        self._ready.remove(rehearsal)
                        self._changed.notify_all()
                        return rehearsal
                if self._over or len(self._ready) >= AHEAD:
                    return None
                await self._changed.wait()

    def note(self, rehearsal: Rehearsal, seconds: float) -> None:
        """Note the real duration of a story."""
        self._virtual += rehearsal.seconds
        self._real += seconds

    @property
    def slowness(self) -> float:
        """The ratio of real to virtual duration of the stories so far."""
        return self._real / self._virtual if self._virtual else _SLOWER_AT_FIRST
