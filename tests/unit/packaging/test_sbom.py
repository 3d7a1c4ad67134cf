"""The bills of materials name what is locked, with its dependencies."""

from __future__ import annotations

import json

import pytest

from generate.locked import PARTS, part
from generate.sbom import packages, text
from tests.support.locks import pins


@pytest.mark.parametrize("name", PARTS)
def test_it_names_every_locked_package_once(name: str) -> None:
    bill = json.loads(text(name))
    named = [(each["name"], each["version"]) for each in bill["components"]]
    assert dict(named) == pins(part(name))
    assert len(named) == len(dict(named))
    references = {each["bom-ref"] for each in bill["components"]}
    root = bill["metadata"]["component"]["bom-ref"]
    assert {each["ref"] for each in bill["dependencies"]} == references | {root}
    for each in bill["dependencies"]:
        assert set(each["dependsOn"]) <= references


def test_it_says_which_package_needs_which() -> None:
    bill = json.loads(text("image"))
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
