"""Printing: tables for people, JSON and YAML for programs, names for pipes."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TextIO, TypeVar

import yaml

from claimctl.cli.color import in_color
from claimctl.cli.documents import Document, plain
from claimctl.cli.formats import Output
from claimctl.cli.printer import print_lines, print_whole, reader_may_leave, say
from claimctl.text import can_be_encoded, shortened

Signs = TypeVar("Signs", bound=Sequence[str])
Printed = Document | Mapping[str, Any]
"""A document of claimctl, or another one, such as a manifest."""

_GAP = 3
_TEXT_WIDTH = 24
"""A column of text gets at least so many places on a terminal, if it needs them."""

_LONGEST = 1000
"""A cell has at most so many characters. No name in Kubernetes is longer than 253."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Attributes:
        wide: only ``-o wide`` shows the column.
        text: its cells are sentences, which may wrap. No other cell is ever cut.
        drop: on a narrow terminal, columns with a higher number are left out first; 0 is never.
        into: where the column is left out, its cells lead those of the column of this title.
        styles: the color of a cell by the last word in it.
    """

    title: str
    wide: bool = False
    text: bool = False
    drop: int = 0
    into: str = ""
    styles: Mapping[str, str] = field(default_factory=dict)


def columns(
    *titles: str, text: Iterable[str] = (), drop: Sequence[str] = (), wide: Iterable[str] = ()
) -> tuple[Column, ...]:
    """Columns by their titles; ``drop`` has the titles to leave out first, in this order."""
    texts, wides = set(text), set(wide)
    priority = {title: len(drop) - index for index, title in enumerate(drop)}
    return tuple(
        Column(title, title in wides, title in texts, priority.get(title, 0)) for title in titles
    )


@dataclass(frozen=True, slots=True)
class Table:
    """A table. Each row has one cell per column; ``-o name`` prints ``names``."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    names: tuple[str, ...] = ()
    empty: str = "No resources found."


def render(output: Output, table: Table, document: Printed, *, head: bool = True) -> None:
    """Print the table, its names or the document on stdout, in the format ``output``."""
    with reader_may_leave():
        if output.for_people:
            print_table(table, wide=output == Output.WIDE, head=head)
        else:
            print_data(output, document, table.names)


def print_text(
    output: Output, lines: Iterable[str], document: Printed, names: Iterable[str] = ()
) -> None:
    """Print the lines for people, or what ``render`` prints for others."""
    with reader_may_leave():
        if output.for_people:
            print_lines(*lines)
        else:
            print_data(output, document, names)


def print_data(output: Output, document: Printed, names: Iterable[str] = ()) -> None:
    """Print the document or the names."""
    if output == Output.NAME:
        print_lines(*names)
    else:
        print_document(document, output)


def print_document(document: Printed, output: Output) -> None:
    """Print the document in a format for data."""
    shown = plain(document) if isinstance(document, Document) else document
    print_whole(as_json(shown) if output == Output.JSON else as_yaml(shown))


def as_json(shown: object) -> str:
    """JSON, in which no sign is raw that a terminal obeys; then all but ASCII is escaped."""
    text = json.dumps(shown, indent=2, ensure_ascii=False)
    return text if _is_harmless(text) else json.dumps(shown, indent=2)


def as_yaml(shown: object) -> str:
    """YAML, in which no sign is raw that a terminal obeys; then all but ASCII is escaped."""
    text = str(yaml.safe_dump(shown, sort_keys=False, allow_unicode=True))
    return text if _is_harmless(text) else str(yaml.safe_dump(shown, sort_keys=False))


def _is_harmless(text: str) -> bool:
    return text.replace("\n", "").isprintable()


def printable(signs: Signs, instead: Signs) -> Signs:
    """The signs if stdout can show all of them."""
    return signs if can_be_encoded("".join(signs), sys.stdout.encoding or "ascii") else instead


