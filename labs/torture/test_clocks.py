"""Two controllers work at the same time, with wall clocks that differ or jump."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache

import pytest
from kube_in_process.virtual import run

from labs.torture.final_checks import FinalChecks
from labs.torture.reference import LIMIT, dialects, reservation, workload
from labs.torture.testbed import Process, RunVerdict, Testbed, judge, opened
from tests.e2e import manifests
from tests.e2e.harness import CONTROLLER_USER, NAMESPACE

DAY = 86_400.0
IDLE_SECONDS = 30
FEW = 5
"""How many status writes a second controller may add in one act: both see a change at the same
time."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """The offsets of the wall clocks in seconds, one for each act (the last one stays)."""

    one: tuple[float, ...] = (0.0,)
    two: tuple[float, ...] | None = None

    def set(self, testbed: Testbed, act: int) -> None:
        for name, offsets in (("one", self.one), ("two", self.two)):
            if offsets is not None and name in testbed.processes:
                _set(testbed.processes[name], offsets[min(act, len(offsets) - 1)])


def _set(process: Process, seconds: float) -> None:
    process.clock.jump = timedelta(seconds=seconds)


ALONE = Clocks()
TOGETHER = {
    "right": Clocks(two=(0.0,)),
    "a-day-ahead": Clocks(two=(DAY,)),
    "a-day-behind": Clocks(two=(-DAY,)),
    "a-minute-apart": Clocks((-30.0,), (30.0,)),
    "jumping": Clocks((0.0, 40.0, -DAY, 5.0, 0.0, DAY), (0.0, -DAY, DAY, -40.0, 2 * DAY, -DAY)),
}


@dataclass
class ClocksOutcome:
    """Status writes by act, and the verdict on the run."""

    writes: dict[str, int] = field(default_factory=dict)
    verdict: RunVerdict = field(default_factory=lambda: RunVerdict("clocks"))


@cache
def alone(dialect: str) -> ClocksOutcome:
    """The story with one controller, which restarts when the second one does."""
    outcome = ClocksOutcome()
    run(_story(dialect, ALONE, outcome), limit=LIMIT)
    return outcome


@pytest.mark.parametrize("dialect", sorted(dialects()))
@pytest.mark.parametrize("clocks", sorted(TOGETHER))
def test_controllers_whose_clocks_disagree_do_not_correct_each_other(
    dialect: str, clocks: str
) -> None:
    outcome = ClocksOutcome()
    run(_story(dialect, TOGETHER[clocks], outcome), limit=LIMIT)
    assert outcome.verdict.good, outcome.verdict
    most = {act: writes + FEW for act, writes in alone(dialect).writes.items()}
    most["quiet"] = 0
    assert {act: writes for act, writes in outcome.writes.items() if writes > most[act]} == {}


def test_a_clock_that_jumps_makes_one_controller_neither_hasty_nor_late() -> None:
    outcome = ClocksOutcome()
    jumps = Clocks((0.0, DAY, -DAY, 3 * DAY, 0.0, 2 * DAY, -DAY))
    run(_story("hold-1.36", jumps, outcome), limit=LIMIT)
    assert outcome.verdict.good, outcome.verdict


@pytest.mark.virtual_limit(LIMIT)
async def test_two_that_see_a_cluster_differently_do_not_overwrite_each_other_all_the_time() -> (
    None
):
    """The flags of the two name different dialects. In a minute each may write a few times."""
    async with opened(dialects()["hold-1.36"]) as testbed:
        testbed.start("one")
        testbed.start("two", dialect="podgroup")
        next(_acts(testbed, "hold-1.36"))
        await testbed.sleep(60.0)
        before = testbed.cluster.store.revision
        await testbed.sleep(60.0)
        assert _status_writes(testbed, before) <= 8


async def _story(dialect: str, clocks: Clocks, outcome: ClocksOutcome) -> None:
    async with opened(dialects()[dialect]) as testbed:
        _start(testbed, clocks, 0)
        for number, (act, seconds) in enumerate(_acts(testbed, dialect)):
            clocks.set(testbed, number)
            before = testbed.cluster.store.revision
            await testbed.sleep(3.0)
            if act in ("ghost", "ended"):
                await _replace(testbed, clocks, number)
            await _kept_for_long_enough(testbed, act)
            await testbed.sleep(seconds - 3.0)
            outcome.writes[act] = _status_writes(testbed, before)
        assert not testbed.unreleased()
        await FinalChecks(testbed, outcome.verdict).conclude()
        judge(testbed, outcome.verdict)


def _acts(testbed: Testbed, dialect: str) -> Iterator[tuple[str, float]]:
    """The acts, each with the seconds for which its writes are counted."""
    admin = testbed.cluster.admin
    admin.create("resourceclaimtemplates", manifests.claim_template())
    spec = {"idleTimeoutSeconds": IDLE_SECONDS, "reallocateTimeoutSeconds": 60}
    admin.create("claimreservations", reservation("Deployment", **spec))
    admin.create("deployments", workload(dialect, "Deployment", 2))
    yield "hold", 15.0
    yield "quiet", 30.0
    _force_delete(testbed)
    yield "ghost", 40.0
    admin.patch("deployments", NAMESPACE, "train", {"spec": {"replicas": 0}})
    yield "idle", 90.0
    admin.patch("deployments", NAMESPACE, "train", {"spec": {"replicas": 2}})
    yield "again", 20.0
    _force_delete(testbed)
    admin.delete("deployments", NAMESPACE, "train")
    yield "ended", 90.0


def _force_delete(testbed: Testbed) -> None:
    testbed.cluster.force_delete(NAMESPACE, testbed.objects("pods")[0]["metadata"]["name"])


def _start(testbed: Testbed, clocks: Clocks, act: int) -> None:
    for name in ("one", "two") if clocks.two is not None else ("one",):
        if name not in testbed.processes:
            testbed.start(name)
    clocks.set(testbed, act)


async def _replace(testbed: Testbed, clocks: Clocks, act: int) -> None:
    """Restart one controller: it knows the past only from the records."""
    await testbed.kill(sorted(testbed.processes)[-1])
    _start(testbed, clocks, act)


async def _kept_for_long_enough(testbed: Testbed, act: str) -> None:
    """Check that no clock shortens the idle timeout. The witness checks graces."""
    if act == "idle":
        await testbed.sleep(IDLE_SECONDS - 5.0)
        assert testbed.unreleased()


def _status_writes(testbed: Testbed, since: int) -> int:
    return sum(
        (revision.actor, revision.plural) == (CONTROLLER_USER, "claimreservations")
        for revision in testbed.cluster.history(since)
    )
