"""What a reader of docs/tutorial.md does: save files, and type commands, in their order.

A block with ``title="NAME"`` behind its fence is a file. A line that is indented by four spaces is
a command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
_TITLE = re.compile(r'^```\w* title="([^"]+)"$')


@dataclass(frozen=True, slots=True)
class File:
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Typed:
    text: str
    section: str


def steps(text: str) -> list[File | Typed]:
    """The files and commands of a page, in order."""
    found: list[File | Typed] = []
    section, fence, lines = "", "", list[str]()
    for line in text.splitlines():
        if fence:
            if line == "```":
                if title := _TITLE.match(fence):
                    found.append(File(title.group(1), "\n".join([*lines, ""])))
                fence, lines = "", []
            else:
                lines.append(line)
        elif line.startswith("```"):
            fence = line
        elif line.startswith("#"):
            section = line.lstrip("# ")
        elif line.startswith("    "):
            found.append(Typed(line.strip(), section))
    return found
