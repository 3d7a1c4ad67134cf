"""Which taints of nodes are claimctl's own, and which of them no run needs any more."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime

from claimctl.wire.nodes import Node, Taint
from claimctl_reschedule.shapes.records import RecordedTaint

CRITICAL_TAINT = "CriticalAddonsOnly"
"""The key of the taint that keeps other pods off. Critical add-ons tolerate it."""
MOVING_TAINT = "claimctl.io/moving"
"""The key of the taint that closes the node of a unit whose held claims are given up."""
AVOID_TAINT = "claimctl.io/avoid"
"""The key of the taint (PreferNoSchedule) of a node that refuses the pods of an owner."""
TAINT_VALUE_PREFIX = "claimctl-"
"""Before the UID of a pod or of an owner: the value of every taint of claimctl's."""
OWN_KEYS = frozenset({CRITICAL_TAINT, MOVING_TAINT, AVOID_TAINT})


def is_own(key: str, value: str) -> bool:
    """Whether a taint is claimctl's. An administrator's has another value."""
    return key in OWN_KEYS and value.startswith(TAINT_VALUE_PREFIX)


def own_taints(nodes: Iterable[Node]) -> Iterator[tuple[str, Taint]]:
    """The names of nodes with claimctl's taints on them."""
    for node in nodes:
        for taint in node.spec.taints:
            if is_own(taint.key, taint.value):
                yield node.metadata.name, taint


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
