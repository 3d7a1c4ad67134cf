"""The drivers of the matrix: each has a name and habits. A file may describe another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import msgspec
import yaml
from kube_in_process.habits.habit import Habit
from kube_in_process.habits.registry import HABITS, habit

from claimctl.reservation.kinds.drivers import known_drivers

UNKNOWN = "new.example.com"
"""A driver of which claimctl has never heard."""


class BadDescription(ValueError):
    """A file that describes no driver. The text says in one line what is wrong."""


@dataclass(frozen=True, slots=True)
class DescribedDriver:
    """A driver by its name and habits."""

    name: str
    habits: tuple[Habit, ...]

    @property
    def is_known(self) -> bool:
        """Whether claimctl ships what it has to know of this driver."""
        return self.name in known_drivers()

    def __str__(self) -> str:
        return f"{', '.join(each.name for each in self.habits) or 'no habit'} ({self.name})"


NAMES = {
    "wants-one-pod": ("dra.net", UNKNOWN),
    "hides-used-devices": ("dra.net", UNKNOWN),
    "restores-claims-with-one-entry": ("networkdriver.cilium.io",),
}
"""By habit: the names of drivers that have it. The other habits are those of an unknown driver."""


def drivers_of_the_matrix() -> Iterator[DescribedDriver]:
    """A driver for each habit; for some habits one that claimctl knows, and one that it does not.

    A driver that claimctl knows has all habits that claimctl ships for its name.
    """
    for name in HABITS:
        for driver in NAMES.get(name, (UNKNOWN,)):
            yield DescribedDriver(driver, tuple(_with_shipped(habit(name), driver)))


def _with_shipped(first: Habit, driver: str) -> Iterator[Habit]:
    yield first
    shipped = known_drivers().get(driver)
    if shipped is None:
        return
    if shipped.wants_one_pod and first.name != "wants-one-pod":
        yield habit("wants-one-pod")


# Files


def read(path: str) -> DescribedDriver:
    """The driver that a file describes.

    Raises:
        BadDescription: the file cannot be read, or describes no driver.
    """
    try:
        plain = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadDescription(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f", line {where.line + 1}" if where is not None else ""
        raise BadDescription(f"{path}{line}: this is no YAML") from None
    try:
        return described(plain)
    except BadDescription as error:
        raise BadDescription(f"{path}: {error}") from None


def described(plain: Any) -> DescribedDriver:
    """The driver of a description: its ``name``, and its ``habits``.

    A habit is its name, or ``habit`` with its name and the values that differ from the usual ones.

    Raises:
        BadDescription: it is something else.
    """
    if not isinstance(plain, Mapping):
        raise BadDescription("a mapping with the keys name and habits was expected")
    if unknown := sorted(map(str, plain.keys() - {"name", "habits"})):
        raise BadDescription(f"{unknown[0]}: the keys are name and habits")
    name, listed = plain.get("name"), plain.get("habits")
    if not isinstance(name, str) or not name:
        raise BadDescription("name: the name of the driver was expected, such as dra.example.com")
    if not isinstance(listed, list) or not listed:
        raise BadDescription("habits: a list with at least one habit was expected")
    habits = [_habit(each, f"habits[{at}]") for at, each in enumerate(listed)]
    _refuse_twice(habits)
    return DescribedDriver(name, tuple(habits))


def _refuse_twice(habits: Iterable[Habit]) -> None:
    seen: set[str] = set()
    for each in habits:
        if each.name in seen:
            raise BadDescription(f"habits: {each.name} is there twice")
        seen.add(each.name)


def _habit(plain: Any, where: str) -> Habit:
    values = {"habit": plain} if isinstance(plain, str) else plain
    if not isinstance(values, Mapping) or not isinstance(values.get("habit"), str):
        raise BadDescription(f"{where}: the name of a habit was expected, or habit: NAME")
    shape = HABITS.get(values["habit"])
    if shape is None:
        raise BadDescription(
            f"{where}: no habit is called {values['habit']!r}; there are {', '.join(HABITS)}"
        )
    known = [each.name for each in fields(shape) if each.name != "node"]
    given = {key: value for key, value in values.items() if key != "habit"}
    if unknown := [key for key in given if key not in known]:
        wanted = f"its values are {', '.join(known)}" if known else "it has no values"
        raise BadDescription(f"{where}: {shape.name} has no value {unknown[0]!r}; {wanted}")
    try:
        return msgspec.convert(given, shape)
    except msgspec.ValidationError as error:
        raise BadDescription(f"{where}: {shape.name}: {error}") from None
