"""What a release waits for, until when, and what to do about it."""

from __future__ import annotations

import pytest

from claimctl.commands.claims.release_waits import (
    words_of_wait,
)

END, BEGAN = "2026-03-01T12:05:00Z", "2026-03-01T12:00:00Z"


@pytest.mark.parametrize(
    ("reason", "after", "end", "since", "text"),
    [
        ("ConsumersLeft", None, None, None, ""),
        ("ForceDeletedPods", 300.0, END, None,
         f"until {END} by the controller's clock, 5m left"),
        ("ForceDeletedPods", 300.0, END, BEGAN,
         f"5m left: it began to lead at {BEGAN}, and counts from then at the latest"),
        ("PodsMayBeBound", 60.0, None, None, "at most 60 s from the controller's first sight"),
        ("HistoryUnknown", 60.0, None, None, ""),
    ],
)  # fmt: skip
def test_the_end_of_a_wait_is_told_as_far_as_it_is_known(
    reason: str, after: float | None, end: str | None, since: str | None, text: str
) -> None:
    said = words_of_wait(reason, after, end, since)
    assert text in said
    assert bool(said) == bool(text)
