"""The last line of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from claimctl_reschedule.command.view import conclude
from claimctl_reschedule.command.wanted import RescheduleOptions
from claimctl_reschedule.plan.plan import Move, Owner, Plan, PodRef
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.run.steps import MoveStep, Result, RunReport
from tests.support.builders import NOW


def step(name: str, left: Ground | None) -> MoveStep:
    pod = PodRef(namespace="team", name=name, uid=name, node="x")
    owner = Owner(kind="ReplicaSet", name="web", uid="web")
    made = MoveStep(Move(strategy="Test", pod=pod, owner=owner, destination="y"))
    if left is None:
        made.result = Result.EVICTED
    else:
        made.leave(Obstacle(left))
    return made


@pytest.mark.parametrize(
    ("left", "words"),
    [
        ([None, Ground.INTERRUPTED, Ground.INTERRUPTED], "1 pods evicted, interrupted before 2"),
        ([None, Ground.REFUSED, Ground.INTERRUPTED], "1 refused, interrupted before 1 began"),
        ([Ground.REFUSED], "0 pods evicted, 1 refused, interrupted\n"),
    ],
)
def test_a_pod_whose_eviction_never_began_was_not_refused(
    left: list[Ground | None], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [step(f"p{index}", ground) for index, ground in enumerate(left)]
    report = RunReport(Plan(made_at=NOW), steps, interrupted=True)
    conclude(report, RescheduleOptions(policy=Path("policy.yaml")))
    assert words in capsys.readouterr().err
