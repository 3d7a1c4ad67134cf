"""``claimctl timeline`` in every form."""

from __future__ import annotations

import json

import pytest
import yaml

from claimctl.cli.formats import Output
from claimctl.commands.timeline.work import print_timeline
from tests.unit.commands.timeline.stories import life, timeline


@pytest.mark.parametrize(
    ("output", "begins"),
    [
        (Output.TABLE, "Claim train/slice\n"),
        (Output("svg"), "<svg "),
        (Output("html"), "<!doctype html>"),
        (Output.YAML, "apiVersion: cli.claimctl.io/v1alpha1\nkind: ClaimTimeline"),
    ],
)
def test_each_form(output: Output, begins: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_timeline(timeline(life()), output)
    assert capsys.readouterr().out.startswith(begins)


def test_programs_get_the_same_from_json_and_yaml(capsys: pytest.CaptureFixture[str]) -> None:
    print_timeline(timeline(life()), Output.JSON)
    found = json.loads(capsys.readouterr().out)
    assert found["spans"][1] == {
        "lane": "device",
        "name": "node-0/gpu-0",
        "state": "",
        "start": "2026-03-01T12:00:02Z",
        "end": "2026-03-01T12:01:00Z",
        "startedBefore": False,
    }
    print_timeline(timeline(life()), Output.YAML)
    assert yaml.safe_load(capsys.readouterr().out) == found


def test_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_timeline(timeline(life()), Output.TABLE)
    bars = [line for line in capsys.readouterr().out.splitlines() if "█" in line][:3]
    assert {len(line) for line in bars} <= {40}
