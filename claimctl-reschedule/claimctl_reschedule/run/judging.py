"""Judges a move again once the cluster no longer looks as the plan expects.

A replacement may go elsewhere than expected, and a pod may change before its turn. What was planned
on top of that may help nobody any more. So the plan is made anew, from what the pods are like now,
and a move that it does not have is left. No other move takes its place: that is for the next run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from claimctl_reschedule.plan.plan import Move, Plan
from claimctl_reschedule.plan.prediction import AT_ONCE
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.groups import MoveGroup
from claimctl_reschedule.run.landings import Landings
from claimctl_reschedule.run.steps import RunReport

_FOR_NOW = frozenset(
    {
        Ground.BUDGET_SPENT,
        Ground.BUDGET_NOT_OBSERVED,
        Ground.COOLDOWN,
        Ground.LIMIT_TOTAL,
        Ground.LIMIT_PER_NODE,
        Ground.LIMIT_PER_NAMESPACE,
        Ground.LIMIT_OF_STRATEGY,
        Ground.ALREADY_MOVED,
    }
)
"""Reasons that say nothing about the good of a move: the run itself may have brought them about."""
_Place = tuple[str, str, str]
"""Strategy, owner and node of a pod: pods of one owner on one node can stand in for each other."""


def _place(move: Move) -> _Place:
    return move.strategy, move.owner.uid if move.owner is not None else "", move.pod.node


@dataclass(slots=True)
class Judgement:
    landings: Landings
    report: RunReport
    plan_again: Callable[[], Awaitable[Plan]]
    _known: int = 0
    """How many surprises the last plan knows of."""
    _uids: frozenset[str] = frozenset()
    """The pods that the last plan moves."""
    _places: Counter[_Place] = field(default_factory=Counter)
    """How many more pods of a place it moves."""
    _reasons: dict[str, Ground] = field(default_factory=dict)
    """Why the others stay, by UID."""
    _left: set[str] = field(default_factory=set)
    """The pods that were left because of a judgement."""

    def must_wait(self, group: MoveGroup) -> bool:
        """Whether the group is to be judged again, and replacements will be there in a moment."""
        news = self._concerns(group) and self._surprises() > self._known
        return news and any(flight.owner.kind in AT_ONCE for flight in self.landings.open)

    async def against(self, group: MoveGroup) -> str:
        """Why the cluster as it is now does not call for the group; '' if it does."""
        surprises = self._surprises()
        if not surprises or not self._concerns(group):
            return ""
        if surprises > self._known:
            plan = await self.plan_again()
            self._known = surprises
            self._uids = frozenset(move.pod.uid for move in plan.moves)
            self._places = Counter(map(_place, plan.moves))
            self._reasons = {skipped.pod.uid: skipped.reason for skipped in plan.skipped}
        unwanted = next((move for move in group.moves if not self._is_wanted(move)), None)
        if unwanted is None:
            return ""
        self._left |= {move.pod.uid for move in group.moves}
        reason = self._reasons.get(unwanted.pod.uid)
        return f"the cluster no longer looks as planned: {reason or 'it needs no move any more'}"

    def _surprises(self) -> int:
        """Replacements that went elsewhere, and pods that changed before their turn."""
        changed = sum(
            step.reason is Ground.CHANGED and step.uid not in self._left
            for step in self.report.steps
        )
        return self.landings.surprises() + changed

    def _concerns(self, group: MoveGroup) -> bool:
        """Whether the group moves to better nodes. Rescues are looked at by themselves."""
        moves = group.moves
        return not group.started and all(move.destination and not move.cleans for move in moves)

    def _is_wanted(self, move: Move) -> bool:
        place = _place(move)
        wanted = move.pod.uid in self._uids or self._places[place] > 0
        self._places[place] -= 1
        return wanted or self._reasons.get(move.pod.uid) in _FOR_NOW
