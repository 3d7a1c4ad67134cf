"""Times as the API server writes them, in UTC."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(moment: datetime) -> str:
    """A time as metav1.Time."""
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def micro_timestamp(moment: datetime) -> str:
    """A time as metav1.MicroTime, with six digits of fraction."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
