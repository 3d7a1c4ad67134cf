"""``claimctl doctor driver`` on drivers with each habit: it names the habit, and leaves nothing."""

from __future__ import annotations

import pytest
from kube_in_process.components.drivers.driver import Driver
from kube_in_process.habits.habit import Habit
from kube_in_process.habits.publishing import TaintsNoExecute, TaintsNoSchedule
from kube_in_process.habits.registry import HABITS

from claimctl.cli.progress import Progress
from claimctl.commands.drivers.manifests import LABEL
from claimctl.commands.drivers.verdict import (
    NodeSeen,
    answer_of,
    habits_of,
    not_tried,
    seen_in_words,
)
from claimctl.commands.drivers.work import Run, Wanted, examine
from claimctl.wire.resources import JOBS, PODS, RESOURCECLAIMS
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage

pytestmark = pytest.mark.cluster(HOLD_136)


async def checked(stage: Stage, node: str = "node-0") -> Run:
    wanted = Wanted(stage.site.fleet.driver, node, "", "registry.k8s.io/pause:3.10", 120.0)
    return await examine(stage.client, NAMESPACE, wanted, Progress(stage.clock.monotonic))


@pytest.mark.parametrize("name", list(HABITS))
async def test_x(stage: Stage, name: str) -> None:
    driver = stage.embedded.driver(stage.site.fleet.driver)
    habit = HABITS[name]()
    driver.take_up(habit)
    await stage.clock.sleep(1)
    run = await checked(stage)
    (seen,) = run.nodes.values()
    print(name, habits_of(seen), run.left)
    print("  ", seen_in_words(seen))
    print("  ", answer_of(seen, stage.site.fleet.driver), stage.clock.monotonic())
