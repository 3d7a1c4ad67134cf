"""The manual pages: each command has one, with its options and examples, and groff takes it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from claimctl.cli.main import examples_of, load
from claimctl.cli.registry import COMMANDS, Command

FOLDER = Path(__file__).parents[3] / "man"
PAGES = sorted(FOLDER.glob("*.1"))


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_a_page_names_every_option_and_has_the_examples(entry: Command) -> None:
    text = (FOLDER / f"{entry.page}.1").read_text().replace("\\-", "-")
    for parameter in load(entry).params:
        if parameter.param_type_name == "option":
            assert all(each in text for each in parameter.opts)
    assert all(each in text for each in examples_of(entry))


def test_each_page_belongs_to_a_command() -> None:
    names = {"claimctl", *(entry.page for entry in COMMANDS)}
    assert {page.stem for page in PAGES} == names


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff on this machine")
def test_groff_has_nothing_to_say() -> None:
    command = ["groff", "-man", "-Tutf8", "-ww", "-z", *map(str, PAGES)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
