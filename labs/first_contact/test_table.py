"""The table of what first users met: each entry names tests that there are."""

from __future__ import annotations

import ast
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("reproductions.yaml")


def functions(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}


def test_each_test_of_the_table_is_there() -> None:
    table = yaml.safe_load(TABLE.read_text(encoding="utf-8"))
    named = [test.split("::") for entry in table.values() for test in entry["tests"]]
    assert [(file, name) for file, name in named if name not in functions(file)] == []
    assert all(entry["did"] and entry["tests"] for entry in table.values())
