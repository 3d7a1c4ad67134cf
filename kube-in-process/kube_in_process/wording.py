"""Error texts of older servers. The code has those of the newest version."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WordingChange:
    """From version ``since`` on servers use ``new``; before that, ``old``."""

    since: tuple[int, int]
    new: str
    old: str


_KEY = "must consist of alphanumeric characters, '-', '_' or '.', and must start"
CHANGES = (
    WordingChange((1, 35), ".config.DeviceConfiguration.opaque", ".config.opaque"),
    WordingChange((1, 35), f"a valid label key {_KEY}", f"a qualified name {_KEY}"),
    WordingChange(
        (1, 35),
        "name part must be no more than 63 bytes",
        "name part must be no more than 63 characters",
    ),
    WordingChange((1, 35), "must be no more than 63 bytes", "must be no more than 63 characters"),
    WordingChange((1, 36), "must be no more than 253 bytes", "must be no more than 253 characters"),
    WordingChange(
        (1, 36),
        "'NotRequired' when pod `restartPolicy` is",
        "'NotRequired' when `restartPolicy` is",
    ),
    WordingChange((1, 35), "pkg/runtime/scheme.go:111", "pkg/runtime/scheme.go:110"),
)


def worded_for(version: tuple[int, int], text: str) -> str:
    """A message with the text of a server of that version."""
    for change in CHANGES:
        if version < change.since and change.new in text:
            text = text.replace(change.new, change.old)
    return text
