"""``claimctl doctor driver`` on drivers with each habit: it says which one, and leaves nothing."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from kube_in_process.habits.habit import Habit
from kube_in_process.habits.presence import Slow

from claimctl.commands.drivers.manifests import LEFT_SECONDS
from claimctl.commands.drivers.verdict import habits_of, not_tried, seen_in_words
from claimctl.kube.errors import KubeError
from tests.e2e.driver_checks import checked, checked_node, left, until_nothing_is_left
from tests.e2e.dying_transport import DyingTransport
from tests.e2e.harness import HOLD_136, Stage
from tests.e2e.places import Rewritten
from tests.e2e.real_cluster import RealSite

pytestmark = pytest.mark.cluster(HOLD_136)

SEEN: dict[str, tuple[Habit | str, tuple[str, ...]]] = {
    "none": (Slow(prepare_seconds=0.0, unprepare_seconds=0.0), ()),
    "wants-one-pod": ("wants-one-pod", ("wants-one-pod",)),
    "reads-the-first-reference": ("reads-the-first-reference", ("reads-the-first-reference",)),
    "refuses-a-second-pod": ("refuses-a-second-pod", ("refuses-a-second-pod",)),
    "slow": ("slow", ("slow",)),
    "taints-no-schedule": ("taints-no-schedule", ("taints-no-schedule",)),
    "taints-no-execute": ("taints-no-execute", ("taints-no-execute",)),
    "hides-used-devices": ("hides-used-devices", ("hides-used-devices",)),
    "fails-to-prepare": ("fails-to-prepare", ("fails-to-prepare",)),
    "fails-to-unprepare": ("fails-to-unprepare", ("fails-to-unprepare",)),
    "away": ("away", ("away",)),
}
"""What a driver has, and what the check says."""
NOT_SEEN = {"remembers-aborted-prepares": ("slow",)}
"""What it may say of habits that it cannot see; of the others it says nothing."""


@pytest.mark.parametrize("case", SEEN)
async def test_the_check_names_the_habit_of_a_driver_and_leaves_nothing(
    stage: Stage, case: str
) -> None:
    habit, expected = SEEN[case]
    await stage.site.driver.take_up(habit)
    seen = await checked_node(stage)
    assert habits_of(seen) == expected, seen_in_words(seen)
    await stage.site.driver.drop()
    await until_nothing_is_left(stage)


@pytest.mark.parametrize("name", list(not_tried()))
async def test_a_habit_that_needs_more_than_a_check_is_not_taken_for_another_one(
    stage: Stage, name: str
) -> None:
    await stage.site.driver.take_up(name)
    seen = await checked_node(stage, seconds=120.0)
    assert seen.complete, seen_in_words(seen)
    assert set(habits_of(seen)) <= set(NOT_SEEN.get(name, ())), seen_in_words(seen)


async def test_a_check_that_runs_is_not_disturbed_by_another_one(stage: Stage) -> None:
    await stage.site.driver.take_up("slow")
    first = asyncio.create_task(checked(stage, node=stage.site.nodes[0], seconds=120.0))
    await stage.clock.sleep(15)
    second = await checked(stage, node=stage.site.nodes[0], seconds=120.0)
    for run in (await first, second):
        (seen,) = run.nodes.values()
        assert (seen.complete, habits_of(seen)) == (True, ("slow",))


async def test_kubernetes_removes_by_itself_what_a_killed_check_has_made(stage: Stage) -> None:
    if not isinstance(stage.site, RealSite):
        pytest.skip("the embedded Job controller knows no deadlines")
    inner = Rewritten(stage.site.admin, stage.site.places)
    transport = DyingTransport(inner, 10**9)
    task = asyncio.create_task(checked(stage, transport, node=stage.site.nodes[0]))
    await stage.until_some_run()
    transport.dead.set()
    with suppress(KubeError):
        await task
    assert len(await left(stage)) == 3
    await stage.quiet(LEFT_SECONDS)
    await until_nothing_is_left(stage)
