"""How numbers and names are written for people, everywhere the same."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from datetime import datetime

MOST = 3
"""How many names a message lists."""
_NUMBER = re.compile("([0-9]+)")


def listed(names: Iterable[str], most: int = MOST) -> str:
    """The first names, and how many there are beyond them: 'a, b, c and 2 more'."""
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more


def natural(name: str) -> tuple[list[tuple[str, int]], str]:
    """A key that sorts names as people count: pod-2 before pod-10."""
    parts = _NUMBER.split(name)
    numbers = [*map(int, parts[1::2]), 0]
    return list(zip(parts[::2], numbers, strict=True)), name


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: '1 pod', '3 pods'."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def fact(title: str, value: str) -> str:
    """A line of a text: the title, and the value in a column of its own."""
    return f"{title + ':':<11} {value}"


def age(since: datetime | None, now: datetime) -> str:
    """How long ago, in the one or two largest units, as kubectl prints ages."""
    if since is None:
        return "<unknown>"
    return duration((now - since).total_seconds())


_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY
_RANGES = (
    (3 * _HOUR, _MINUTE, "m", 1, "s", 10 * _MINUTE),
    (2 * _DAY, _HOUR, "h", _MINUTE, "m", 8 * _HOUR),
    (2 * _YEAR, _DAY, "d", _HOUR, "h", 8 * _DAY),
    (float("inf"), _YEAR, "y", _DAY, "d", 8 * _YEAR),
)
"""Below how many seconds which unit is used, and up to where a smaller unit follows it."""


def duration(seconds: float) -> str:
    """Seconds as kubectl prints them (``HumanDuration`` of apimachinery): 90s, 6m9s, 12m, 3d."""
    whole = max(0, int(seconds))
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    _, unit, name, lesser, lesser_name, until = next(known for known in _RANGES if whole < known[0])
    rest = whole % unit // lesser if whole < until else 0
    return f"{whole // unit}{name}" + (f"{rest}{lesser_name}" if rest else "")


def visible(text: str) -> str:
    """The text as one line that no terminal, browser or reader obeys.

    Controls, line breaks, tabs, marks of direction, signs without a width and lone surrogates are
    written as Python's ``repr`` writes them: ``\\x1b``, ``\\n``, ``\\u202e``.
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def shortened(text: str, most: int) -> str:
    """The text, visible, in at most ``most`` characters; three dots stand for its end."""
    if len(text) <= most and text.isprintable():
        return text
    shown = visible(text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def traceback_lines(error: BaseException) -> list[str]:
    """The traceback of an error as lines. A bar shows that they are no lines of a command: the text
    of an error may have line breaks of somebody else."""
    text = "".join(traceback.format_exception(error))
    return [f"| {visible(line)}" for line in text.rstrip().split("\n")]


def can_be_encoded(text: str, encoding: str) -> bool:
    """Whether an output of this encoding can show the text. An unknown encoding shows nothing."""
    try:
        text.encode(encoding)
    except (LookupError, UnicodeEncodeError):
        return False
    return True
