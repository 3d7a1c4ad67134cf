"""``-o`` is the same for every command that shows something."""

from __future__ import annotations

from typing import Any

import pytest
import typer

from claimctl.cli.main import load, run
from claimctl.cli.registry import BY_NAME, COMMANDS

SHOW_NOTHING = {"controller", "demo cluster", "completion"}
DATA = ["json", "yaml"]


def option(command: str) -> Any:
    params = load(BY_NAME[command]).params
    return next((each for each in params if each.name == "output"), None)


def converted(command: str, value: str) -> Any:
    return option(command).process_value(typer.Context(load(BY_NAME[command])), value)


@pytest.mark.parametrize("name", [each.name for each in COMMANDS])
def test_every_command_that_shows_something_takes_the_same_values(name: str) -> None:
    found = option(name)
    assert (found is None) == (name in SHOW_NOTHING)
    if found is None:
        return
    people = ["table", "wide"]
    facts = {"doctor", "doctor driver", "version", "demo"}
    names = [] if name in facts else ["name"]
    for value in (*DATA, *people, *names):
        assert str(converted(name, value)) == value


@pytest.mark.parametrize("value", ["xml", "json=x", "text", "svg"])
def test_other_values_are_bad_input_before_a_cluster_is_asked(
    value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["get", "--server", "http://127.0.0.1:1", "-o", value]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert f"'{value}' is not one of table, wide, name, json, yaml (see" in err


def test_data_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["version", "--client", "-o", "yaml"]) == 0
    assert capsys.readouterr().out.startswith(
        "apiVersion: cli.claimctl.io/v1alpha1\nkind: Version\n"
    )


def test_manifests_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["install", "--image", "i:1", "--dry-run", "-o", "name"]) == 0
    assert "deployment.apps/claimctl-controller\n" in capsys.readouterr().out
