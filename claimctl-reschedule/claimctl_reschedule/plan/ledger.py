"""What limits moves: the limits of one run, and the memory of earlier runs.

How long owners rest is in docs/reschedule-rules.md. Pods that make room for another one do not
rest: it needs the room now, and it gets what the limits and the disruption budgets allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import takewhile

from claimctl_reschedule.plan.policy import RunLimits
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.world import WorldPod
from claimctl_reschedule.shapes.records import MoveOutcome, Record, RecordedMove, RecordedWorkload

COOLDOWN = timedelta(minutes=10)
LONGEST_COOLDOWN = timedelta(days=1)
PING_PONG = timedelta(days=1)
MOST_BOUNCES = 3
_FAILED = frozenset({MoveOutcome.BOUNCED, MoveOutcome.PENDING})
REVISION = "controller-revision-hash"
"""The label by which the pods of a StatefulSet or DaemonSet name their template."""


@dataclass(slots=True)
class Ledger:
    limits: RunLimits
    record: Record
    now: datetime
    _total: int = 0
    _nodes: Counter[str] = field(default_factory=Counter)
    _namespaces: Counter[str] = field(default_factory=Counter)
    _strategies: Counter[tuple[str, str]] = field(default_factory=Counter)
    _planned: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    """Source and destination of the moves of this plan, by owner."""

    def resting(self, strategy: str, pods: Sequence[WorldPod]) -> Obstacle | None:
        """Why one of these pods may not be moved by the strategy yet, after earlier moves."""
        for pod in pods:
            memory = self._memory(pod)
            if memory and (problem := self._rest(strategy, memory)):
                return problem
        return None

    def beyond_limits(
        self, strategy: str, pods: Sequence[WorldPod], limit_per_node: int | None = None
    ) -> Obstacle | None:
        """The limit that would be passed if these pods left their nodes, or the strategy's own."""
        limits = self.limits
        if limits.total is not None and self._total + len(pods) > limits.total:
            return Obstacle(Ground.LIMIT_TOTAL, str(limits.total))
        for name, count in Counter(pod.node for pod in pods).items():
            if limits.per_node is not None and self._nodes[name] + count > limits.per_node:
                return Obstacle(Ground.LIMIT_PER_NODE, f"{limits.per_node} from {name}")
            done = self._strategies[strategy, name]
            if limit_per_node is not None and done + count > limit_per_node:
                return Obstacle(Ground.LIMIT_OF_STRATEGY, f"{limit_per_node} from {name}")
        for name, count in Counter(pod.namespace for pod in pods).items():
            most = limits.per_namespace
            if most is not None and self._namespaces[name] + count > most:
                return Obstacle(Ground.LIMIT_PER_NAMESPACE, f"{most} of {name}")
        return None

    def returns(self, pod: WorldPod, source: str, destination: str) -> Obstacle | None:
        """Whether the move would undo an earlier one of the same owner."""
        memory, since = self._memory(pod), self.now - PING_PONG
        past = [
            (move.source, move.landed or move.predicted)
            for move in (memory.moves if memory else ())
            if move.at and move.at >= since and move.outcome != MoveOutcome.BOUNCED
        ]
        # several pods may get other devices of their node in one run, and then none for a day
        planned = () if source == destination else self._planned.get(pod.owner_uid, ())
        if (destination, source) in (*past, *planned):
            return Obstacle(Ground.PING_PONG, f"a pod of its owner moved {destination} -> {source}")
        return None

    def count(self, strategy: str, pod: WorldPod, source: str, destination: str) -> None:
        """Count one chosen move."""
        self._total += 1
        self._nodes[source] += 1
        self._namespaces[pod.namespace] += 1
        self._strategies[strategy, source] += 1
        if destination:
            self._planned.setdefault(pod.owner_uid, []).append((source, destination))

    def _memory(self, pod: WorldPod) -> RecordedWorkload | None:
        """What is remembered of the pod's owner; None if its template has changed since."""
        memory = self.record.workloads.get(pod.owner_uid)
        revision = pod.labels.get(REVISION, "")
        return memory if memory and memory.revision == revision else None

    def _rest(self, strategy: str, memory: RecordedWorkload) -> Obstacle | None:
        moves = [move for move in memory.moves if move.strategy == strategy]
        if not moves:
            return None
        bounces = _last_in_a_row(moves, frozenset({MoveOutcome.BOUNCED}))
        if bounces >= MOST_BOUNCES:
            return Obstacle(Ground.BOUNCES, f"{bounces} replacements came back")
        rest = cooldown(_last_in_a_row(moves, _FAILED))
        until = max(move.at for move in moves if move.at) + rest
        if self.now < until:
            return Obstacle(Ground.COOLDOWN, f"until {until.isoformat(timespec='seconds')}")
        return None


def cooldown(failures: int) -> timedelta:
    """How long an owner rests after this many failed moves in a row."""
    return min(COOLDOWN * (1 << min(failures, 10)), LONGEST_COOLDOWN)


def _last_in_a_row(moves: Sequence[RecordedMove], outcomes: frozenset[MoveOutcome]) -> int:
    """How many of the last moves had one of these outcomes. Moves under way do not count."""
    ended = (move.outcome for move in reversed(moves) if move.outcome != MoveOutcome.UNDER_WAY)
    return len(list(takewhile(lambda outcome: outcome in outcomes, ended)))
