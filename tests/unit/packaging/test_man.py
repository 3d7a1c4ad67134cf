"""The manual pages: one can be made of each command, with its options, and groff takes it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from claimctl.cli.main import examples_of, load
from claimctl.cli.registry import COMMANDS, Command
from generate.man import pages


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    return pages()


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_a_page_names_every_option_and_has_the_examples(
    entry: Command, made: dict[str, str]
) -> None:
    text = made[f"{entry.page}.1"].replace("\\-", "-")
    for parameter in load(entry).params:
        if parameter.param_type_name == "option":
            assert all(each in text for each in parameter.opts)
    assert all(each in text for each in examples_of(entry))


def test_each_page_belongs_to_a_command(made: dict[str, str]) -> None:
    names = {"claimctl", *(entry.page for entry in COMMANDS)}
    assert made.keys() == {f"{name}.1" for name in names}


@pytest.mark.skipif(shutil.which("groff") is None, reason="there is no groff on this machine")
def test_groff_has_nothing_to_say(made: dict[str, str], tmp_path: Path) -> None:
    for name, text in made.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    paths = [str(tmp_path / name) for name in made]
    command = ["groff", "-man", "-Tutf8", "-ww", "-z", *paths]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
