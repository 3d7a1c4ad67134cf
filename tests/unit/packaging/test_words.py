"""What users have to read stays short: the README, and the pages that are not for developers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
FOR_DEVELOPERS = "Develop it"
FOR_EVALUATORS = "safety.md"
"""Who decides about claimctl reads it once: the promises, how they are kept, and their limits."""
README_WORDS = 900
USERS_WORDS = 15_000


def pages_of(entries: Any) -> set[str]:
    """The paths in a part of the navigation."""
    if isinstance(entries, str):
        return {entries}
    inner = entries.values() if isinstance(entries, dict) else entries
    return {page for each in inner for page in pages_of(each)}


def words(path: Path) -> int:
    """The words of a page; the bars and dashes of tables are none."""
    parts = path.read_text(encoding="utf-8").split()
    return sum(any(character.isalnum() for character in part) for part in parts)


def users_pages() -> dict[str, int]:
    """The words of each page that is not for developers or evaluators, also of those outside the
    navigation."""
    navigation = yaml.safe_load((ROOT / "packaging/mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    developers = {
        page
        for part in navigation
        if FOR_DEVELOPERS in part
        for page in pages_of(part[FOR_DEVELOPERS])
    }
    assert developers
    every = {path.relative_to(DOCS).as_posix(): words(path) for path in DOCS.rglob("*.md")}
    left_out = developers | {FOR_EVALUATORS}
    return {page: count for page, count in every.items() if page not in left_out}


def test_the_readme_is_read_in_a_few_minutes() -> None:
    assert words(ROOT / "README.md") <= README_WORDS


def test_what_users_have_to_read_stays_short() -> None:
    counts = users_pages()
    longest = dict(sorted(counts.items(), key=lambda item: -item[1])[:5])
    assert sum(counts.values()) <= USERS_WORDS, longest
