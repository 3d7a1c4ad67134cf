"""When the loop makes its next run."""

from __future__ import annotations

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from claimctl_reschedule.plan.plan import Plan, PodRef
from claimctl_reschedule.run.loop import Loop
from claimctl_reschedule.run.steps import Help, HelpState, RunReport
from tests.support.builders import NOW

VITAL = PodRef(namespace="team", name="vital", uid="vital")


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("again", "looks", "due"),
    [
        (False, None, [None, None, None]),
        (False, 3.0, [3.0, 3.0, 3.0]),
        (True, None, [4.0, 8.0, 16.0]),
        (True, 60.0, [4.0, 8.0, 16.0]),
        (True, 5.0, [4.0, 5.0, 5.0]),
    ],
    ids=["nothing", "a probe", "runs in vain", "a late probe", "a probe before that"],
)
async def test_runs_in_vain_pause_longer_and_no_probe_waits_for_them(
    again: bool, looks: float | None, due: list[float | None]
) -> None:
    plan = Plan(made_at=NOW, next_look=None if looks is None else after(looks))
    help_ = Help(VITAL, "CriticalPods", HelpState.CHANGED, again=again)

    async def run() -> RunReport:
        return RunReport(plan, [], helps=[help_])

    runner: Any = SimpleNamespace(run=run, clock=SimpleNamespace(now=lambda: NOW))
    unused: Any = None
    loop = Loop(runner, unused, 300.0, unused)
    wanted = [None if seconds is None else after(seconds) for seconds in due]
    assert [await loop._once() for _ in due] == wanted
