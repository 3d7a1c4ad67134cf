"""Runs again and again while this process has the Lease.

With UnplaceablePods, a pod that a node refuses begins a run at once, and so does a probe that is
due. With CriticalPods, a critical pod begins one as soon as it has waited for a node long enough. A
run that moves other pods then ends early.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime

import structlog

from claimctl.kube.errors import KubeError
from claimctl.kube.events import EventRecorder
from claimctl.kube.leases import LeaderElection, LeaderElectionSettings
from claimctl.kube.supervisor import Tasks
from claimctl.parallel import wait_any
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.policy import CriticalPods, UnplaceablePods
from claimctl_reschedule.plan.strategies.critical import NEXT
from claimctl_reschedule.run import waking
from claimctl_reschedule.run.run import Runner
from claimctl_reschedule.run.steps import RunReport
from claimctl_reschedule.shapes.scheduling import SchedulingPod

log = structlog.get_logger(__name__)

SHORTEST_PAUSE = 0.2
"""Seconds between the end of a run and the next one at least."""
SETTLE = 1.0
"""Seconds between a refused pod and the run that follows."""
HELPERS_STOP = 5.0
"""Seconds that the watch of refused pods and the writing of Events have to end."""
LEASE = "claimctl-rescheduler"


def election_settings(namespace: str) -> LeaderElectionSettings:
    """The Lease: one for all processes, whatever record they use."""
    return LeaderElectionSettings(LEASE, namespace)


@dataclass(slots=True)
class Loop:
    """Runs every ``interval`` seconds. The end of a run is the start of the next pause.
    ``dry_run``: only plan, and log each move; nothing but the Lease is written."""

    runner: Runner
    election: LeaderElection
    interval: float
    events: EventRecorder
    dry_run: bool = False
    _woken: asyncio.Event = field(default_factory=asyncio.Event)
    _vain: int = 0
    """How many runs in a row found the cluster changed, and evicted nothing."""

    async def run(self) -> None:
        """Run until ``runner.stop`` is set.

        Raises:
            LeadershipLost: another process has the Lease now, or there is no namespace for it.
            TaskEnded: the watch of refused pods or the writing of Events ended. Any error of theirs
                is raised as it is.
        """
        stop = self.runner.stop
        leading = asyncio.create_task(self.election.run(self._lead), name="rescheduler")
        stopped = asyncio.create_task(stop.wait(), name="stop")
        try:
            await asyncio.wait({leading, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not self.election.leading:
                leading.cancel()
            with suppress(asyncio.CancelledError):
                await leading
        finally:
            for task in (leading, stopped):
                task.cancel()

    async def _lead(self) -> None:
        """Make runs until ``runner.stop`` is set, or until a helper ends that should not."""
        helpers = Tasks()
        helpers.spawn("events", self.events.run())
        for name, signs in self._pod_signs():
            helpers.spawn(name, signs.run())
        runs = asyncio.create_task(self._runs(), name="runs")
        failed = asyncio.create_task(helpers.failed(), name="failure of a helper")
        try:
            await asyncio.wait({runs, failed}, return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                # a run ends at its next step, and removes its taints
                self.runner.stop.set()
            await runs
            if failed.done():
                failed.result()
        finally:
            for task in (runs, failed):
                task.cancel()
            await asyncio.gather(runs, failed, return_exceptions=True)
            await helpers.stop(deadline=HELPERS_STOP)
            await self.events.drain()

    def _pod_signs(self) -> Iterator[tuple[str, waking.PodSigns]]:
        """The watches of pods that wake the loop."""
        runner, policy = self.runner, self.runner.policy
        common = (runner.client, runner.clock, runner.rng)
        if policy.names(UnplaceablePods):
            refusals = waking.Refusals(runner.clock, self._woken, self._react)
            # the run that follows sees what was refused before
            yield "refusals", waking.PodSigns(*common, waking.FAILED, refusals.see, self._woken.set)
        if policy.names(CriticalPods):
            critical = waking.CriticalWaits(runner.clock, policy, self._hurry)
            yield "critical pods", waking.PodSigns(*common, waking.WITHOUT_NODE, critical.see)

    def _hurry(self) -> None:
        self.runner.urgent.set()
        self._woken.set()

    async def _runs(self) -> None:
        while not self.runner.stop.is_set():
            await self._wait(await self._once())

    async def _react(self, refused: Iterable[SchedulingPod]) -> None:
        if not self.dry_run:
            await self.runner.react(refused)

    async def _wait(self, due: datetime | None) -> None:
        """Wait for the interval, until ``due``, for a pod that needs it, or for the end."""
        pause = self.interval
        if due is not None:
            left = (due - self.runner.clock.now()).total_seconds()
            pause = max(min(pause, left), SHORTEST_PAUSE)
        await wait_any(self.runner.stop, self._woken, seconds=pause)
        if self._woken.is_set() and not self.runner.stop.is_set():
            # more pods may be refused at about the same time; ``react`` has done what is urgent
            await self.runner.clock.sleep(SETTLE)
            self._woken.clear()

    async def _once(self) -> datetime | None:
        """Make a run; return when the next one is due before the interval is over."""
        try:
            if self.dry_run:
                log_plan(await self.runner.plan())
                return None
            report = await self.runner.run()
        except KubeError as error:
            log.warning("run failed, trying again after the interval", error=str(error))
            return None
        log_report(report)
        again = any(help_.again for help_ in report.helps)
        self._vain = self._vain + 1 if again and not report.evicted else 0
        due = report.plan.next_look
        if again:
            # such as a critical pod whose room another one took: nothing else would begin a run
            soon = self.runner.clock.now() + NEXT * (1 << min(self._vain, 8))
            due = min(soon, due or soon)
        return due


def log_plan(plan: Plan) -> None:
    """Log what a run would do."""
    for move in plan.moves:
        log.info(
            "would evict",
            pod=f"{move.pod.namespace}/{move.pod.name}",
            strategy=move.strategy,
            node=move.pod.node,
            expected=move.destination or None,
            why=move.why or None,
        )
    log.info("dry run ended", digest=plan.digest, planned=len(plan.moves), stayed=len(plan.skipped))


def log_report(report: RunReport) -> None:
    """Log what a run did."""
    plan = report.plan
    log.info(
        "run ended",
        digest=plan.digest,
        planned=len(report.steps),
        evicted=report.evicted,
        stayed=len(plan.skipped),
        failure=report.failure or None,
    )
    for note in report.notes:
        log.warning(note)
