"""The examples in the help of every command: there are some, and claimctl takes them."""

from __future__ import annotations

import re
import shlex

import pytest

from claimctl.cli.main import examples_of, load, run
from claimctl.cli.registry import BY_NAME, COMMANDS, entry_of

LINES = [(entry.name, line) for entry in COMMANDS for line in examples_of(entry)]


def command_lines(example: str) -> list[list[str]]:
    """The words of each call of claimctl in an example, without what the shell takes."""
    found = re.findall(r"claimctl ((?:[^|)#>\n])*)", example.split(" #")[0])
    return [shlex.split(each) for each in found]


@pytest.mark.parametrize("name", BY_NAME)
def test_every_command_has_examples_and_its_help_shows_them(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    examples = examples_of(BY_NAME[name])
    assert 2 <= len(examples) <= 6
    assert all(f"claimctl {name}" in each for each in examples)
    assert all(len(each) <= 100 for each in examples)
    assert run([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert "Examples:" in shown
    assert all(f"  {each}\n" in shown for each in examples)


@pytest.mark.parametrize(("name", "example"), LINES)
def test_claimctl_takes_every_example(name: str, example: str) -> None:
    calls = command_lines(example)
    called = [(entry, words) for words in calls if (entry := entry_of(words)) is not None]
    assert len(called) == len(calls)
    assert called[0][0].name == name
    for entry, words in called:
        needed = ["x"] if "xargs" in example and entry.name != name else []
        arguments = [*words[len(entry.name.split()) :], *needed]
        with load(entry).make_context(entry.name, arguments) as context:
            assert context.params
