"""Which steps a story has."""

from __future__ import annotations

import pytest

from claimctl_demo.story.parts import Part
from claimctl_demo.story.story import Plot


@pytest.mark.parametrize(
    ("version", "resizes"), [("1.32", False), ("1.33", True), ("1.36", True), ("2.0", True)]
)
def test_pods_are_resized_from_1_33_on(version: str, resizes: bool) -> None:
    assert Plot.of(Part("hold", version)).resizes is resizes


@pytest.mark.parametrize(("version", "mutates"), [("1.35", False), ("1.36", True), ("2.0", True)])
def test_pods_get_sticky_claims_from_1_36_on(version: str, mutates: bool) -> None:
    assert Plot.of(Part("hold", version)).mutates is mutates
