"""One run: clean up, look, plan, act. A dry run looks and plans, and writes nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace

import structlog

from claimctl.kube.errors import KubeError
from claimctl.telemetry.face import Metric
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.policy import Policy, UnplaceablePods
from claimctl_reschedule.plan.reasons import Obstacle
from claimctl_reschedule.run import rounds
from claimctl_reschedule.run.avoiding import Avoiding
from claimctl_reschedule.run.evicting import Evicted, evict, look
from claimctl_reschedule.run.execution import Execution, RunParts
from claimctl_reschedule.run.observing import Observation, kept_outcomes
from claimctl_reschedule.run.records import NoRecord
from claimctl_reschedule.run.steps import MoveStep, Result, RunReport
from claimctl_reschedule.run.taints import Taints
from claimctl_reschedule.shapes.records import Record, RescheduleRecordStatus, record_of
from claimctl_reschedule.shapes.scheduling import SchedulingPod

log = structlog.get_logger(__name__)

Planner = Callable[[Observed, Policy], Plan]


@dataclass(slots=True, kw_only=True)
class Runner(RunParts):
    """Makes runs by one policy. ``planner`` is the decision: ``plan.planning.plan``."""

    policy: Policy
    planner: Planner
    _seen: Observed | None = None
    """What the last run has read."""
    _reactions: int = 0

    async def plan(self) -> Plan:
        """What a run would do now. Nothing is written."""
        return self._plan(await self._observation().read())

    async def run(self) -> RunReport:
        """Clean up what an earlier process left, plan, and execute the plan. If something cannot be
        read, KubeError is raised and no pod was evicted."""
        await self.sweep()
        self.urgent.clear()
        observation, before = self._observation(), self._reactions
        self._seen = await observation.read()
        plan = self._plan(self._seen)
        judged = observation.status
        over = observation.over
        if judged.workloads or over:
            # without a record, there is nothing to correct in it
            with suppress(NoRecord):
                await self.records.change(
                    lambda status: rounds.without(kept_outcomes(status, judged), over)
                )
        seen = self._seen
        return await self.execute(
            plan,
            overtaken=lambda: self._reactions != before,
            judge_again=lambda: self._plan_again(seen),
        )

    async def react(self, refused: Iterable[SchedulingPod]) -> None:
        """Keep pods off nodes at once, before the next run: nothing is read but the record. The
        picture is that of the last run, with the pods that were refused. The next run corrects what
        has changed since."""
        if self._seen is None:
            return
        record = await self.records.read()
        status = record.status if record is not None else RescheduleRecordStatus()
        pods = {pod.metadata.uid: pod for pod in (*self._seen.pods, *refused)}
        observed = replace(
            self._seen, now=self.clock.now(), pods=tuple(pods.values()), record=record_of(status)
        )
        plan = self.planner(observed, self.policy.only(UnplaceablePods))
        self._reactions += 1
        try:
            await Avoiding(self.client, self.clock, self.records).remember(plan.avoidances)
        except NoRecord as error:
            log.warning("pods keep coming back to the node that refused them", reason=str(error))
            return
        for step in plan.avoidances:
            self.signs.avoided(step)

    async def _plan_again(self, before: Observed | None) -> Plan:
        """The plan for the pods and claims as they are now.

        All else is as ``before``. So what this run has used up of budgets and limits, and that it
        has moved pods a moment ago, does not count.
        """
        if before is None:
            now = replace(await self._observation().read(), record=Record())
        else:
            now = await self._observation().read_pods(before)
        return self.planner(now, self.policy)

    async def execute(
        self,
        plan: Plan,
        overtaken: Callable[[], bool] = lambda: False,
        judge_again: Callable[[], Awaitable[Plan]] | None = None,
    ) -> RunReport:
        """Execute a plan. A failed request is in the report. ``overtaken``: whether ``react`` has
        written avoidances since the plan was made. ``judge_again`` makes the plan anew during the
        run; by default from all that there is."""
        began = self.clock.monotonic()
        attributes = {"claimctl_reschedule.digest": plan.digest}
        with self.client.telemetry.span("reschedule", attributes) as span:
            again = judge_again or (lambda: self._plan_again(None))
            execution = Execution(**self.parts(), plan=plan, overtaken=overtaken, judge_again=again)
            report = await execution.run()
            span.set(
                claimctl__reschedule__planned=len(report.steps),
                claimctl__reschedule__evicted=report.evicted,
            )
        result = "failed" if report.failure else "ok"
        took = self.clock.monotonic() - began
        self.client.telemetry.observe(Metric.RESCHEDULE_RUN_SECONDS, took, {"result": result})
        return report

    async def rehearse(self, plan: Plan) -> RunReport:
        """Ask the server for each eviction of a plan whether it would accept it now."""
        report = RunReport(plan, [MoveStep(move) for move in plan.moves])
        try:
            for step in report.steps:
                if self.stop.is_set():
                    report.interrupted = True
                    break
                grace = self.settings.grace_period
                answer = await look(self.client, step.move) or await evict(
                    self.client, step.move, grace, dry_run=True
                )
                if isinstance(answer, Evicted):
                    step.result = Result.ALLOWED
                else:
                    step.leave(Obstacle(answer.reason, answer.detail))
        except KubeError as error:
            report.failure = str(error)
        return report

    async def sweep(self, *, everything: bool = False) -> int:
        """Remove the taints and entries that earlier processes left; how many taints went."""
        if everything:
            await Avoiding(self.client, self.clock, self.records).stop()
        taints = Taints(self.client, self.clock, self.records)
        return await taints.sweep(everything=everything)

    def _observation(self) -> Observation:
        where = self.lease_namespace
        return Observation(self.client, self.clock, self.records, self.policy, where)

    def _plan(self, observed: Observed) -> Plan:
        plan = self.planner(observed, self.policy)
        self.signs.planned(plan)
        return plan
