"""Columns of tables: what a column is, and the cells that many kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from claimctl.embedded.text import jsonpath
from claimctl.embedded.text.label_text import selector_text

Object = dict[str, Any]
NONE = "<none>"


@dataclass(frozen=True, slots=True)
class Row:
    """An object to be shown, and the moment at which it is."""

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

    def text(self, *path: str, default: str = NONE) -> str:
        value = self.get(*path)
        return default if value in (None, "") else str(value)

    def number(self, *path: str) -> int:
        value = self.get(*path)
        return value if isinstance(value, int) else 0

    def age(self, *path: str) -> str:
        """How long ago the time at a path is; the age of the object without a path."""
        return since(self.get(*(path or ("metadata", "creationTimestamp"))), self.now)


Cell = Callable[[Row], Any]


@dataclass(frozen=True, slots=True)
class Column:
    """``text`` describes it; a text that begins with a dot is the field whose description it is.

    Columns of priority 1 are shown by ``-o wide``.
    """

    name: str
    cell: Cell
    text: str = ""
    priority: int = 0
    type: str = "string"
    format: str = ""


def name_of(row: Row) -> str:
    return row.text("metadata", "name", default="")


NAME = Column("Name", name_of, ".metadata.name", format="name")
AGE = Column("Age", lambda row: row.age(), ".metadata.creationTimestamp")


def field(*path: str, default: str = NONE) -> Cell:
    return lambda row: row.text(*path, default=default)


def number(*path: str) -> Cell:
    return lambda row: row.number(*path)


def wide(name: str, cell: Cell, text: str) -> Column:
    return Column(name, cell, text, priority=1)


def since(time: str | None, now: datetime) -> str:
    """The time from ``time`` (RFC 3339) to now, as kubectl shows it."""
    if not time:
        return "<unknown>"
    return human(int((now - parse_time(time)).total_seconds()))


def parse_time(time: str) -> datetime:
    parsed = datetime.fromisoformat(time)
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def human(seconds: int) -> str:
    """A duration in at most two units: 90s, 5m30s, 3h, 4d12h."""
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


def joined(values: Iterable[Any]) -> str:
    return ",".join(str(value) for value in values) or NONE


def containers(*path: str) -> tuple[Column, Column]:
    """Names and images of a pod template's containers."""
    return (
        wide(
            "Containers",
            lambda row: joined(c.get("name", "") for c in row.get(*path) or ()),
            "Names of each container in the template.",
        ),
        wide(
            "Images",
            lambda row: joined(c.get("image", "") for c in row.get(*path) or ()),
            "Images referenced by each container in the template.",
        ),
    )


def selector(row: Row) -> str:
    """spec.selector in the syntax of a query."""
    return selector_of(row.get("spec", "selector"))


def selector_of(found: Object | None) -> str:
    """A metav1.LabelSelector, or the plain labels of a Service, in the syntax of a query."""
    if not found:
        return NONE
    whole = found if {"matchLabels", "matchExpressions"} & set(found) else {"matchLabels": found}
    return selector_text(whole) or NONE


def custom_columns(definitions: Sequence[Object]) -> list[Column]:
    """additionalPrinterColumns of a definition."""
    return [NAME, *(_custom(one) for one in definitions)]


def _custom(definition: Object) -> Column:
    path = definition["jsonPath"]
    text = f"Custom resource definition column (in JSONPath format): {path}"
    return Column(
        definition["name"],
        _custom_cell(path, definition["type"]),
        definition.get("description") or text,
        definition.get("priority", 0),
        definition["type"],
        definition.get("format", ""),
    )


def _custom_cell(path: str, kind: str) -> Cell:
    def cell(row: Row) -> Any:
        values = jsonpath.find(path, row.obj)
        if not values or values[0] is None:
            return None
        if kind == "date":
            return since(str(values[0]), row.now)
        return str(values[0]) if kind == "string" else values[0]

    return cell
