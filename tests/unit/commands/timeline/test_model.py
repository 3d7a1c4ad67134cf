"""Places on a timeline, and how many of something there are when."""

from __future__ import annotations

from claimctl.commands.timeline.model import (
    RUNNING,
    CountAt,
    Lane,
    Source,
    Timeline,
    TimelineSpan,
    levels,
    most,
)
from tests.support.builders import after


def span(start: float, end: float | None) -> TimelineSpan:
    return TimelineSpan(Lane.POD, "p", after(start), None if end is None else after(end), RUNNING)


def test_levels_change_where_spans_begin_and_end() -> None:
    found = levels([span(0, 10), span(5, 10), span(10, 20), span(12, None)])
    assert found == (
        CountAt(after(0), 1),
        CountAt(after(5), 2),
        CountAt(after(10), 1),
        CountAt(after(12), 2),
        CountAt(after(20), 1),
    )
    assert (most(found), most(())) == (2, 0)


def test_a_replacement_at_the_same_time_changes_nothing() -> None:
    assert levels([span(0, 5), span(5, None)]) == (CountAt(after(0), 1),)


def test_places_are_between_0_and_1_even_if_nothing_lasted() -> None:
    line = Timeline("ns", "c", after(0), after(10), (), (), Source.HISTORY)
    assert [line.place(after(at)) for at in (-5, 0, 5, 99)] == [0.0, 0.0, 0.5, 1.0]
    point = Timeline("ns", "c", after(0), after(0), (), (), Source.HISTORY)
    assert point.place(after(0)) == 0.0
