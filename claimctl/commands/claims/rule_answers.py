"""What the expressions of a rule say about a workload, and which of them decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from claimctl.reservation.kinds.rules import Rule, Verdict


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """What one expression of a rule says about a workload: yes, no, or nothing (None)."""

    field: Literal["ended", "idle"]
    """The expression's field of the WorkloadKind."""
    expression: str
    says: bool | None


def deciding(rule: Rule, verdict: Verdict) -> tuple[RuleAnswer, ...]:
    """The expressions that decided: the one that says yes, else those that say nothing, else all.
    'ended' counts before 'idle'."""
    ended = RuleAnswer("ended", rule.ended, verdict.ended)
    idle = RuleAnswer("idle", rule.idle, verdict.idle)
    silent = tuple(answer for answer in (ended, idle) if answer.says is None)
    if ended.says:
        return (ended,)
    if silent or idle.says:
        return silent or (idle,)
    return tuple(answer for answer in (ended, idle) if answer.expression)
