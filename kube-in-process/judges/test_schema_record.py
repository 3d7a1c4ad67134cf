"""The recorded fields are those of the official client."""

from __future__ import annotations

from judges.schema_record import FILE, line, recorded_names

EACH = 8
"""Importing a model takes a few milliseconds, so one of that many is compared."""


def test_what_is_recorded_is_what_the_client_has() -> None:
    opening, *lines, closing = FILE.read_text(encoding="utf-8").splitlines()
    assert (opening, closing) == ("{", "}")
    names = recorded_names()
    assert [text.partition(":")[0].strip('"') for text in lines] == names
    for name, text in list(zip(names, lines, strict=True))[::EACH]:
        assert text.rstrip(",") == line(name)
