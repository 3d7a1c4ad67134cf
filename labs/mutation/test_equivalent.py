"""Each entry of equivalent.yaml is about a place that is still there."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

from labs.mutation.equivalent import Equivalent, equivalents
from labs.mutation.places import MutationPlaces


@pytest.mark.parametrize(
    "entry", equivalents(), ids=lambda entry: f"{entry.function}: {entry.change}"
)
def test_an_equivalent_mutation_is_about_one_place(entry: Equivalent) -> None:
    spec = find_spec(entry.module)
    assert spec is not None
    assert spec.origin is not None
    places = MutationPlaces()
    places.planted(entry.module, ast.parse(Path(spec.origin).read_text(encoding="utf-8")))
    named = [place for place in places.found if entry.names(place)]
    assert len(named) == 1, f"{entry.module} has no such place any more: {entry}"
    assert entry.reason
