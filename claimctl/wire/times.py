"""Times and spans of time that can be computed with, whoever wrote them.

API servers take every year from 0 to 9999, and seconds up to 2^63 - 1. Sums with such values fail.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Annotated, Any

from msgspec import Meta

EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
LATEST = datetime(9000, 1, 1, tzinfo=UTC)
"""A time before ``EARLIEST`` or from ``LATEST`` on counts as unknown."""
MOST_SECONDS = 10**10
"""About 300 years. A longer span counts as this one, and a negative one as 0."""
Span = Annotated[int, Meta(ge=0, le=MOST_SECONDS)]
"""A number of seconds in an object."""


def moment(text: str | None) -> datetime | None:
    """The time in a text, as RFC 3339 has it; None if there is none within the limits."""
    try:
        time = datetime.fromisoformat(text or "")
        return time if EARLIEST <= time < LATEST else None
    except (TypeError, ValueError):
        return None


def refusal(names: Iterable[str], before: Callable[[Any], None] | None) -> Callable[[Any], None]:
    """A ``__post_init__`` that raises ValueError if a field of one of the names is beyond the
    limits, and TypeError if it has no time zone.

    Args:
        before: what is to be done first.
    """
    getters = tuple(map(attrgetter, names))

    def check(struct: Any) -> None:
        if before is not None:
            before(struct)
        for get in getters:
            time = get(struct)
            # written out, since this is done for each condition of each pod
            if time is not None and not EARLIEST <= time < LATEST:
                raise ValueError("a time is not between 1970 and 9000")

    return check
