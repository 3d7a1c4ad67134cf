"""The columns of tables, and the format of durations in them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kube_in_process.objects import Object

NONE = "<none>"


@dataclass(frozen=True, slots=True)
class Row:
    """An object to show, and the present time."""

    obj: Object
    now: datetime

    def get(self, *path: str) -> Any:
        """The value at a path of fields, or None."""
        value: Any = self.obj
        for name in path:
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value

    def items(self, *path: str) -> Any:
        """The list or map at a path; empty if it is not set."""
        return self.get(*path) or ()

    def text(self, *path: str, default: str = NONE) -> str:
        value = self.get(*path)
        return default if value in (None, "") else str(value)

    def number(self, *path: str) -> int:
        value = self.get(*path)
        return value if isinstance(value, int) else 0


@dataclass(frozen=True, slots=True)
class Column:
    """``of`` is the path of the field that the cell shows, ``default`` the text for an empty value.

    ``text`` describes the column. A text that begins with a dot is a field; its description is
    used. Columns of priority 1 are shown by ``-o wide``.
    """

    name: str
    cell: Cell
    of: tuple[str, ...] = ()
    default: str = NONE
    text: str = ""
    priority: int = 0
    type: str = "string"
    format: str = ""

    def value(self, row: Row) -> Any:
        return self.cell(row, self)


Cell = Callable[[Row, Column], Any]


def since(time: str | None, now: datetime) -> str:
    """The duration since ``time`` (RFC 3339), in kubectl's format."""
    if not time:
        return "<unknown>"
    return human(int((now - parse_time(time)).total_seconds()))


def parse_time(time: str) -> datetime:
    parsed = datetime.fromisoformat(time)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def human(seconds: int) -> str:
    """A duration with at most two units: 90s, 5m30s, 3h, 4d12h."""
    if seconds < -1:
        return "<invalid>"
    seconds = max(seconds, 0)
    minutes, hours = seconds // 60, seconds // 3600
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(hours // 24, "d", hours % 24, "h")
    if hours < 24 * 365 * 2:
        return f"{hours // 24}d"
    return _two(hours // 24 // 365, "y", hours // 24 % 365, "d")


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"
