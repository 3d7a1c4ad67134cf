"""DRA drivers and their habits, as claimctl ships them: ``drivers.yaml`` and ``habits.yaml``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import TypeVar

from claimctl.wire.base import Wire, from_plain
from claimctl.yaml_text import loaded

T = TypeVar("T")

WANTS_ONE_POD = "wants-one-pod"
HIDES_USED_DEVICES = "hides-used-devices"


class DriverHabit(Wire, frozen=True, kw_only=True):
    """What some drivers do that a held or shared claim meets."""

    habit: str
    """Its name."""
    does: str = ""
    """What such a driver does."""
    claimctl: str = ""
    """What claimctl does about it."""
    unless_known: str = ""
    """What to do where claimctl does not know that the driver has the habit; '' for nothing."""
    always: str = ""
    """What to do in any case; '' for nothing."""
    needs: str = ""
    """What would show the habit and ``claimctl doctor driver`` does not do; '' if it shows it."""


class DriverHabits(Wire, frozen=True, kw_only=True):
    """A driver, and what it does that a hold has to respect."""

    driver: str
    """The name of the driver in allocations and ResourceSlices."""
    name: str = ""
    """The name of the project."""
    versions: str = ""
    """The versions in which the habits were seen or read."""
    how: str = ""
    """'seen' beside a real kubelet, or 'read' in the source."""
    habits: tuple[str, ...] = ()
    """The names of its habits."""
    observed: str = ""
    """What was seen or read."""
    source: str = ""
    """The file of the driver that shows the habits."""

    @property
    def wants_one_pod(self) -> bool:
        """Whether it refuses to prepare a claim unless the claim's list has one entry, a pod."""
        return WANTS_ONE_POD in self.habits

    @property
    def hides_used_devices(self) -> bool:
        """Whether it takes a device out of its ResourceSlices while a pod uses the device."""
        return HIDES_USED_DEVICES in self.habits


@lru_cache(maxsize=1)
def known_drivers() -> Mapping[str, DriverHabits]:
    """The shipped drivers by name."""
    return {entry.driver: entry for entry in _entries("drivers.yaml", DriverHabits)}


@lru_cache(maxsize=1)
def known_habits() -> Mapping[str, DriverHabit]:
    """The shipped habits by name."""
    return {entry.habit: entry for entry in _entries("habits.yaml", DriverHabit)}


def _entries(file: str, type_: type[T]) -> tuple[T, ...]:
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    return from_plain(loaded(text), tuple[type_, ...])  # type: ignore[valid-type]
