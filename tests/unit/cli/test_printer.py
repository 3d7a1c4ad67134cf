"""What leaves a process is in lines, and no line steers a terminal."""

from __future__ import annotations

import ast
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from claimctl.cli.errors import DEBUG_VARIABLE, CommandFailed, ExitCode, guarded
from claimctl.cli.formats import Output
from claimctl.cli.output import (
    Table,
    as_json,
    as_yaml,
    columns,
    print_table,
    print_text,
    render,
)
from claimctl.cli.printer import print_lines, print_whole, say
from claimctl.cli.progress import progress
from claimctl.text import shortened, visible
from tests.support.hostile import SIGNS, TEXT, forged_lines, obeyed, texts
from tests.support.terminal import Terminal

ROOT = Path(__file__).parents[3] / "claimctl"
PRINTERS = {
    *("cli/printer.py", "cli/output.py", "cli/progress.py", "cli/watching.py"),
    "telemetry/logs.py",
}
"""These alone write to a terminal; all but the first have colors and bars of their own."""


@pytest.mark.parametrize("sign", SIGNS)
def test_a_sign_that_somebody_obeys_becomes_visible(sign: str) -> None:
    shown = visible(f"a{sign}b")
    assert obeyed(shown) == set()
    assert "\n" not in shown
    assert ast.literal_eval(f"'{shown}'") == f"a{sign}b"


@pytest.mark.parametrize("text", ["", "a b", "├─ █▒· ✔ – ä 漢 ☃", "\\n", "it's"])
def test_a_plain_text_stays(text: str) -> None:
    assert visible(text) is text


def test_a_lone_surrogate_can_be_printed() -> None:
    assert visible("\ud800").encode() == b"\\ud800"


@pytest.mark.parametrize("output", [Output.TABLE, Output.JSON, Output.NAME])
def test_a_reader_that_leaves_does_not_change_the_exit_code(
    output: Output, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    shown = Table(columns("A"), (("1",),), ("one",))

    def work() -> int:
        render(output, shown, {})
        print_text(output, ("more",), {}, ("one",))
        return ExitCode.FINDINGS

    with os.fdopen(writer, "w") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert guarded(work) == ExitCode.FINDINGS


def test_a_long_text_is_shortened() -> None:
    assert shortened("a" * 10, 10) == "a" * 10
    assert shortened("a" * 11, 10) == "aaaaaaa..."
    assert shortened("\x1b" * 10, 10) == "\\x1b\\x1..."


def printed(text: str, capsys: pytest.CaptureFixture[str]) -> Iterator[str]:
    """A text in all the ways in which a command may print it."""
    print_lines(text)
    say(text)
    print_text(Output.TABLE, [text], {})
    print_text(Output.NAME, [], {}, [text])
    print_table(Table(columns("A", "B"), rows=(("1", text),)))
    print_table(Table(columns("A"), rows=(), empty=text))
    print_table(Table(columns("A", text), rows=(("1", text),)))
    with progress(text) as line:
        line.say(text)
    yield from capsys.readouterr()
    yield as_json({text: text})
    yield as_yaml({text: [text]})


@pytest.mark.parametrize("text", [TEXT, *texts(1, 40)])
def test_no_way_of_printing_obeys_a_text(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    for out in printed(text, capsys):
        assert obeyed(out) == set()
        assert forged_lines(out) == []


@pytest.mark.parametrize("color", ["always", "never"])
def test_a_terminal_gets_no_colors_but_claimctls(
    color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAIMCTL_COLOR", color)
    out, err = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    cells = ("1", "\x1b[31mred", TEXT)
    print_table(Table(columns("A", "B", "C", text="C"), rows=(cells,)), out=out, width=80)
    with progress(TEXT, live=True) as line:
        line.say(TEXT)
        line.count(TEXT, 1, 2)
    assert "\x1b[31m" not in out.getvalue()
    assert forged_lines(out.getvalue()) == []
    said = err.getvalue()
    assert forged_lines(said) == []
    assert "\x1b[2J" not in said
    assert "\x1b]52" not in said


def test_data_are_the_same_after_all() -> None:
    document = {"plain": "ä ☃", TEXT: [TEXT, *texts(2, 20)]}
    assert json.loads(as_json(document)) == document
    assert yaml.safe_load(as_yaml(document)) == document
    assert "ä ☃" in as_json({"plain": "ä ☃"})
    assert "ä ☃" in as_yaml({"plain": "ä ☃"})


@pytest.mark.parametrize("debug", ["", "1"])
def test_an_error_is_no_answer(debug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(DEBUG_VARIABLE, debug)

    def fails() -> None:
        raise CommandFailed(TEXT)

    out = io.StringIO()
    assert guarded(fails, out) == 1
    assert obeyed(out.getvalue()) == set()
    assert forged_lines(out.getvalue()) == []


def test_what_has_lines_of_its_own_keeps_them(capsys: pytest.CaptureFixture[str]) -> None:
    print_whole("a\n  b\n\nc\n")
    assert capsys.readouterr().out == "a\n  b\n\nc\n"


def test_a_closed_stderr_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    say("x")


WAYS_OUT = {
    *("print", "typer.echo", "typer.secho", "console.print", "traceback.print_exception"),
    *("sys.stdout.write", "sys.stderr.write", "out.write", "err.write"),
}


def calls(path: Path) -> set[str]:
    """What the code of a file calls."""
    nodes = ast.walk(ast.parse(path.read_text()))
    return {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}


def test_nothing_else_prints() -> None:
    paths = [path for path in ROOT.rglob("*.py") if calls(path) & WAYS_OUT]
    assert {path.relative_to(ROOT).as_posix() for path in paths} <= PRINTERS
    beside = ROOT.parent / "claimctl-reschedule" / "claimctl_reschedule"
    assert [path for path in beside.rglob("*.py") if calls(path) & WAYS_OUT] == []
