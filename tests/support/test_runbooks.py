"""Which commands a page of docs/runbooks has."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.runbooks import FOLDER, sections

PAGE = """# Title

    first --flag   # a comment

Text.

## One

- a list
    second   # exit code 3: see REASON
    third \\
      --more

## Without commands

## Two

    fourth
"""


def test_the_commands_of_each_section(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE)
    by_title = sections("page.md", tmp_path)
    assert list(by_title) == ["Title", "One", "Two"]
    commands = [
        (command.text, command.exit_code, command.line) for command in by_title["One"].commands
    ]
    assert commands == [
        ("second   # exit code 3: see REASON", 3, 10),
        ("third --more", 0, 12),
    ]


def test_two_sections_of_one_title_are_an_error(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE.replace("## Two", "## One"))
    with pytest.raises(ValueError, match=r"page.md: two sections"):
        sections("page.md", tmp_path)


@pytest.mark.parametrize("page", sorted(FOLDER.glob("*.md")), ids=lambda page: str(page.name))
def test_a_test_plays_each_page(page: Path) -> None:
    """``tests/e2e/test_runbook_NAME.py`` plays ``docs/runbooks/NAME.md``."""
    tests = FOLDER.parents[1] / "tests" / "e2e"
    assert (tests / f"test_runbook_{page.stem.replace('-', '_')}.py").exists()
