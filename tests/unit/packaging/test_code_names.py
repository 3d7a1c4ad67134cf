"""The names in the code: a class has a name of its own, and a value that of its kind."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from claimctl.reservation.kinds.shipped import shipped_rules

ROOT = Path(__file__).parents[3]
FOLDERS = (ROOT / "claimctl", ROOT / "claimctl-reschedule" / "claimctl_reschedule")
_CLASS = re.compile(r"^ *class (\w+)", re.MULTILINE)
ANYTHING = {"each", "found", "one", "told"}
"""Words that say nothing about what a value is."""


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.Module]:
    """The modules of the product."""
    files = (path for folder in FOLDERS for path in sorted(folder.rglob("*.py")))
    return {path: ast.parse(path.read_text()) for path in files}


def names(tree: ast.AST) -> Iterator[str]:
    """The names of variables, parameters and functions."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name


def classes(path: Path) -> set[str]:
    """The names of the classes in a file."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {node.name for node in nodes if isinstance(node, ast.ClassDef)}


def test_no_name_says_nothing(trees: dict[Path, ast.Module]) -> None:
    empty = {str(path): ANYTHING & set(names(tree)) for path, tree in trees.items()}
    assert {name: words for name, words in empty.items() if words} == {}


def test_no_name_in_the_cluster_in_a_process_says_nothing() -> None:
    words = {"each", "found", "made"}
    # most files have these words in sentences only, and are not parsed
    suspect = re.compile(r"^[^\"#]*\b(each|found|made)\b *([:=(]|, \w+ |in\b)", re.MULTILINE)
    empty = {
        path.name: words & set(names(ast.parse(text)))
        for path in (ROOT / "kube-in-process").rglob("*.py")
        if suspect.search(text := path.read_text())
    }
    assert {name: words for name, words in empty.items() if words} == {}


@pytest.mark.parametrize(
    "folders",
    [
        pytest.param(("claimctl", "packaging", "labs", "bench", "tests"), id="claimctl"),
        pytest.param(("claimctl", "claimctl-reschedule/claimctl_reschedule"), id="product"),
        pytest.param(("claimctl-reschedule",), id="claimctl-reschedule"),
        pytest.param(("claimctl-demo",), id="claimctl-demo"),
        pytest.param(("kube-in-process",), id="kube-in-process"),
    ],
)
def test_no_two_files_have_a_class_of_the_same_name(folders: tuple[str, ...]) -> None:
    """Somebody who looks for a class finds one. Tests, labs and judges count, too."""
    places: dict[str, set[Path]] = defaultdict(set)
    for path in (path for folder in folders for path in (ROOT / folder).rglob("*.py")):
        for name in _CLASS.findall(path.read_text()):
            places[name].add(path)
    assert len(places) > 30
    # a text of a test may look like a class: only what is suspect is parsed
    twins = {
        name: real
        for name, files in places.items()
        if len(files) > 1
        if len(real := {path for path in files if name in classes(path)}) > 1
    }
    assert twins == {}


def test_no_decision_names_a_kind_of_workload(trees: dict[Path, ast.Module]) -> None:
    """What a kind does is in its rule, and what its struct is in ``wire``."""
    kinds = {kind for _, kind in shipped_rules()}
    parts = [ROOT / "claimctl" / part for part in ("reservation", "controller")]
    of = {path: tree for path, tree in trees.items() if set(parts) & set(path.parents)}
    named = {
        path.name: {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)} & kinds
        for path, tree in of.items()
    }
    asked = {
        path.name: {
            part.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance"
            for part in ast.walk(node.args[1])
            if isinstance(part, ast.Name)
        }
        & kinds
        for path, tree in of.items()
    }
    assert len(of) > 40
    assert {name: words for name, words in named.items() if words} == {}
    assert {name: words for name, words in asked.items() if words} == {}
