"""The table of ``make bench``: ratios, goals, and what happens to parts that cannot run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import pytest

from bench.__main__ import main, run
from bench.table import ASSETS, BenchPart, Goal, Line, at_least, at_most, medians, parts, table


@pytest.mark.parametrize(
    ("figure", "baseline", "goal", "ratio", "verdict"),
    [
        (2.0, 30.0, at_least(10), 15.0, "met"),
        (2.0, 30.0, at_least(16), 15.0, "MISSED"),
        (3.0, 2.0, at_most(2), 1.5, "met"),
        (5.0, 2.0, at_most(2), 2.5, "MISSED"),
        (0.5, None, at_most(1), None, "met"),
        (1.5, None, at_most(1), None, "MISSED"),
        (0.0, 40.0, at_least(10), float("inf"), "met"),
        (0.0, 0.0, at_least(10), 1.0, "MISSED"),
        (2.0, 30.0, None, 15.0, ""),
    ],
)
def test_a_line_has_a_ratio_and_a_verdict(
    figure: float, baseline: float | None, goal: Goal | None, ratio: float | None, verdict: str
) -> None:
    line = Line("a", figure, "b", baseline, goal=goal)
    assert (line.ratio, line.verdict) == (ratio, verdict)


def test_medians_are_of_both_samples() -> None:
    line = medians("a", [1.0, 9.0, 2.0], "b", [20.0, 30.0])
    assert (line.figure, line.baseline, line.runs) == (2.0, 25.0, 2)


def test_the_table_has_one_row_for_each_line() -> None:
    shown = table([Line("a", 0.5, "json", 2.0, "s", at_least(3), 5), Line("b", 12)])
    head, first, second = shown.splitlines()
    assert head.split()[:2] == ["what", "claimctl"]
    assert first.split() == ["a", "0.50", "s", "json", "2", "s", "4.00", ">=", "3", "met", "5"]
    assert second.split() == ["b", "12", "1"]


def _fine(_: argparse.Namespace) -> Iterator[Line]:
    yield Line("fine", 1)


def _breaks(_: argparse.Namespace) -> Iterator[Line]:
    yield Line("half", 1)
    raise OSError("no server")


def test_a_part_that_fails_costs_no_line_of_another(capsys: pytest.CaptureFixture[str]) -> None:
    options = argparse.Namespace()
    chosen = [(BenchPart("bad", "x", _breaks), options), (BenchPart("good", "x", _fine), options)]
    assert run(chosen) == 1
    out = capsys.readouterr().out
    assert "fine" in out
    assert "bad: failed: no server" in out


def test_a_part_without_real_servers_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(ASSETS, raising=False)
    options = argparse.Namespace()
    assert run([(BenchPart("real", "x", _fine, real=True), options)]) == 2
    assert f"real: not measured: {ASSETS} is not set" in capsys.readouterr().out


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nonsense"]) == 2
    assert "PART=nonsense: expected one of" in capsys.readouterr().err


def test_every_part_has_defaults_for_its_flags() -> None:
    found = parts()
    assert {"release", "restart", "start"} <= found.keys()
    for part in found.values():
        part.parser().parse_args([])
