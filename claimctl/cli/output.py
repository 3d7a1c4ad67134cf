"""Printing: tables for people, JSON and YAML for programs, names for pipes."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TextIO

from claimctl.cli.options import Data, Output, Structured

Document = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table. Only ``-o wide`` shows ``wide`` columns."""

    title: str
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Each row has one cell per column; ``-o name`` prints ``names``."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    names: tuple[str, ...] = ()
    empty: str = "No resources found."


def render(output: Output | Structured, table: Table, document: Document) -> None:
    """Print the table or the document on stdout, in the format ``output``.

    Programs read ``document``, so it must have ``apiVersion`` and ``kind``.
    """
    match output.value:
        case "json" | "yaml" as form:
            print_document(document, Data(form))
        case "name":
            for name in table.names:
                print(name)
        case form:
            print_table(table, wide=form == "wide")


def print_document(document: Document, form: Data) -> None:
    if form is Data.JSON:
        print(json.dumps(document, indent=2, ensure_ascii=False))
    else:
        import yaml

        print(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), end="")


def printable(sign: str) -> str:
    """The sign, or '' if stdout cannot show it. A word must always say the same."""
    try:
        sign.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return ""
    return sign


def print_table(table: Table, *, wide: bool = False, out: TextIO | None = None) -> None:
    """Print aligned columns as kubectl does; on a terminal with a highlighted header."""
    target = out or sys.stdout
    if not table.rows:
        print(table.empty, file=sys.stderr)
        return
    shown = [index for index, column in enumerate(table.columns) if wide or not column.wide]
    head = [table.columns[index].title for index in shown]
    rows = [[row[index] or "<none>" for index in shown] for row in table.rows]
    if target.isatty():
        _print_rich(head, rows, target)
    else:
        _print_plain([head, *rows], target)


def _print_plain(lines: Sequence[Sequence[str]], out: TextIO) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("   ".join(cells).rstrip(), file=out)


def _print_rich(head: Sequence[str], rows: Sequence[Sequence[str]], out: TextIO) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    table = RichTable(box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for title in head:
        table.add_column(title, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(file=out).print(table)
