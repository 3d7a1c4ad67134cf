"""The types of the values that CEL rules of custom kinds see, by their structural schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kube_in_process.crd.rules import escaped
from kube_in_process.text.cel_type import BOOL, DOUBLE, INT, STRING, CelType

Raw = Mapping[str, Any]

REQUEST = 3 * 1024 * 1024
"""The most bytes of a request."""
_TIMES = {"date-time": ("timestamp", 48), "date": ("timestamp", 10), "duration": ("duration", 32)}
_SMALLEST = {"string": 2, "integer": 1, "number": 1, "boolean": 4, "object": 2, "array": 2}
_ROOT: Raw = {
    "apiVersion": {"type": "string"},
    "kind": {"type": "string"},
    "metadata": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "generateName": {"type": "string"}},
    },
}


def rule_type(raw: Raw, *, root: bool = False) -> CelType | None:
    """The type of a value as rules see it; None if rules do not see it."""
    if raw.get("x-kubernetes-int-or-string"):
        return CelType("dyn", most=REQUEST)
    kind = raw.get("type")
    if kind == "object":
        return _object(raw, root or bool(raw.get("x-kubernetes-embedded-resource")))
    if kind == "array":
        items = rule_type(_inner(raw, "items"))
        return CelType("list", (items,), most=most_items(raw)) if items is not None else None
    if kind == "string":
        return _string(raw)
    return {"boolean": BOOL, "number": DOUBLE, "integer": INT}.get(kind or "")


def _object(raw: Raw, root: bool) -> CelType | None:
    additional = raw.get("additionalProperties")
    if isinstance(additional, dict):
        values = rule_type(additional)
        return CelType("map", (STRING, values), most=most_items(raw)) if values else None
    properties = {**(raw.get("properties") or {}), **(_ROOT if root else {})}
    types = {escaped(name): rule_type(below) for name, below in properties.items()}
    return CelType("object", fields={name: kind for name, kind in types.items() if kind})


def _string(raw: Raw) -> CelType:
    form = raw.get("format", "")
    if form in _TIMES:
        name, most = _TIMES[form]
        return CelType(name, most=most)
    if raw.get("maxLength") is not None:
        most = raw["maxLength"] * (1 if form == "byte" else 4)
    else:
        most = max((len(str(choice)) for choice in raw.get("enum") or ()), default=REQUEST - 2)
    return CelType("bytes" if form == "byte" else "string", most=most)


def most_items(raw: Raw) -> int:
    """How many items a list or a map has at most in one request."""
    if raw.get("type") == "array":
        fitting = (REQUEST - 2) // (smallest(_inner(raw, "items")) + 1)
        return _limit(raw, "maxItems", fitting)
    fitting = (REQUEST - 2) // (smallest(_inner(raw, "additionalProperties")) + 6)
    return _limit(raw, "maxProperties", fitting)


def _limit(raw: Raw, key: str, fitting: int) -> int:
    return fitting if raw.get(key) is None else int(raw[key])


def _inner(raw: Raw, key: str) -> Raw:
    """The schema below a key; empty for a boolean."""
    below = raw.get(key)
    return below if isinstance(below, dict) else {}


def smallest(raw: Raw) -> int:
    """The fewest bytes of a value in a request."""
    properties = raw.get("properties") or {}
    needed = (name for name in raw.get("required") or () if name in properties)
    wanted = [name for name in needed if "default" not in properties[name]]
    inner = sum(len(name) + smallest(properties[name]) + 4 for name in wanted)
    return _SMALLEST.get(raw.get("type") or "", 1) + inner
