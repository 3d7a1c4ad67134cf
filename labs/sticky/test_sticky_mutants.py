"""Every planted bug has exactly one place in the code of claimctl, which is not imported before."""

from __future__ import annotations

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from labs.sticky.mutants import MUTANTS
from labs.torture.planting import Mutant

PRINT_IMPORTED = """
import sys
from labs.sticky.mutants import MUTANTS
print([mutant.module for mutant in MUTANTS if mutant.module in sys.modules])
"""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_about_sticky_claims_changes_one_place(mutant: Mutant) -> None:
    spec = find_spec(mutant.module)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text(encoding="utf-8")
    assert ast.dump(mutant.planted(ast.parse(source))) != ast.dump(ast.parse(source))


def test_no_module_is_imported_before_its_bug_is_planted() -> None:
    root = Path(__file__).parents[2]
    command = (sys.executable, "-c", PRINT_IMPORTED)
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
