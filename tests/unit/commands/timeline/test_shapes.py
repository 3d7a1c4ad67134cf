"""When something happened, as far as its writer can be believed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from claimctl.commands.timeline.shapes import TimedEvent, event_time
from claimctl.wire.coordination import micro_time
from claimctl.wire.meta import ManagedObjectMeta
from tests.support import extremes

CREATED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def event(text: str | None, created: datetime | None = CREATED) -> TimedEvent:
    meta = ManagedObjectMeta(name="e", creation_timestamp=created)
    return TimedEvent(metadata=meta, event_time=text)


@pytest.mark.parametrize("minutes", [-50, 0, 50])
def test_an_event_happened_when_its_writer_says(minutes: int) -> None:
    moment = CREATED + timedelta(minutes=minutes)
    assert event_time(event(micro_time(moment))) == moment


def test_a_time_far_from_the_creation_of_the_event_is_not_believed() -> None:
    for text in (*extremes.TIMES, "1970-01-01T00:00:00Z", "8999-12-31T00:00:00Z", None):
        assert event_time(event(text)) == CREATED
    for text in (micro_time(CREATED + timedelta(hours=2)), "2026-01-01T03:04:05Z"):
        assert event_time(event(text)) == CREATED


def test_without_a_creation_only_a_possible_time_counts() -> None:
    assert event_time(event("2026-01-02T03:04:05Z", None)) == CREATED
    assert event_time(event("9999-01-01T00:00:00Z", None)) is None
