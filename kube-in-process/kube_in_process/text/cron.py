"""Schedules of CronJobs: five fields, or a descriptor such as ``@hourly``.

The rules and the texts of errors are those of github.com/robfig/cron, which Kubernetes uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo

_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"]
_YEARS = 5
"""How far ahead a time is looked for."""
_DESCRIPTORS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY = "@every "
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:h|ms|m|s))+")


class BadSchedule(ValueError):
    """A schedule that cannot be read. The text says why."""


@dataclass(frozen=True, slots=True)
class _Bounds:
    least: int
    most: int
    names: tuple[str, ...] = ()
    first: int = 0
    """The number of the first name."""


_BOUNDS = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, tuple(_MONTHS), 1),
    _Bounds(0, 6, tuple(_DAYS)),
)


@dataclass(frozen=True, slots=True)
class _Field:
    numbers: frozenset[int]
    is_star: bool


@dataclass(frozen=True, slots=True)
class Schedule:
    """Times at which to start. ``every`` is set for a constant delay; then there are no fields."""

    fields: tuple[_Field, ...] = ()
    every: timedelta | None = None

    def after(self, moment: datetime, zone: tzinfo = UTC) -> datetime | None:
        """The first time after a moment, in the zone; None if there is none within five years."""
        if self.every is not None:
            return (moment.replace(microsecond=0) + self.every).astimezone(zone)
        local = moment.astimezone(zone)
        for day in self._days(local.date()):
            for hour in sorted(self.fields[1].numbers):
                for minute in sorted(self.fields[0].numbers):
                    time = datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone)
                    if _exists(time) and time > moment:
                        return time
        return None

    def _days(self, first: date) -> Iterator[date]:
        for number in range(366 * _YEARS):
            day = first + timedelta(days=number)
            if day.month in self.fields[3].numbers and self._has_day(day):
                yield day

    def _has_day(self, day: date) -> bool:
        """Where both kinds of day are restricted, one of them is enough."""
        of_month, of_week = self.fields[2], self.fields[4]
        in_month = day.day in of_month.numbers
        in_week = day.isoweekday() % 7 in of_week.numbers
        if of_month.is_star or of_week.is_star:
            return in_month and in_week
        return in_month or in_week


def _exists(moment: datetime) -> bool:
    """Whether the clocks of its zone show this time; in spring they leave out an hour."""
    back = moment.astimezone(UTC).astimezone(moment.tzinfo)
    return back.replace(tzinfo=None) == moment.replace(tzinfo=None)


def parse(text: str) -> Schedule:
    """Read a schedule.

    Raises:
        BadSchedule: it cannot be read.
    """
    if not text:
        raise BadSchedule("empty spec string")
    if text.startswith(_EVERY):
        return Schedule(every=_delay(text))
    if text.startswith("@"):
        if text not in _DESCRIPTORS:
            raise BadSchedule(f"unrecognized descriptor: {text}")
        text = _DESCRIPTORS[text]
    parts = text.split()
    if len(parts) != len(_BOUNDS):
        shown = " ".join(parts)
        raise BadSchedule(f"expected exactly 5 fields, found {len(parts)}: [{shown}]")
    return Schedule(
        tuple(_field(part, bounds) for part, bounds in zip(parts, _BOUNDS, strict=True))
    )


def _delay(text: str) -> timedelta:
    given = text.removeprefix(_EVERY)
    if not _DURATION.fullmatch(given):
        raise BadSchedule(f'failed to parse duration {text}: time: invalid duration "{given}"')
    parts = re.findall(r"(\d+(?:\.\d+)?)(h|ms|m|s)", given)
    seconds = sum(float(value) * _UNITS[unit] for value, unit in parts)
    return timedelta(seconds=max(int(seconds), 1))


def _field(text: str, bounds: _Bounds) -> _Field:
    numbers: set[int] = set()
    is_star = False
    for part in text.split(","):
        if part:
            some, star = _range(part, bounds)
            numbers |= some
            is_star = is_star or star
    return _Field(frozenset(numbers), is_star)


def _range(text: str, bounds: _Bounds) -> tuple[set[int], bool]:
    parts = text.split("/")
    ends = parts[0].split("-")
    is_star = ends[0] in ("*", "?")
    if is_star:
        start, end = bounds.least, bounds.most
    elif len(ends) > 2:
        raise BadSchedule(f"too many hyphens: {text}")
    else:
        start = _number(ends[0], bounds)
        end = _number(ends[-1], bounds)
    if len(parts) > 2:
        raise BadSchedule(f"too many slashes: {text}")
    step = 1
    if len(parts) == 2:
        step = _number(parts[1])
        end = bounds.most if len(ends) == 1 else end
        is_star = is_star and step <= 1
    _check(text, start, end, step, bounds)
    return set(range(start, end + 1, step)), is_star


def _check(text: str, start: int, end: int, step: int, bounds: _Bounds) -> None:
    if start < bounds.least:
        why = f"beginning of range ({start}) below minimum ({bounds.least})"
        raise BadSchedule(f"{why}: {text}")
    if end > bounds.most:
        raise BadSchedule(f"end of range ({end}) above maximum ({bounds.most}): {text}")
    if start > end:
        why = f"beginning of range ({start}) beyond end of range ({end})"
        raise BadSchedule(f"{why}: {text}")
    if step == 0:
        raise BadSchedule(f"step of range should be a positive number: {text}")


def _number(text: str, bounds: _Bounds | None = None) -> int:
    if bounds is not None and text.lower() in bounds.names:
        return bounds.names.index(text.lower()) + bounds.first
    try:
        number = int(text)
    except ValueError:
        why = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise BadSchedule(f"failed to parse int from {text}: {why}") from None
    if number < 0:
        raise BadSchedule(f"negative number ({number}) not allowed: {text}")
    return number
