"""What a reader of docs/tutorial.md does: save files, and type commands, in their order.

The block after a line "Save this as `NAME`:" is a file. A line that is indented by four spaces is a
command.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "tutorial.md"
_SAVE = re.compile(r"^Save this as `([^`]+)`:$")


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
    parts: list[File | Typed] = []
    section, name, inside, lines = "", "", False, list[str]()
    for line in text.splitlines():
        if line.startswith("```"):
            if inside and name:
                parts.append(File(name, "\n".join([*lines, ""])))
                name = ""
            inside, lines = not inside, []
        elif inside:
            lines.append(line)
        elif line.startswith("#"):
            section = line.lstrip("# ")
        elif line.startswith("    "):
            parts.append(Typed(line.strip(), section))
        elif save := _SAVE.match(line):
            name = save.group(1)
    return parts
