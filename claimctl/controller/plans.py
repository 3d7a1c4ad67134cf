"""The reconciler of DowngradePlans: carries them out, one at a time.

A plan freezes its namespaces by being there (see ``snapshots``): what comes here has been in the
cache that every decision reads, so no workload reference is decided on any more. One that was
decided on before is refused by its resourceVersion or read by the expansion.
"""

from __future__ import annotations

from claimctl.controller.caches import Caches
from claimctl.controller.keys import PlanKey
from claimctl.controller.outcome import DONE, Outcome
from claimctl.controller.patches import merge_diff
from claimctl.downgrade.prepare import run_plan
from claimctl.downgrade.records import is_over
from claimctl.kube.client import Client
from claimctl.kube.errors import Conflict, NotFound
from claimctl.telemetry.face import Span
from claimctl.wire.base import to_plain
from claimctl.wire.reservations import DowngradePlan, DowngradePlanStatus
from claimctl.wire.resources import DOWNGRADEPLANS
from claimctl.wire.seams import Clock


class PlanWithdrawn(Exception):
    """The plan was deleted, or replaced by another one, while it was carried out."""


class DowngradePlanReconciler:
    name = "downgradeplan"

    def __init__(self, client: Client, caches: Caches, clock: Clock, settle_seconds: float) -> None:
        self._client = client
        self._caches = caches
        self._clock = clock
        self._settle = settle_seconds

    async def reconcile(self, key: PlanKey, span: Span) -> Outcome:
        span.set(claimctl__plan__name=key.name)
        if self._caches.plans.get(key.name) is None:
            return DONE
        try:
            plan = await self._client.get(DOWNGRADEPLANS, key.name)
            if _is_due(plan):
                report = _PlanReport(self._client, plan)
                await run_plan(
                    self._client, plan, self._clock, report.store, settle_seconds=self._settle
                )
        except (NotFound, PlanWithdrawn):
            return DONE
        return DONE


def _is_due(plan: DowngradePlan) -> bool:
    if plan.metadata.deleting:
        return False
    carried_out = is_over(plan.status)
    return not carried_out or plan.status.observed_generation < plan.metadata.generation


class _PlanReport:
    """Stores statuses in the plan; each write carries the version that the one before made."""

    def __init__(self, client: Client, plan: DowngradePlan) -> None:
        self._client = client
        self._plan = plan

    async def store(self, status: DowngradePlanStatus) -> None:
        """Write a status; raises PlanWithdrawn when the plan is not wanted any more."""
        for _ in range(5):
            body = merge_diff(to_plain(self._plan.status), to_plain(status))
            if not body:
                return
            try:
                self._plan = await self._client.merge_patch(
                    DOWNGRADEPLANS,
                    self._plan.metadata.name,
                    {"status": body},
                    resource_version=self._plan.metadata.resource_version,
                    subresource="status",
                )
                return
            except Conflict:
                await self._read_again()
        raise PlanWithdrawn(f"plan {self._plan.metadata.name} is being rewritten by somebody else")

    async def _read_again(self) -> None:
        now = await self._client.get(DOWNGRADEPLANS, self._plan.metadata.name)
        if now.metadata.uid != self._plan.metadata.uid or now.metadata.deleting:
            raise PlanWithdrawn(f"plan {self._plan.metadata.name} was deleted")
        self._plan = now
