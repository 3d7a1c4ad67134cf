"""Which expressions of a rule decided about a workload."""

from __future__ import annotations

import pytest

from claimctl.commands.claims.rule_answers import deciding
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.kinds.rules import Rule, Verdict

RULE = Rule("x.io", "Thing", "things", idle="self.spec.paused", ended="self.status.done")


def judged(verdict: Verdict, rule: Rule = RULE) -> WorkloadState:
    return WorkloadState(WorkloadPhase.ACTIVE, rule=rule, verdict=verdict)


@pytest.mark.parametrize(
    ("verdict", "answers"),
    [
        (Verdict(idle=False, ended=True), {"ended": True}),
        (Verdict(idle=None, ended=True), {"ended": True}),
        (Verdict(idle=True, ended=False), {"idle": True}),
        (Verdict(idle=True, ended=None), {"ended": None}),
        (Verdict(idle=None, ended=None), {"ended": None, "idle": None}),
        (Verdict(idle=False, ended=False), {"ended": False, "idle": False}),
    ],
)
def test_the_expressions_that_decided(verdict: Verdict, answers: dict[str, bool | None]) -> None:
    assert {answer.field: answer.says for answer in deciding(judged(verdict))} == answers


def test_an_expression_over_a_status_that_is_behind_says_so() -> None:
    answers = deciding(judged(Verdict(idle=False, ended=False, behind=True)))
    assert [(answer.field, answer.behind) for answer in answers] == [
        ("ended", True),
        ("idle", False),
    ]


def test_an_expression_that_is_not_there_decides_nothing() -> None:
    assert deciding(judged(Verdict(), Rule("x.io", "Thing", "things"))) == ()


def test_without_a_rule_no_expression_decides() -> None:
    assert deciding(WorkloadState(WorkloadPhase.ACTIVE)) == ()
