"""The JSONPath of definitions: fields, indexes, wildcards and simple filters."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

Json = Any
Step = tuple[str, str, str]
"""(kind, name, value): a field, an index, all items, or a filter on a field's value."""

_STEP = re.compile(
    r"""\.(?P<field>(?:\\\.|[A-Za-z0-9_\-/$])+)"""
    r"""|\[\s*'(?P<quoted>[^']*)'\s*\]|\[\s*"(?P<double>[^"]*)"\s*\]"""
    r"""|\[(?P<index>-?\d+)\]"""
    r"""|\[\?\(\s*@\.(?P<key>[A-Za-z0-9_\-.]+)\s*==\s*(?P<quote>['"])(?P<value>.*?)(?P=quote)\s*\)\]"""
    r"""|(?P<every>\[\*\]|\.\*)"""
)


def find(path: str, value: Json) -> list[Json]:
    """Every value at ``path``: ``.spec.replicas``, ``.conditions[?(@.type=="Ready")].status``.

    Raises:
        ValueError: the path is not understood.
    """
    values: Iterable[Json] = [value]
    for step in steps(path):
        values = list(_follow(step, values))
    return list(values)


@lru_cache(maxsize=512)
def steps(path: str) -> tuple[Step, ...]:
    """The steps of a path. Raises ValueError."""
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    path_steps: list[Step] = []
    while text:
        match = _STEP.match(text)
        if match is None:
            raise ValueError(f"JSONPath {path!r} is not understood at {text!r}")
        path_steps.append(_step(match))
        text = text[match.end() :]
    return tuple(path_steps)


def _step(match: re.Match[str]) -> Step:
    if match["every"]:
        return ("every", "", "")
    if match["index"] is not None:
        return ("index", match["index"], "")
    if match["key"]:
        return ("filter", match["key"], match["value"])
    name = match["field"] or match["quoted"] or match["double"] or ""
    return ("field", name.replace("\\.", "."), "")


def _follow(step: Step, values: Iterable[Json]) -> Iterator[Json]:
    kind, name, wanted = step
    for value in values:
        if kind == "field" and isinstance(value, dict):
            if name in value:
                yield value[name]
        elif kind == "every":
            yield from value.values() if isinstance(value, dict) else value or ()
        elif kind == "index" and isinstance(value, list):
            yield from value[int(name) :][:1]
        elif kind == "filter" and isinstance(value, list):
            yield from (
                item for item in value if isinstance(item, dict) and _text(item, name) == wanted
            )


def _text(item: dict[str, Json], name: str) -> str:
    value: Json = item
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return str(value)


def put(path: str, value: dict[str, Json], new: Json) -> None:
    """Set a path of fields, and create the objects on the way."""
    *before, last = steps(path)
    for _, name, _ in before:
        value = value.setdefault(name, {})
    value[last[1]] = new
