"""What a run did, pod by pod."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from claimctl_reschedule.plan.plan import Move, Plan, PodRef
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.shapes.records import MoveOutcome


class Result(StrEnum):
    PLANNED = "Planned"
    """Nothing was tried (a dry run), or not yet."""
    ALLOWED = "Allowed"
    """The server would accept the eviction (a dry run on the server)."""
    EVICTED = "Evicted"
    LEFT = "Left"
    """The pod was left alone, for ``reason``."""


@dataclass(slots=True)
class MoveStep:
    """One planned move and its result. ``landed`` is the node of the replacement, if known."""

    move: Move
    result: Result = Result.PLANNED
    reason: Ground | None = None
    detail: str = ""
    landed: str = ""
    outcome: MoveOutcome | None = None

    @property
    def uid(self) -> str:
        return self.move.pod.uid

    def leave(self, why: Obstacle) -> None:
        self.result, self.reason, self.detail = Result.LEFT, why.reason, why.detail


class HelpState(StrEnum):
    HELPED = "Helped"
    WAITS = "Waits"
    """The pod still has no node, or not the size that it asks for."""
    CHANGED = "Changed"
    """The pod is gone or asks for something else by now, or its victims have changed."""


@dataclass(frozen=True, slots=True)
class Help:
    """A pod for which room was to be made, and whether it has got it."""

    pod: PodRef
    strategy: str
    result: HelpState
    detail: str = ""
    again: bool = False
    """Whether the cluster has changed under the run, so that another run may help at once."""


@dataclass(slots=True)
class RunReport:
    """The whole run."""

    plan: Plan
    steps: list[MoveStep]
    failure: str = ""
    """The request that ended the run before its time; '' if none did."""
    interrupted: bool = False
    """Whether the user ended the run."""
    notes: list[str] = field(default_factory=list)
    """What a reader should know beside the steps, one line each."""
    helps: list[Help] = field(default_factory=list)
    """The pods for which room was to be made."""

    @property
    def unhelped(self) -> list[Help]:
        return [help_ for help_ in self.helps if help_.result is HelpState.WAITS]

    @property
    def evicted(self) -> int:
        return sum(step.result is Result.EVICTED for step in self.steps)

    @property
    def is_stale(self) -> bool:
        """Whether every pod of the plan has changed, as after the plan was carried out before."""
        return bool(self.steps) and all(step.reason is Ground.CHANGED for step in self.steps)

    @property
    def blocked(self) -> list[MoveStep]:
        """Steps that were wanted and not done, other than those whose pods have changed."""
        return [
            step
            for step in self.steps
            if step.result is Result.LEFT and step.reason is not Ground.CHANGED
        ]
