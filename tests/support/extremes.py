"""Values that a stranger may write, and with which no program may have to reckon: one list."""

from __future__ import annotations

from typing import Any

TIMES = (
    *("0000-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "1969-12-31T23:59:59Z"),
    *("9000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59-14:00"),
    *("0001-01-01T00:00:00+14:00", "10000-01-01T00:00:00Z", "-001-12-31T10:00:00Z"),
    *("2026-13-45T00:00:00Z", "2026-01-01T24:61:61Z", "2026-01-01T00:00:00"),
)
"""Times as Go writes them, and others that look like times. None can be computed with."""
NUMBERS = (-1, -(2**63), 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64, 10**30, int("9" * 4000))
NO_NUMBERS = ("1e400", "1" * 5000, "1.5", "-0.0", "1e20")
"""As they stand in JSON."""
TEXTS = (
    "",
    "\x00",
    "a\x00b",
    "\x1b[2J",
    "a\nb\r\tc",
    "\u202e\u2066\ufeff\u2028",
    "x" * 300_000,
    "\U0010ffff\ud7ff\ue000",
    "../../etc/passwd",
    "a/b?c=d#e%2e",
    '"metadata":{"name":"x"}',
)
NO_TEXTS = (r'"\ud800"', r'"\udfff\ud800"', r'"\ud83d"', '"\xff"')
"""Halves of a character, and a byte that is no UTF-8 in a file of Latin-1."""
WRONG: tuple[Any, ...] = (None, True, 5, 1.5, "text", [], [None], {}, {"a": None}, [[[]]])
"""Values of a wrong type, wherever they are put."""
DEPTHS = (90, 99, 100, 101, 500, 700, 900, 1000, 1500, 5000, 10_000)


def nested(levels: int, of: str = "[") -> str:
    """JSON that is nested so many levels deep, in lists or in objects (``{``)."""
    if of == "[":
        return "[" * levels + "1" + "]" * levels
    return '{"a":' * levels + "1" + "}" * levels
