"""How far a command is, on stderr: the same for every command that takes long.

Each piece of news is a line. A terminal also has a live last line with what the command waits for,
how long it has waited, and how much is done.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from claimctl.cli.printer import say
from claimctl.text import visible

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

PAUSE_SECONDS = 10.0
"""Without a terminal, numbers are printed so often."""


class Progress:
    """Lines on stderr."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._said = ""
        self._counted_at = now()

    def say(self, text: str) -> None:
        """Print a line, unless it is the last one again."""
        if text != self._said:
            self._said = text
            self._print(text)

    def _print(self, text: str) -> None:
        say(text)

    def count(self, what: str, done: int, total: int) -> None:
        """Show how many of ``total`` are done; ``what`` says what happens to them."""
        if self._now() - self._counted_at >= PAUSE_SECONDS:
            self._counted_at = self._now()
            self.say(f"{what}: {done} of {total}")


@contextmanager
def progress(
    waiting: str,
    now: Callable[[], float] = time.monotonic,
    *,
    live: bool | None = None,
    prints: bool = False,
) -> Iterator[Progress]:
    """Show progress while the block runs.

    Args:
        waiting: what the live line says.
        now: a monotonic clock, in seconds.
        live: whether there is a live line; None means that the terminal decides.
        prints: whether the block prints to stdout. Then there is a live line only if stdout is the
            terminal, too, and what is printed stands above it.
    """
    if live is None:
        live = sys.stderr.isatty() and (not prints or sys.stdout.isatty())
    if not live:
        yield Progress(now)
        return
    from rich.console import Console
    from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    class Bar(BarColumn):
        def render(self, task: object) -> object:  # type: ignore[override]  # nothing to count yet
            return super().render(task) if task.total else ""  # type: ignore[arg-type,attr-defined]

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        Bar(),
        TextColumn("{task.fields[count]}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True)
    with Bars(*columns, console=console, transient=True, redirect_stdout=prints) as bars:
        yield _Live(now, bars, bars.add_task(visible(waiting), total=None, count=""))


class _Live(Progress):
    def __init__(self, now: Callable[[], float], bars: Bars, task: TaskID) -> None:
        super().__init__(now)
        self._bars = bars
        self._task = task

    def _print(self, text: str) -> None:
        self._bars.console.print(visible(text), markup=False, highlight=False, soft_wrap=True)

    def count(self, what: str, done: int, total: int) -> None:
        self._bars.update(
            self._task,
            description=visible(what),
            total=total or None,
            completed=done,
            count=f"{done} of {total}" if total else "",
        )
