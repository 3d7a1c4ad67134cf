"""Plays a cell of the matrix, with claimctl and without it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from kube_in_process.virtual import Deadlock, LostError, OutOfTime, run

from labs.habits.bench import bench
from labs.habits.drivers import DescribedDriver
from labs.habits.figures import Figures, worse
from labs.habits.stories import STORIES

LIMIT = 10_000.0
"""Virtual seconds after which a play is given up."""


@dataclass(frozen=True, slots=True)
class HabitCell:
    """A driver, and the name of what happens to the workload that uses its device."""

    driver: DescribedDriver
    story: str


@dataclass(frozen=True)
class PlayedCell:
    """A cell with what was counted in it."""

    cell: HabitCell
    without: Figures
    with_claimctl: Figures

    @cached_property
    def worse(self) -> dict[str, float]:
        """The figures that are worse with claimctl, each with by how much."""
        return dict(worse(self.with_claimctl, self.without))


def cells(drivers: Iterable[DescribedDriver]) -> Iterator[HabitCell]:
    """The cells of some drivers, driver by driver."""
    return (HabitCell(driver, story) for driver in drivers for story in STORIES)


def play(cell: HabitCell) -> PlayedCell:
    """Play a cell without claimctl, and with it."""
    return PlayedCell(cell, *(_counted(cell, with_claimctl=each) for each in (False, True)))


def _counted(cell: HabitCell, *, with_claimctl: bool) -> Figures:
    try:
        return run(_play(cell, with_claimctl=with_claimctl), limit=LIMIT)
    except (Deadlock, LostError, OutOfTime) as error:
        return Figures(accused=[f"{type(error).__name__}: {error}".splitlines()[0]])


async def _play(cell: HabitCell, *, with_claimctl: bool) -> Figures:
    async with bench(cell.driver, with_claimctl=with_claimctl) as made:
        made.take_up(late=False)
        await STORIES[cell.story](made)
        await made.mend()
        if made.counting.wanted:
            await made.delete()
        await made.is_released()
    return made.figures
