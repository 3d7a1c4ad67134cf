"""The commands of a page in docs/runbooks, as a reader would copy them.

A page has sections, each with a heading. A line that is indented by four spaces is a command. A
comment behind it, ``# exit code 3``, gives the exit code that the reader sees; otherwise it is 0. A
backslash at the end of a line continues the command in the next line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "docs" / "runbooks"
_EXIT_CODE = re.compile(r"\s#.*\bexit code (\d+)")


@dataclass(frozen=True, slots=True)
class PageCommand:
    """One command: its text for a shell, and the exit code that the page promises."""

    text: str
    exit_code: int
    line: int


@dataclass(frozen=True, slots=True)
class Section:
    page: str
    title: str
    commands: tuple[PageCommand, ...]


@dataclass
class _Reading:
    """A page that is being read, line by line."""

    page: str
    sections: list[Section] = field(default_factory=list)
    title: str = ""
    commands: list[PageCommand] = field(default_factory=list)
    pending: str = ""

    def read(self, number: int, line: str) -> None:
        if line.startswith("#"):
            self.end_section()
            self.title = line.lstrip("#").strip()
        elif self.pending or line.startswith("    "):
            self._command(number, line)

    def _command(self, number: int, line: str) -> None:
        text = f"{self.pending}{line.strip()}"
        if text.endswith("\\"):
            self.pending = text.removesuffix("\\")
            return
        self.pending = ""
        match = _EXIT_CODE.search(text)
        self.commands.append(PageCommand(text, int(match.group(1)) if match else 0, number))

    def end_section(self) -> None:
        if self.commands:
            self.sections.append(Section(self.page, self.title, tuple(self.commands)))
        self.commands = []


def sections(page: str, folder: Path = FOLDER) -> dict[str, Section]:
    """The sections of a page that have commands, by their titles, in the order of the page."""
    reading = _Reading(page)
    for number, line in enumerate((folder / page).read_text().splitlines(), start=1):
        reading.read(number, line)
    reading.end_section()
    by_title = {section.title: section for section in reading.sections}
    if len(by_title) != len(reading.sections):
        raise ValueError(f"{page}: two sections with commands have the same title")
    return by_title
