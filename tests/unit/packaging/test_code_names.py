"""The names in the product's code: a class has a name of its own, and a value that of its kind."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[3]
FILES = {path: ast.parse(path.read_text()) for path in sorted((ROOT / "claimctl").rglob("*.py"))}
ANYTHING = {"each", "found", "one", "told"}
"""Words that say nothing about what a value is."""


def names(tree: ast.AST) -> Iterator[str]:
    """The names of variables, parameters and functions."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name


def test_no_name_says_nothing() -> None:
    empty = {path.name: ANYTHING & set(names(tree)) for path, tree in FILES.items()}
    assert {name: words for name, words in empty.items() if words} == {}


def test_no_two_files_have_a_class_of_the_same_name() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path, tree in FILES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(path.relative_to(ROOT).as_posix())
    assert len(places) > 500
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
