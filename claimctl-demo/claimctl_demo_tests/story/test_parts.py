"""Which parts the demonstration has."""

from __future__ import annotations

import pytest

from claimctl_demo.story.parts import KEP_STEPS, Part, parts_to_play


def test_without_a_dialect_todays_kubernetes_comes_first_then_what_the_kep_adds() -> None:
    today, kep = parts_to_play(None, None)
    assert today == Part("hold", "1.36", skipped=("more-than-256",))
    assert kep == Part("native", "1.36", only=KEP_STEPS)
    assert "No released Kubernetes has it" in kep.heading


@pytest.mark.parametrize(
    ("dialect", "version", "versions"),
    [
        ("hold", None, ["1.34", "1.36"]),
        ("podgroup", None, ["1.36", "1.37"]),
        ("native", None, ["1.36"]),
        ("hold", "1.32", ["1.32"]),
    ],
)
def test_a_dialect_is_played_whole_on_its_versions(
    dialect: str, version: str | None, versions: list[str]
) -> None:
    parts = parts_to_play(dialect, version)
    assert [part.version for part in parts] == versions
    assert all(part.dialect == dialect and part.plays("any-step") for part in parts)


def test_a_version_alone_is_that_of_both_parts() -> None:
    assert [part.numbers for part in parts_to_play(None, "1.34")] == [(1, 34), (1, 34)]
