"""A timeline as lines of text: one bar per device and holder, the number of pods, and the marks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

from claimctl.commands.timeline import model
from claimctl.text import duration

MARKS = 20
"""How many marks are printed, counted from the end."""
_NAMES = 32
"""The widest column of names. A longer name has a line of its own."""
_SMALLEST_BAR = 20
_NOT_KNOWN = "?"


class BarSigns(NamedTuple):
    """The characters of the bars."""

    full: str
    part: str
    none: str
    steps: str


BLOCKS = BarSigns("█", "▒", "·", "▁▂▃▄▅▆▇█")
ASCII = BarSigns("#", "+", ".", "123456789")


def lines(timeline: model.Timeline, width: int = 80, signs: BarSigns = BLOCKS) -> list[str]:
    """The timeline in ``width`` columns. Names are never cut; they may need more columns."""
    rows = _rows(timeline, signs)
    longest = max((len(row.name) for row in rows), default=0)
    column = min(longest, _NAMES, max(width - _SMALLEST_BAR - 2, 0))
    size = max(width - column - 2, _SMALLEST_BAR)
    begin, end = f"{timeline.begin:%H:%M:%S}", f"{timeline.end:%H:%M:%S}"
    more = f"{len(timeline.marks) - MARKS} earlier marks are in -o json"
    return [
        f"Claim {timeline.namespace}/{timeline.claim}",
        f"{timeline.begin:%Y-%m-%d} {begin} to {end} UTC ({duration(timeline.seconds)})",
        "",
        *(line for row in rows for line in row.lines(column, size)),
        " " * (column + 2) + begin + end.rjust(size - len(begin)),
        "",
        *_legend(timeline, signs),
        "",
        *([more] if len(timeline.marks) > MARKS else []),
        *map(mark_line, timeline.marks[-MARKS:]),
    ]


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    timeline: model.Timeline
    signs: BarSigns
    spans: tuple[model.TimelineSpan, ...]
    counts: tuple[model.CountAt, ...] | None = None
    """The row shows numbers instead of a bar."""

    def lines(self, column: int, size: int) -> list[str]:
        step = timedelta(seconds=self.timeline.seconds / size)
        bounds = [self.timeline.begin + step * cell for cell in range(size + 1)]
        draw = self._bar if self.counts is None else self._count
        drawn = "".join(draw(start, end) for start, end in pairwise(bounds))
        if len(self.name) > column:
            return [self.name, f"{' ' * column}  {drawn}"]
        return [f"{self.name.ljust(column)}  {drawn}"]

    def _bar(self, start: datetime, end: datetime) -> str:
        lasting = timedelta()
        touched = unknown = False
        for span in self.spans:
            last = span.end if span.end is not None else self.timeline.end
            if span.state == model.UNKNOWN:
                unknown = unknown or (span.start < end and last > start)
                continue
            touched = touched or (span.start < end and last >= start)
            lasting += max(min(last, end) - max(span.start, start), timedelta())
        if not touched:
            return _NOT_KNOWN if unknown else self.signs.none
        whole = lasting >= (end - start) * 0.98
        return self.signs.full if whole else self.signs.part

    def _count(self, start: datetime, end: datetime) -> str:
        """The largest number within a cell, relative to the largest of all."""
        steps, top, count = self.counts or (), model.most(self.counts or ()), 0
        for step in steps:
            if step.at < end:
                count = step.count if step.at <= start else max(count, step.count)
        last = len(self.signs.steps) - 1
        return self.signs.steps[round(count / top * last)] if count else self.signs.none


def _rows(timeline: model.Timeline, signs: BarSigns) -> list[_Row]:
    rows = [
        _Row(name, timeline, signs, tuple(span for span in spans if span.state != model.WAITING))
        for name, spans in timeline.bars
    ]
    if timeline.many_pods:
        counts = model.levels(timeline.of(model.Lane.POD, model.RUNNING))
        rows.append(_Row(f"pods (up to {model.most(counts)})", timeline, signs, (), counts))
        if counts := model.levels(timeline.of(model.Lane.POD, model.WAITING)):
            rows.append(_Row(f"waiting (up to {model.most(counts)})", timeline, signs, (), counts))
    return rows


def _legend(timeline: model.Timeline, signs: BarSigns) -> list[str]:
    whole = f"{signs.full} all of the time, {signs.part} part of it, {signs.none} none of it"
    numbers = f"; a column of {signs.steps[-1]} is the largest number of pods"
    unknown = [
        f"{span.name}: began at {span.start:%H:%M:%S} or before"
        for span in timeline.spans
        if span.started_before
    ]
    return [f"{whole}{numbers if timeline.many_pods else ''}", *unknown, *timeline.remarks]


def mark_line(mark: model.Mark) -> str:
    """One mark as a line."""
    kind = "Warning " if mark.warning else ""
    message = f": {mark.message}" if mark.message else ""
    return f"{mark.at:%H:%M:%S}  {mark.about}  {kind}{mark.reason}{message}"
