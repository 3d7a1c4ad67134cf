"""YAML of shipped files: what is written is read again, and people can read it, too."""

from __future__ import annotations

from claimctl.yaml_text import all_loaded, dumped, loaded

SHARED = ["a", "b"]
DOCUMENT = {"second": "two\nlines\n", "first": SHARED, "again": SHARED, "text": "ä: 1"}


def test_what_is_written_is_read_again() -> None:
    assert loaded(dumped(DOCUMENT)) == DOCUMENT
    assert list(all_loaded(dumped(DOCUMENT, SHARED))) == [DOCUMENT, SHARED]


def test_empty_documents_are_left_out() -> None:
    assert list(all_loaded("---\n---\na: 1\n---\n# nothing\n")) == [{"a": 1}]


def test_keys_keep_their_order_lines_stay_lines_and_nothing_is_an_alias() -> None:
    assert dumped(DOCUMENT).splitlines() == [
        "second: |",
        "  two",
        "  lines",
        "first:",
        *("- a", "- b"),
        "again:",
        *("- a", "- b"),
        "text: 'ä: 1'",
    ]
