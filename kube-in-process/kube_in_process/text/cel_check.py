"""Check the syntax and the names of CEL expressions, but not their types."""

from __future__ import annotations

import re

from kube_in_process.text.cel import compiled

_NAMES = re.compile(
    r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|(?P<name>(?<![\w.])[A-Za-z_]\w*)(?P<call>\s*\()?"
)
_CONSTANTS = frozenset(("false", "in", "null", "true"))
_TYPES = frozenset(("bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"))
_MACROS = re.compile(r"\.(all|exists|exists_one|filter|map|bind|transform\w*)\s*\(|\bcel\.")
"""Macros declare names of their own."""


def syntax_error(source: str) -> str | None:
    """The error text of a parser; None if the expression is valid."""
    try:
        compiled(source)
    except ValueError as error:
        return f"compilation failed: {error}"
    if source.strip().isdigit():
        return "must evaluate to bool or the unknown type, not int"
    return undeclared(source, frozenset(("device",)))


def undeclared(source: str, names: frozenset[str]) -> str | None:
    """The error text of a checker for other names than these; None if there are none."""
    if _MACROS.search(source):
        return None
    errors: list[str] = []
    for match in _NAMES.finditer(source):
        name = match.group("name")
        if name and not match.group("call") and name not in _CONSTANTS | _TYPES | names:
            column = match.start("name")
            where = f"<input>:1:{column + 1}: undeclared reference to '{name}' (in container '')"
            marked = f" | {source}\n | {'.' * column}^"
            errors.append(f"ERROR: {where}\n{marked}")
    return "compilation failed: " + "\n".join(errors) if errors else None
