"""Runs again and again while this process has the Lease."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import structlog

from claimctl.kube.errors import KubeError
from claimctl.kube.events import EventRecorder
from claimctl.kube.leases import LeaderElection, LeaderElectionSettings
from claimctl.rescheduler.run import Runner
from claimctl.rescheduler.steps import Report
from claimctl.rescheduling.plan import Plan

log = structlog.get_logger(__name__)

LEASE = "claimctl-rescheduler"


def election_settings(namespace: str) -> LeaderElectionSettings:
    """The Lease: one for all processes, whatever record they use."""
    return LeaderElectionSettings(LEASE, namespace)


@dataclass(slots=True)
class Loop:
    """Runs every ``interval`` seconds. The end of a run is the start of the next pause.

    Attributes:
        dry_run: only plan, and log each move; nothing but the Lease is written.
    """

    runner: Runner
    election: LeaderElection
    interval: float
    events: EventRecorder
    dry_run: bool = False

    async def run(self) -> None:
        """Run until ``runner.stop`` is set.

        Raises:
            LeadershipLost: another process has the Lease now.
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
        writing = asyncio.create_task(self.events.run(), name="events")
        try:
            while not self.runner.stop.is_set():
                await self._once()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.interval):
                        await self.runner.stop.wait()
        finally:
            writing.cancel()
            with suppress(asyncio.CancelledError):
                await writing
            await self.events.drain()

    async def _once(self) -> None:
        try:
            if self.dry_run:
                told_plan(await self.runner.plan())
            else:
                told(await self.runner.run())
        except KubeError as error:
            log.warning("run failed, trying again after the interval", error=str(error))


def told_plan(plan: Plan) -> None:
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


def told(report: Report) -> None:
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
