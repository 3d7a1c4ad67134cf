"""Every planted bug has exactly one place in the source of claimctl."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.torture.mutants import MUTANTS, Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_what_a_mutant_changes_is_there_once(mutant: Mutant) -> None:
    found = find_spec(mutant.module)
    assert found is not None
    assert found.origin is not None
    assert Path(found.origin).read_text(encoding="utf-8").count(mutant.old) == 1
    assert mutant.old != mutant.new
