"""Sets of fields in the form of ``fieldsV1``: nested dicts of path elements.

An element is ``f:name``, ``k:{"key":"value"}`` (an item of a map list) or ``v:value`` (an item of a
set). A node is a member if it is empty, or has the element ``.`` beside others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

Fields = dict[str, Any]
Path = tuple[str, ...]

SELF = "."


def copied(fields: Fields) -> Fields:
    return {element: copied(below) for element, below in fields.items()}


def insert(fields: Fields, path: Path) -> None:
    """Add ``path``."""
    node, is_new = fields, True
    for element in path:
        if not node and not is_new:
            node[SELF] = {}
        is_new = element not in node
        node = node.setdefault(element, {})
    if node:
        node[SELF] = {}


def contains(fields: Fields, path: Path) -> bool:
    node = _at(fields, path)
    return node is not None and (not node or SELF in node)


def covers(fields: Fields, path: Path) -> bool:
    """Whether ``path`` or a path below it is a member."""
    return _at(fields, path) is not None


def _at(fields: Fields, path: Path) -> Fields | None:
    node: Fields | None = fields
    for element in path:
        if node is None:
            return None
        node = node.get(element)
    return node


def remove(fields: Fields, path: Path) -> None:
    """Remove ``path``; paths below it stay."""
    node = _at(fields, path)
    if node is None:
        return
    node.pop(SELF, None)
    if not node:
        drop(fields, path)


def drop(fields: Fields, path: Path) -> None:
    """Remove ``path`` and all paths below it."""
    parents = [fields]
    for element in path[:-1]:
        below = parents[-1].get(element)
        if below is None:
            return
        parents.append(below)
    if parents[-1].pop(path[-1], None) is None:
        return
    for parent, element in zip(reversed(parents[:-1]), reversed(path[:-1]), strict=True):
        node = parent[element]
        if node.keys() == {SELF}:
            del node[SELF]
            return
        if node:
            return
        del parent[element]


def members(fields: Fields, path: Path = ()) -> Iterator[Path]:
    """Yield every member, parents first."""
    if path and (not fields or SELF in fields):
        yield path
    for element, below in fields.items():
        if element != SELF:
            yield from members(below, (*path, element))


def item_element(keys: Mapping[str, Any]) -> str:
    """The path element of an item of a map list."""
    return "k:" + json.dumps(keys, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def value_element(value: Any) -> str:
    """The path element of an item of a set."""
    return "v:" + json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def shown(path: Path) -> str:
    """A path in the form of conflict messages: ``.status.reservedFor[uid="x"].name``."""
    return "".join(_shown(element) for element in path)


def _shown(element: str) -> str:
    form, _, text = element.partition(":")
    if form == "f":
        return f".{text}"
    if form == "v":
        return f"[={text}]"
    keys = json.loads(text)
    inside = ",".join(f"{key}={json.dumps(value)}" for key, value in keys.items())
    return f"[{inside}]"
