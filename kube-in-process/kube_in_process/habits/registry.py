"""The habits by name, and how they are written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from kube_in_process.habits.habit import Habit
from kube_in_process.habits.preparing import (
    FailsToPrepare,
    FailsToUnprepare,
    ReadsTheFirstReference,
    RemembersAbortedPrepares,
    RestoresClaimsWithOneEntry,
    SkipsCheckpointedClaims,
    WantsOnePod,
)
from kube_in_process.habits.presence import Away, RefusesASecondPod, Slow
from kube_in_process.habits.publishing import (
    FewerDevices,
    HidesUsedDevices,
    RenamesDevices,
    TaintsNoExecute,
    TaintsNoSchedule,
)

HABITS: Mapping[str, type[Habit]] = {
    kind.name: kind
    for kind in (
        WantsOnePod,
        ReadsTheFirstReference,
        RefusesASecondPod,
        Away,
        Slow,
        FewerDevices,
        RenamesDevices,
        TaintsNoSchedule,
        TaintsNoExecute,
        HidesUsedDevices,
        FailsToPrepare,
        FailsToUnprepare,
        RemembersAbortedPrepares,
        SkipsCheckpointedClaims,
        RestoresClaimsWithOneEntry,
    )
}
"""Every habit that is known, by its name."""


def habit(name: str, **fields: Any) -> Habit:
    """A habit by its name; ``fields`` are those of its class.

    Raises:
        ValueError: no habit has this name.
    """
    if name not in HABITS:
        raise ValueError(f"no habit is called {name!r}; there are {', '.join(HABITS)}")
    return HABITS[name](**fields)


def written(habits: Iterable[Habit]) -> list[dict[str, Any]]:
    """Habits as plain JSON."""
    return [{"habit": habit.name, **asdict(habit)} for habit in habits]


def read(plain: Iterable[Mapping[str, Any]]) -> tuple[Habit, ...]:
    """Habits from plain JSON, as ``written`` gives it."""
    return tuple(
        habit(name["habit"], **{key: _value(x) for key, x in name.items() if key != "habit"})
        for name in plain
    )


def _value(plain: Any) -> Any:
    return tuple(plain) if isinstance(plain, list) else plain
