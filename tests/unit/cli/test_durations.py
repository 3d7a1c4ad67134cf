"""Every flag that takes a time takes a duration, and a number is seconds."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from claimctl.cli.durations import seconds
from claimctl.cli.main import load, run
from claimctl.cli.registry import BY_NAME

FLAGS = [
    ("install", "timeout"),
    ("uninstall prepare", "timeout"),
    ("uninstall prepare", "settle_seconds"),
    ("doctor orphans", "grace_seconds"),
    ("downgrade prepare", "timeout"),
    ("downgrade restore", "timeout"),
    ("release", "timeout"),
    ("controller", "settle_seconds"),
    ("controller", "drain_seconds"),
]


@pytest.mark.parametrize(
    ("text", "number"), [("30", 30), ("0.5", 0.5), ("500ms", 0.5), ("5m", 300), ("1h30m", 5400)]
)
def test_a_duration_is_in_seconds(text: str, number: float) -> None:
    assert seconds(text) == number


@pytest.mark.parametrize("text", ["", "5 m", "m5", "-3", "1d", "5mm"])
def test_another_word_is_bad_input(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a duration like 30s, 5m or 1h30m"):
        seconds(text)


@pytest.mark.parametrize(("command", "flag"), FLAGS)
def test_each_flag_has_the_one_grammar(command: str, flag: str) -> None:
    loaded: Any = load(BY_NAME[command])
    option = next(parameter for parameter in loaded.params if parameter.name == flag)
    context = typer.Context(loaded)
    assert [option.process_value(context, text) for text in ("45", "45s", "5m")] == [45, 45, 300]


def test_a_bound_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", "orphans", "--settle-seconds", "2h"]) == 2
    assert "'2h' is too long: 3600s or less is expected" in capsys.readouterr().err
    assert run(["install", "--timeout", "0"]) == 2
    assert "'0' is too short: 1s or more is expected" in capsys.readouterr().err


def test_help_shows_each_default_as_a_duration() -> None:
    commands: list[Any] = [load(command) for command in BY_NAME.values()]
    shown = {
        str(option.default)
        for command in commands
        for option in getattr(command, "params", ())
        if option.metavar == "DURATION" and option.default is not None and not option.hidden
    }
    assert {"5m", "2m"} <= shown
    assert {text for text in shown if text != "0" and text[-1].isdigit()} == set()
