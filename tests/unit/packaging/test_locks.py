"""The locks: what is installed everywhere, byte for byte."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from generate import locked
from tests.support.locks import pins

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EVERYTHING = pins(locked.LOCK.read_text())
LOCK = """\
one==1 \\
    --hash=sha256:a
    # via -r -
three==3 ; sys_platform == 'win32' \\
    --hash=sha256:c
    # via
    #   four
    #   two
two==2 \\
    --hash=sha256:b
    # via one
other==1 \\
    --hash=sha256:d
    # via -r -
"""


def unmet(requirements: list[str], found: dict[str, str]) -> list[str]:
    parsed = map(Requirement, requirements)
    return [
        str(each)
        for each in parsed
        if not each.specifier.contains(found.get(canonicalize_name(each.name), "0"), True)
    ]


def test_the_lock_meets_what_all_distributions_ask_for() -> None:
    assert unmet(locked.needs("dev", "bench"), EVERYTHING) == []
    measured: list[str] = PROJECT["optional-dependencies"]["bench"]
    assert set(measured) <= set(locked.needs("dev", "bench"))


def test_a_part_has_what_is_asked_for_and_what_that_needs() -> None:
    assert list(pins(locked.closed(["one"], LOCK))) == ["one", "three", "two"]
    assert locked.closed(["other", "one"], LOCK) == LOCK
    assert [each.name for each in locked.entries(f"# a comment\n{LOCK}")] == [
        "one",
        "three",
        "two",
        "other",
    ]


@pytest.mark.parametrize("name", locked.PARTS)
def test_each_part_is_of_the_lock(name: str) -> None:
    """Tests and measurements run with what users get."""
    part = locked.part(name)
    assert unmet(locked.PARTS[name](), pins(part)) == []
    assert pins(part).items() <= EVERYTHING.items()
    assert all(each.text in locked.LOCK.read_text() for each in locked.entries(part))


def test_parts_are_of_larger_parts() -> None:
    parts = {name: pins(locked.part(name)).items() for name in locked.PARTS}
    assert parts["image"] < parts["claimctl"] < parts["demo"] < parts["dev"] < EVERYTHING.items()
    assert parts["build"] < parts["demo"]
    assert pins(locked.part("build", "claimctl")).items() == parts["build"] | parts["claimctl"]


def test_claimctl_alone_asks_for_no_cluster_and_no_tool() -> None:
    assert (
        not {"cryptography", "hatchling", "pytest", "trustme"}
        & pins(locked.part("claimctl")).keys()
    )


def test_no_distribution_of_the_repository_is_asked_for() -> None:
    names = {locked.name_of(each) for each in locked.needs("dev", "bench", "demo")}
    assert not {"claimctl", "kube-in-process"} & names


def test_installing_them_prints_errors_only() -> None:
    """Warnings about the indexes of a machine would hide what a newcomer should see."""
    text = (ROOT / "Makefile").read_text()
    assert re.findall(r"pip install (-qq )?", text) == ["-qq "]


def test_the_image_has_what_users_get_without_what_only_they_need() -> None:
    image = pins(locked.part("image"))
    assert not locked.left_out() & image.keys()
    # what only these packages need is gone, too
    assert "durationpy" not in image
    # the DeviceClasses of common drivers compare attributes
    assert "common-expression-language" in image


@pytest.mark.parametrize("path", sorted((ROOT / "locks").iterdir()), ids=lambda path: path.name)
def test_every_pin_has_hashes(path: Path) -> None:
    entries = locked.entries(path.read_text())
    assert entries
    assert [each.name for each in entries if "--hash=sha256:" not in each.text] == []
