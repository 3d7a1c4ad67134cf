"""Printing in all forms."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
import yaml

from claimctl.cli.color import VARIABLE
from claimctl.cli.formats import Output
from claimctl.cli.output import Column, Table, columns, print_table, printable, render
from claimctl.text import age, counted, duration, natural
from tests.support.terminal import Terminal

TABLE = Table(
    columns=(Column("NAME"), Column("STATE"), Column("NODE", wide=True)),
    rows=(("train-slice", "allocated", "node-1"), ("b", "", "")),
    names=("resourceclaim/train-slice", "resourceclaim/b"),
)
DOCUMENT = {"apiVersion": "cli.claimctl.io/v1alpha1", "kind": "ClaimList", "items": [{"n": "ä"}]}


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (
            Output.TABLE,
            "NAME          STATE\ntrain-slice   allocated\nb             <none>\n",
        ),
        (
            Output.WIDE,
            "NAME          STATE       NODE\n"
            "train-slice   allocated   node-1\n"
            "b             <none>      <none>\n",
        ),
        (Output.NAME, "resourceclaim/train-slice\nresourceclaim/b\n"),
    ],
)
def test_tables_and_names(output: Output, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    render(output, TABLE, DOCUMENT)
    assert capsys.readouterr() == (text, "")


def test_programs_get_the_whole_document(capsys: pytest.CaptureFixture[str]) -> None:
    render(Output.JSON, TABLE, DOCUMENT)
    assert json.loads(capsys.readouterr().out) == DOCUMENT
    render(Output.YAML, TABLE, DOCUMENT)
    assert yaml.safe_load(capsys.readouterr().out) == DOCUMENT


def test_a_table_without_rows_has_no_names(capsys: pytest.CaptureFixture[str]) -> None:
    render(Output.NAME, Table(columns=TABLE.columns, rows=()), DOCUMENT)
    assert capsys.readouterr() == ("", "")


def test_an_empty_table_says_so_beside_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(Table(columns=TABLE.columns, rows=(), empty="No claims found."))
    assert capsys.readouterr() == ("", "No claims found.\n")


def on_terminal(table: Table, width: int, *, wide: bool = False) -> list[str]:
    out = Terminal()
    print_table(table, out=out, width=width, wide=wide)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.fixture
def no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


LONG = "train-slice-with-a-very-long-name"
CLAIMS = Table(
    columns=columns(
        *("NAME", "STATE", "NODE", "HOLDERS", "AGE", "UID"),
        drop=("AGE", "NODE", "HOLDERS"),
        wide=("UID",),
    ),
    rows=((LONG, "Held", "node-1.example.com", "deployments/train, 3 pods", "6m9s", "u" * 36),),
)


@pytest.mark.usefixtures("no_color")
@pytest.mark.parametrize(
    ("width", "titles"),
    [
        (200, ["NAME", "STATE", "NODE", "HOLDERS", "AGE"]),
        (96, ["NAME", "STATE", "NODE", "HOLDERS"]),
        (75, ["NAME", "STATE", "HOLDERS"]),
        (60, ["NAME", "STATE", "AGE"]),
        (10, ["NAME", "STATE"]),
    ],
)
def test_a_narrow_terminal_gets_fewer_columns_and_whole_names(
    width: int, titles: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    head, row = on_terminal(CLAIMS, width)
    assert head.split() == titles
    assert row.startswith(LONG + "   Held")
    gone = [each.title for each in CLAIMS.columns if not each.wide and each.title not in titles]
    told = capsys.readouterr().err
    assert all(title in told for title in gone)
    assert bool(told) == bool(gone)


@pytest.mark.usefixtures("no_color")
def test_wide_output_leaves_nothing_out(capsys: pytest.CaptureFixture[str]) -> None:
    head, row = on_terminal(CLAIMS, 40, wide=True)
    assert head.split()[-1] == "UID"
    assert row.split()[-1] == "u" * 36
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("no_color")
def test_sentences_wrap_between_words_beside_whole_names() -> None:
    table = Table(
        columns=columns("CLAIM", "WHAT", text=("WHAT",)),
        rows=((LONG, "the pods of this claim are gone, and nobody will ever free it"),),
    )
    lines = on_terminal(table, 60)
    assert len(lines) > 2
    assert lines[1].startswith(f"{LONG}   the pods")
    words = " ".join(line.replace(LONG, "") for line in lines[1:]).split()
    assert words == table.rows[0][1].split()


@pytest.mark.parametrize(
    ("when", "no_color", "terminal", "colored"),
    [
        ("", "", True, True),
        ("", "", False, False),
        ("", "1", True, False),
        ("always", "1", False, True),
        ("never", "", True, False),
    ],
)
def test_colors_are_for_terminals_that_want_them(
    when: str, no_color: str, terminal: bool, colored: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(VARIABLE, when or "auto")
    out = Terminal() if terminal else io.StringIO()
    table = Table(columns=(Column("STATE", styles={"Held": "green"}),), rows=(("✔ Held",),))
    print_table(table, out=out)
    assert ("\x1b[32m" in out.getvalue()) == colored
    assert ("\x1b" in out.getvalue()) == colored
    assert "✔ Held" in out.getvalue()


@pytest.mark.usefixtures("no_color")
def test_no_markup_is_read_into_the_words_of_a_cell() -> None:
    table = Table(columns=(Column("NAME"),), rows=(("[red]x[/red]",),))
    assert on_terminal(table, 80)[1] == "[red]x[/red]"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"),
        (0, "0s"),
        (119.9, "119s"),
        (120, "2m"),
        (369, "6m9s"),
        (599, "9m59s"),
        (600, "10m"),
        (10799, "179m"),
        (10800, "3h"),
        (10860, "3h1m"),
        (28800, "8h"),
        (172799, "47h"),
        (172800, "2d"),
        (180000, "2d2h"),
        (691200, "8d"),
        (63072000, "2y"),
        (64000000, "2y10d"),
        (252288000 + 86400, "8y"),
    ],
)
def test_durations_are_those_that_kubectl_prints(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("number", "text"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods")])
def test_a_number_and_its_noun_agree(number: int, text: str) -> None:
    assert counted(number, "pod") == text


def test_ages_are_durations_until_now() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    assert (age(now - timedelta(hours=3), now), age(None, now)) == ("3h", "<unknown>")


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [("utf-8", ("─", "█")), ("ascii", ("-", "#")), ("no-such-encoding", ("-", "#"))],
)
def test_signs_that_stdout_cannot_show_are_replaced_all_together(
    encoding: str, shown: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout", SimpleNamespace(encoding=encoding))
    assert printable(("─", "█"), ("-", "#")) == shown


def test_names_with_numbers_are_sorted_as_people_count() -> None:
    names = ["train-10.sts.gpu", "train", "train-2.sts.nic", "2", "train-02", "train-2.sts.gpu"]
    assert sorted(names, key=natural) == [
        "2",
        "train",
        "train-02",
        "train-2.sts.gpu",
        "train-2.sts.nic",
        "train-10.sts.gpu",
    ]
