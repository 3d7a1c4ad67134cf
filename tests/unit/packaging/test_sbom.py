"""The bills of materials name what is locked, with its dependencies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generate.sbom import FILES, packages
from tests.support.locks import pins

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(("file", "lock"), FILES.items(), ids=str)
def test_it_names_every_locked_package_once(file: Path, lock: str) -> None:
    bill = json.loads((ROOT / file).read_text())
    named = [(each["name"], each["version"]) for each in bill["components"]]
    assert dict(named) == pins(lock)
    assert len(named) == len(pins(lock))
    references = {each["bom-ref"] for each in bill["components"]}
    root = bill["metadata"]["component"]["bom-ref"]
    assert {each["ref"] for each in bill["dependencies"]} == references | {root}
    for each in bill["dependencies"]:
        assert set(each["dependsOn"]) <= references


def test_it_says_which_package_needs_which() -> None:
    bill = json.loads((ROOT / "sbom/claimctl-image.cdx.json").read_text())
    needs = {
        each["ref"].partition("@")[0]: {ref.partition("@")[0] for ref in each["dependsOn"]}
        for each in bill["dependencies"]
    }
    assert "pkg:pypi/aiohttp" in needs["pkg:pypi/claimctl"]
    assert "pkg:pypi/yarl" in needs["pkg:pypi/aiohttp"]
    assert "pkg:pypi/yarl" not in needs["pkg:pypi/claimctl"]


def test_an_entry_that_is_no_pin_is_refused() -> None:
    with pytest.raises(ValueError, match="not a pin: aiohttp>=3"):
        packages("aiohttp>=3\n")
