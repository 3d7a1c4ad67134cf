"""Two runs on a large cluster by the policy of the comparison with the descheduler: what they move,
what comes back, and what that costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass

import yaml
from kube_in_process.cluster import Cluster
from kube_in_process.virtual import run

from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.steps import RunReport
from claimctl_reschedule.shapes.records import MoveOutcome
from claimctl_reschedule_labs.clusters.making import COMPARED, large
from claimctl_reschedule_labs.clusters.names import SPACES, SYSTEM
from claimctl_reschedule_labs.clusters.playing import SETTINGS, build, settled
from claimctl_reschedule_tests.e2e.rescheduling import runner
from labs import frame
from tests.e2e.harness import Stage, embedded_stage
from tests.e2e.site import PEOPLE
from tests.support.counting_server import CountingTransport

LIMIT = 1e6
"""Virtual seconds for one cluster."""
HEADER = (
    *("cluster", "pods", "without a node before"),
    *("evictions, runs 1 + 2", "came back", "refused", "without a node"),
    *("seconds", "requests"),
)


@dataclass(frozen=True, slots=True)
class Ran:
    """One run. ``refused``: evictions that the server refused; ``seconds`` are virtual."""

    evictions: int
    back: int
    refused: int
    waiting: int
    """Pods without a node when the cluster rests."""
    seconds: float
    requests: int


@dataclass(frozen=True, slots=True)
class TwoRuns:
    seed: int
    pods: int
    waiting: int
    runs: tuple[Ran, ...]
    """Empty if the cluster never rests."""


def play_two_runs(seed: int) -> TwoRuns:
    return run(_played(seed), limit=LIMIT)


async def _played(seed: int) -> TwoRuns:
    cluster = large(seed)
    async with embedded_stage(cluster.options) as stage:
        rests = await build(stage, cluster)
        pods, waiting = _counted(stage.embedded)
        runs = [await _ran(stage) for _ in range(2)] if rests else []
        return TwoRuns(seed, pods, waiting, tuple(runs))


async def _ran(stage: Stage) -> Ran:
    counting = CountingTransport(stage.site.connection(PEOPLE))
    process = runner(stage, yaml.safe_dump(COMPARED), counting, SETTINGS)
    began = stage.clock.monotonic()
    report = await process.run()
    took, requests = stage.clock.monotonic() - began, len(counting.requests)
    await settled(stage.embedded)
    _, waiting = _counted(stage.embedded)
    return Ran(report.evicted, _back(report), _refused(report), waiting, took, requests)


def _back(report: RunReport) -> int:
    return sum(step.outcome is MoveOutcome.BOUNCED for step in report.steps)


def _refused(report: RunReport) -> int:
    return sum(step.reason in (Ground.REFUSED, Ground.TWO_BUDGETS) for step in report.steps)


def _counted(cluster: Cluster) -> tuple[int, int]:
    """The pods that have not ended, and how many of them have no node."""
    every = (pod for space in (*SPACES, SYSTEM) for pod in cluster.admin.list("pods", space))
    alive = [pod for pod in every if pod["status"].get("phase") not in ("Succeeded", "Failed")]
    return len(alive), sum(not pod["spec"].get("nodeName") for pod in alive)


def table(results: Iterable[TwoRuns]) -> str:
    """One row for each cluster that came to rest, and their sum."""
    resting = [result for result in results if result.runs]
    total = TwoRuns(
        seed=len(resting),
        pods=sum(result.pods for result in resting),
        waiting=sum(result.waiting for result in resting),
        runs=tuple(_sum(each) for each in zip(*(result.runs for result in resting), strict=True)),
    )
    rows = [_row(str(result.seed), result) for result in resting]
    return frame.table(HEADER, [*rows, _row(f"all {total.seed}", total)])


def _sum(runs: Iterable[Ran]) -> Ran:
    first, *others = map(astuple, runs)
    return Ran(*map(sum, zip(first, *others, strict=True)))


def _row(name: str, result: TwoRuns) -> Iterator[object]:
    yield from (name, result.pods, result.waiting)
    for figures in zip(*map(astuple, result.runs), strict=True):
        yield " + ".join(f"{figure:.1f}".removesuffix(".0") for figure in figures)
