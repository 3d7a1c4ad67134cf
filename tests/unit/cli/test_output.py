"""Printing in all forms."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime, timedelta

import pytest
import yaml

from claimctl.cli.options import Output
from claimctl.cli.output import Column, Table, print_table, render
from claimctl.text import age, counted, duration

TABLE = Table(
    columns=(Column("NAME"), Column("STATE"), Column("NODE", wide=True)),
    rows=(("train-slice", "allocated", "node-1"), ("b", "", "")),
    names=("resourceclaim/train-slice", "resourceclaim/b"),
)
DOCUMENT = {"apiVersion": "cli.claimctl.io/v1alpha1", "kind": "ClaimList", "items": [{"n": "ä"}]}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


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


def test_a_terminal_gets_the_same_words_and_no_markup_is_read_into_them() -> None:
    out = Terminal()
    print_table(Table(columns=(Column("NAME"),), rows=(("[red]x[/red]",),)), out=out)
    assert "NAME" in out.getvalue()
    assert "[red]x[/red]" in out.getvalue()


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
