"""The commands in what claimctl says: in conditions, in Events and in advice."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import claimctl
from claimctl.cli.registry import BY_NAME
from claimctl_reschedule import extension

ROOT = Path(claimctl.__file__).parent
SPEAKERS = ("reservation", "controller", "commands/claims", "commands/doctor", "commands/orphans")
"""Where the words of conditions, Events, ``explain`` and ``doctor`` are, beside an extension's."""
_NAMES = "|".join(sorted({name.split()[0] for name in BY_NAME}, key=len, reverse=True))
_COMMAND = re.compile(rf"\b(?:claimctl (?:{_NAMES})\b|kubectl (?:-n|[a-z{{]))[^`()\n;]*")
_ARGUMENT = re.compile(r"\{\}|\b[A-Z]{2,}\b")


def printed_commands() -> frozenset[str]:
    """Each command that a text has; ``{}`` stands for what is filled in."""
    return frozenset(_collected())


def pattern(command: str) -> re.Pattern[str]:
    """What a command that was printed and run looks like."""
    return re.compile(".+".join(map(re.escape, _ARGUMENT.split(command))))


def _collected() -> Iterator[str]:
    for path in (Path(extension.__file__), *_files("*.py")):
        for text in _texts(ast.parse(path.read_text(encoding="utf-8"))):
            yield from _in(text)
    for path in _files("meanings.toml"):
        for topic in tomllib.loads(path.read_text(encoding="utf-8")).values():
            for texts in topic.values():
                for text in texts.values():
                    yield from _in(text)


def _files(name: str) -> list[Path]:
    return sorted(path for folder in SPEAKERS for path in (ROOT / folder).rglob(name))


def _in(text: str) -> Iterator[str]:
    for match in _COMMAND.finditer(text):
        yield match.group().strip().rstrip(".,:")


def _texts(tree: ast.Module) -> Iterator[str]:
    """The strings of a module that are no docstrings, no examples and no help."""
    skipped: set[ast.AST] = set()
    for node in ast.walk(tree):
        if node in skipped or _is_docstring(node) or _is_usage(node):
            skipped |= set(ast.iter_child_nodes(node))
        elif isinstance(node, ast.JoinedStr):
            skipped |= set(ast.iter_child_nodes(node))
            yield "".join(
                str(it.value) if isinstance(it, ast.Constant) else "{}" for it in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_usage(node: ast.AST) -> bool:
    if isinstance(node, ast.Assign):
        return any(isinstance(it, ast.Name) and it.id == "EXAMPLES" for it in node.targets)
    return isinstance(node, ast.keyword) and node.arg == "help"
