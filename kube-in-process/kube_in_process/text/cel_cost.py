"""Estimate what a CEL expression costs at most, by the sizes of its values."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

from kube_in_process.text.cel_checker import variables
from kube_in_process.text.cel_tree import CelNode
from kube_in_process.text.cel_type import DYN, UNBOUNDED, CelType

_COMPARISONS = ("_==_", "_!=_", "_<_", "_<=_", "_>_", "_>=_")
_SIZED = ("string", "bytes", "list", "map", "dyn")
_WALKING = ("lowerAscii", "upperAscii", "trim", "substring")
_WALKING_TWICE = ("split", "replace")
_EACH_ITEM = ("sum", "min", "max", "isSorted", "indexOf", "lastIndexOf")
_LIST = 10
"""What it costs to make a list."""
_FIXED = {
    **{"literal": 0, "has": 0, "field": 0, "name": 1, "select": 1, "optional": 1},
    **{"list": _LIST, "map": 30, "object": 40},
}
_STEPS = {"all": 3, "exists": 4, "exists_one": 2, "existsOne": 2, "filter": 3 + _LIST}
"""The cost of a step of a macro beside its expression. The others make a list."""
_WALK, _PATTERN = 0.1, 0.25
"""The cost of a character that is read, and of one of a regular expression."""


def cost(node: CelNode, types: Mapping[int, CelType]) -> int:
    """The highest cost of an expression; ``types`` are those of its nodes by their identity."""
    if node.kind == "method" and (of_macro := _macro(node, types)) is not None:
        return of_macro
    parts = sum(cost(part, types) for part in node.parts)
    if node.name == "_+_" and types.get(id(node), DYN).name == "string":
        return parts + _walk(_size(node, types))
    sizes = [_size(part, types) for part in node.parts]
    if node.name in ("_==_", "_!=_"):
        sizes = [_compared(part, types) for part in node.parts]
    own = _own(node, sizes)
    return min(parts + own, UNBOUNDED)


def _own(node: CelNode, sizes: list[int]) -> int:
    if node.kind in _FIXED:
        return _FIXED[node.kind]
    if node.name in ("_&&_", "_||_", "_?_:_"):
        return 0
    if node.name in ("_[_]", "_[?_]"):
        return 1
    if node.name in _COMPARISONS:
        return _walk(min(sizes))
    if node.name == "@in":
        return sizes[1]
    return _of_text(node, sizes)


def _of_text(node: CelNode, sizes: list[int]) -> int:
    """The cost of a function that goes through a text or a list; 1 for any other."""
    if node.name in ("matches", "find", "findAll"):
        return _walk(sizes[0] + 1) * ceil(sizes[-1] * _PATTERN)
    if node.parts[0].name == "sets":
        return sizes[1] * sizes[-1]
    if node.name == "contains":
        return _walk(sizes[0]) * _walk(sizes[-1])
    if node.name in ("startsWith", "endsWith"):
        return _walk(sizes[-1])
    if node.name in _WALKING:
        return _walk(sizes[0])
    if node.name in _WALKING_TWICE:
        return _walk(2 * sizes[0])
    return sizes[0] if node.kind == "method" and node.name in _EACH_ITEM else 1


def _walk(size: int) -> int:
    return ceil(size * _WALK)


def _size(node: CelNode, types: Mapping[int, CelType]) -> int:
    kind = types.get(id(node), DYN)
    return kind.most if kind.name in _SIZED else 1


def _compared(node: CelNode, types: Mapping[int, CelType]) -> int:
    """The size of what is compared for equality: numbers of an object have none."""
    sized = types.get(id(node), DYN).name in _SIZED or node.kind == "literal"
    return _size(node, types) if sized else 0


def _count(node: CelNode, types: Mapping[int, CelType]) -> int:
    """How many items a macro goes through. A number that is not known counts as one."""
    size = _size(node, types)
    return size if size < UNBOUNDED else 1


def _macro(node: CelNode, types: Mapping[int, CelType]) -> int | None:
    _, bodies = variables(node)
    if not bodies or id(node.parts[1]) in types:
        return None
    step = sum(cost(body, types) for body in bodies) + _STEPS.get(node.name, 2 + _LIST)
    whole = cost(node.parts[0], types) + 1 + _count(node.parts[0], types) * step
    return min(whole, UNBOUNDED)
