"""How numbers and names are written for people, everywhere the same."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

MOST = 3
"""How many names a message lists."""


def listed(names: Iterable[str], most: int = MOST) -> str:
    """The first names, and how many there are beyond them: 'a, b, c and 2 more'."""
    known = list(names)
    more = f" and {len(known) - most} more" if len(known) > most else ""
    return ", ".join(known[:most]) + more


def age(since: datetime | None, now: datetime) -> str:
    """How long ago, in the one or two largest units, as kubectl prints ages."""
    if since is None:
        return "<unknown>"
    return duration((now - since).total_seconds())


def duration(seconds: float) -> str:
    """Seconds as a person reads them: 90s, 12m, 5h, 3d."""
    whole = max(0, int(seconds))
    if whole < 120:
        return f"{whole}s"
    if whole < 2 * 3600:
        return f"{whole // 60}m"
    if whole < 2 * 86400:
        return f"{whole // 3600}h"
    return f"{whole // 86400}d"
