"""The types of the objects that a mutation makes: they are named by the path of their field."""

from __future__ import annotations

from functools import lru_cache

from kube_in_process.text.cel_tree import CelNode, NotUnderstood, tree_of

_ROOT = "Object"
_PASSING = ("list", "_?_:_", "_+_")
"""Nodes whose value is that of their parts, or a list of them."""


@lru_cache(maxsize=1024)
def type_mismatch(source: str) -> str:
    """The error text of an object in a field that its type does not name; '' if there is none.

    ``Object{spec: Object.metadata{}}`` is wrong, as the field ``spec`` has ``Object.spec``.
    """
    try:
        return _below(tree_of(source))
    except NotUnderstood:
        return ""


def _below(node: CelNode) -> str:
    if node.kind == "object" and node.name.split(".")[0] == _ROOT:
        for member in node.parts:
            problem = _unlike(member.parts[0], f"{node.name}.{member.name}")
            if problem:
                return problem
    return next(filter(None, map(_below, node.parts)), "")


def _unlike(node: CelNode, wanted: str) -> str:
    """The error text if the value of a node is an object of another type than ``wanted``."""
    if node.kind == "object" and node.name.split(".")[0] == _ROOT and node.name != wanted:
        shown = f'unexpected type name "{node.name}", expected "{wanted}"'
        return f"type mismatch: {shown}, which matches field name path from root Object type"
    if node.kind in _PASSING or node.name in _PASSING:
        return next(filter(None, (_unlike(part, wanted) for part in node.parts)), "")
    return ""
