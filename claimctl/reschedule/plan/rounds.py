"""Rounds of evictions for resizes that did not help, for those who look at a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from claimctl.reschedule.shapes.records import RecordedResize
from claimctl.text import counted

LATE = timedelta(minutes=10)
"""A kubelet looks at waiting resizes at least every three minutes."""


def in_vain(
    rounds: Iterable[RecordedResize], now: datetime
) -> Iterator[tuple[RecordedResize, str]]:
    """The rounds after which the pod waits on, and what to say about each.

    A run of ``claimctl reschedule`` removes the rounds of pods that wait no longer.
    """
    for each in rounds:
        if each.since is None or now < each.since + LATE:
            continue
        minutes = (now - each.since).total_seconds() // 60
        left = f"{counted(len(each.victims), 'pod')} left for it {minutes:.0f} minutes ago"
        yield each, f"its resize waits although {left}"
