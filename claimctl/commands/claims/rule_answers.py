"""What the expressions of a rule say about a workload, and which of them decided."""

from __future__ import annotations

from typing import Annotated, Literal

from claimctl.cli.documents import Part, says
from claimctl.reservation.facts.workloads import WorkloadState
from claimctl.reservation.kinds.expressions import reads_status


class RuleExpression(Part, frozen=True, kw_only=False):
    """An expression of a WorkloadKind that decided whether a workload is idle or has ended."""

    workload_kind: Annotated[str, says("name of the WorkloadKind; '' if there is none")]
    field: Literal["ended", "idle"]
    expression: str
    says: Annotated[bool | None, says("null: it fails, or is neither true nor false")]
    behind: Annotated[bool, says("it reads a status that is behind the spec, so it is not true")]


def deciding(state: WorkloadState) -> tuple[RuleExpression, ...]:
    """The expressions that decided about a workload which only a rule describes: the one that says
    yes, else those that say nothing, else all. 'ended' counts before 'idle'."""
    if (rule := state.rule) is None or (verdict := state.verdict) is None:
        return ()

    def answer(field: Literal["ended", "idle"], text: str, says: bool | None) -> RuleExpression:
        return RuleExpression(rule.name, field, text, says, verdict.behind and reads_status(text))

    ended = answer("ended", rule.ended, verdict.ended)
    idle = answer("idle", rule.idle, verdict.idle)
    silent = tuple(side for side in (ended, idle) if side.says is None)
    if ended.says:
        return (ended,)
    if silent or idle.says:
        return silent or (idle,)
    return tuple(side for side in (ended, idle) if side.expression)
