"""The way out of a process: every text that a command prints passes ``print_lines``.

A text may come from anybody who can write to the cluster. It cannot steer a terminal or begin a
line of its own, since a line is made ``visible`` here. What a command breaks into lines, it passes
as lines. A test refuses other ways of printing.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from claimctl.text import visible


def print_lines(*lines: str, out: TextIO | None = None) -> None:
    """Print lines on stdout, or on ``out``, each made visible."""
    target = sys.stdout if out is None else out
    target.write("".join(f"{visible(line)}\n" for line in lines))
    target.flush()


def print_whole(text: str) -> None:
    """Print a text with line breaks of its own on stdout: a picture, a document, a script. Who
    wrote the text has quoted what is foreign in it."""
    print_lines(*text.removesuffix("\n").split("\n"))


def say(*lines: str) -> None:
    """Print lines on stderr, beside what the command prints. A closed stderr hears nothing."""
    if sys.stderr is not None:
        print_lines(*lines, out=sys.stderr)


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """Print a whole result to a reader that may stop reading, as ``head`` does. The command goes on
    without it, so its exit code still says what it found."""
    try:
        yield
    except BrokenPipeError:
        drop_stdout()


def drop_stdout() -> None:
    """Redirect stdout: its reader is gone, and the interpreter flushes stdout at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
