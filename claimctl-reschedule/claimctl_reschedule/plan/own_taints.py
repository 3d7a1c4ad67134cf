"""Which of claimctl's own taints no run needs any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from claimctl.wire.nodes import Node, Taint
from claimctl.wire.traces import own_taints
from claimctl_reschedule.shapes.records import RecordedTaint


def stale_taints(
    nodes: Iterable[Node], entries: Iterable[RecordedTaint], now: datetime
) -> Iterator[tuple[str, Taint]]:
    """The taints without an entry in a record, or whose deadline is over."""
    live = {
        (entry.node, entry.key, entry.value)
        for entry in entries
        if entry.deadline is not None and now < entry.deadline
    }
    for name, taint in own_taints(nodes):
        if (name, taint.key, taint.value) not in live:
            yield name, taint