def print_table(
    table: Table,
    *,
    wide: bool = False,
    out: TextIO | None = None,
    width: int | None = None,
    head: bool = True,
) -> None:
    """Print aligned columns as kubectl does.

    A terminal gets a highlighted header and colors. Where it is narrow, columns are left out (not
    with ``wide``) and sentences wrap; no name is ever cut.

    Args:
        width: the width of the terminal; None means that ``out`` tells it.
        head: whether to print the titles; a pipe gets them once.
    """
    target = out or sys.stdout
    if not table.rows:
        say(table.empty)
        return
    table = replace(table, rows=tuple(tuple(_cell(cell) for cell in row) for row in table.rows))
    shown = [column for column in table.columns if wide or not column.wide]
    if not (target.isatty() or in_color(target)):
        _print_plain(_cells(table, shown), target, head=head)
        return
    from rich.console import Console

    if target.isatty():
        places = width or Console(file=target).width
        shown, left_out = _choose_columns(table, shown, places, wide=wide)
        table = _joined(table, shown)
        shown, then = _choose_columns(table, shown, places, wide=wide)
        if left_out := [*left_out, *then]:
            say(f"left out for lack of room: {', '.join(left_out)}")
    _print_rich(table, shown, target, width, head=head)


def _cell(text: str) -> str:
    return shortened(text, _LONGEST)


def _cells(table: Table, shown: Sequence[Column]) -> list[list[str]]:
    indices = [table.columns.index(column) for column in shown]
    rows = [[row[index] or "<none>" for index in indices] for row in table.rows]
    return [[column.title for column in shown], *rows]


def _print_plain(lines: Sequence[Sequence[str]], out: TextIO, *, head: bool) -> None:
    widths = [max(len(cell) for cell in column) for column in zip(*lines, strict=True)]
    for line in lines if head else lines[1:]:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print_lines("   ".join(cells).rstrip(), out=out)


def _choose_columns(
    table: Table, shown: Sequence[Column], width: int, *, wide: bool
) -> tuple[list[Column], list[str]]:
    """The columns that fit into the width, and the titles of those that are left out."""
    kept, left_out = list(shown), list[Column]()
    while not wide and _width_of(table, kept) > width:
        last = max(kept, key=lambda column: column.drop)
        if not last.drop:
            break
        kept.remove(last)
        left_out.append(last)
    # a column that was left out for a wider one may fit
    for column in sorted(left_out, key=lambda column: column.drop):
        more = [other for other in shown if other in kept or other is column]
        if _width_of(table, more) <= width:
            kept = more
    return kept, [column.title for column in left_out if not (column in kept or column.into)]


def _joined(table: Table, shown: Sequence[Column]) -> Table:
    """The table, whose cells also say what columns with ``into`` would say if they were shown."""
    titles = [column.title for column in table.columns]
    rows = [list(row) for row in table.rows]
    for place, column in enumerate(table.columns):
        if column.into and column not in shown:
            target = titles.index(column.into)
            for row in rows:
                row[target] = f"{row[place]}: {row[target]}".removeprefix("-: ")
    return replace(table, rows=tuple(map(tuple, rows)))


def _width_of(table: Table, shown: Sequence[Column]) -> int:
    return sum(_least(table, column) + _GAP for column in shown) - _GAP


def _least(table: Table, column: Column) -> int:
    """The least width of a column: its longest cell; for text, its longest word or a bit more."""
    from rich.cells import cell_len

    cells = [row[0] for row in _cells(table, [column])]
    widest = max(map(cell_len, cells))
    if not column.text:
        return widest
    longest = max(cell_len(word) for cell in cells for word in cell.split() or ("",))
    return min(widest, max(longest, _TEXT_WIDTH))


def _print_rich(
    table: Table, shown: Sequence[Column], out: TextIO, width: int | None, *, head: bool
) -> None:
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    made = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), show_header=head)
    for column in shown:
        least = _least(table, column)
        made.add_column(column.title, overflow="fold", no_wrap=not column.text, min_width=least)
    for row in _cells(table, shown)[1:]:
        styled = (
            Text(cell, style=column.styles.get(cell.split()[-1], ""))
            for cell, column in zip(row, shown, strict=True)
        )
        made.add_row(*styled)
    colored = in_color(out)
    console = Console(
        file=out,
        color_system="standard" if colored else None,
        force_terminal=colored or None,
        no_color=not colored,
        width=width,
    )
    needed = _width_of(table, shown) + _GAP
    if not out.isatty():
        needed = sum(
            max(map(len, cells)) + _GAP for cells in zip(*_cells(table, shown), strict=True)
        )
    console.width = max(console.width, needed)
    console.print(made, crop=False)
