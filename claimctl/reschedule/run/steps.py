"""What a run did, pod by pod."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from claimctl.reschedule.plan.plan import Move, Plan
from claimctl.reschedule.plan.reasons import Reason
from claimctl.reschedule.plan.record import Outcome


class Result(StrEnum):
    PLANNED = "Planned"
    """Nothing was tried (a dry run), or not yet."""
    ALLOWED = "Allowed"
    """The server would accept the eviction (a dry run on the server)."""
    EVICTED = "Evicted"
    LEFT = "Left"
    """The pod was left alone, for ``reason``."""


@dataclass(slots=True)
class Step:
    """One planned move and its result. ``landed`` is the node of the replacement, if known."""

    move: Move
    result: Result = Result.PLANNED
    reason: Reason | None = None
    detail: str = ""
    landed: str = ""
    outcome: Outcome | None = None

    def leave(self, reason: Reason, detail: str) -> None:
        self.result, self.reason, self.detail = Result.LEFT, reason, detail


@dataclass(slots=True)
class Report:
    """The whole run.

    Attributes:
        failure: the request that ended the run before its time; '' if none did.
        interrupted: the user ended the run.
        notes: what a reader should know beside the steps, one line each.
    """

    plan: Plan
    steps: list[Step]
    failure: str = ""
    interrupted: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def evicted(self) -> int:
        return sum(step.result is Result.EVICTED for step in self.steps)

    @property
    def blocked(self) -> list[Step]:
        """Steps that were wanted and not done, other than those whose pods have changed."""
        return [
            step
            for step in self.steps
            if step.result is Result.LEFT and step.reason is not Reason.CHANGED
        ]
