"""Every planted bug has exactly one place in the code of claimctl."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from labs.torture.mutants import MUTANTS
from labs.torture.planting import Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_changes_one_place(mutant: Mutant) -> None:
    spec = find_spec(mutant.module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    assert ast.dump(mutant.planted(ast.parse(source))) != ast.dump(ast.parse(source))
