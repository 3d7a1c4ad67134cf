"""The program ``kubectl_complete-claim``: completes ``kubectl claim ...``.

kubectl calls it with the words after ``kubectl claim``, the last of which is incomplete. It prints
a suggestion per line, then a directive, by the protocol of cobra's completions.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from claimctl.cli import typer_internals
from claimctl.cli.completion import VARIABLE
from claimctl.cli.main import build
from claimctl.cli.printer import print_lines

NO_FILES = ":4"
"""The directive: do not offer names of files."""


def main() -> None:
    print_lines(*suggestions(sys.argv[1:]), NO_FILES)


def suggestions(words: Sequence[str]) -> list[str]:
    """What the last of the words may become."""
    *before, incomplete = words or [""]
    return typer_internals.suggestions(build(), "claimctl", VARIABLE, before, incomplete)
