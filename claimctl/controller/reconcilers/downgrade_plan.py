"""The reconciler of DowngradePlans: carries them out, one at a time.

A plan freezes its namespaces by being there (see ``snapshots``): what comes here has been in the
cache that every decision reads, so no workload reference is decided on any more. One that was
decided on before is refused by its resourceVersion or read by the expansion.
"""

from __future__ import annotations

from claimctl.controller.caches.informers import Caches
from claimctl.controller.keys import PlanKey
from claimctl.controller.reconcilers.result import DONE, After, Outcome
from claimctl.downgrade.ledger import Ledger, Overtaken, PlanWithdrawn
from claimctl.downgrade.prepare import run_plan
from claimctl.downgrade.records import is_over
from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound
from claimctl.telemetry.face import Span
from claimctl.wire.reservations import DowngradePlan
from claimctl.wire.resources import DOWNGRADEPLANS
from claimctl.wire.seams import Clock

REST_SECONDS = 5.0
"""Beyond the settle time: a run writes something at least so often, unless it has died."""


class DowngradePlanReconciler:
    name = "downgradeplan"

    def __init__(self, client: Client, caches: Caches, clock: Clock, settle_seconds: float) -> None:
        self._client = client
        self._caches = caches
        self._clock = clock
        self._settle = settle_seconds
        self._overtaken: dict[str, tuple[str, float]] = {}
        """By the plan's UID: the version that somebody else wrote, and since when it stands."""

    async def reconcile(self, key: PlanKey, span: Span) -> Outcome:
        span.set(claimctl__plan__name=key.name)
        if self._caches.plans.get(key.name) is None or self._caches.plans.doubt(key.name):
            return DONE
        try:
            plan = await self._client.get(DOWNGRADEPLANS, key.name)
            return await self._carry_out(plan) if _is_due(plan) else DONE
        except (NotFound, PlanWithdrawn):
            return DONE

    async def _carry_out(self, plan: DowngradePlan) -> Outcome:
        left = self._left_to_another(plan)
        if left > 0:
            return After(left)
        ledger = Ledger(self._client, plan)
        try:
            await run_plan(self._client, ledger, self._clock, settle_seconds=self._settle)
        except Overtaken as overtaken:
            return After(self._give_way(overtaken.plan))
        return DONE

    def _give_way(self, plan: DowngradePlan) -> float:
        """Two that start over at every write of the other would never come to an end."""
        meta = plan.metadata
        self._overtaken = {meta.uid: (meta.resource_version, self._clock.monotonic())}
        return self._settle + REST_SECONDS

    def _left_to_another(self, plan: DowngradePlan) -> float:
        """Seconds for which somebody else may still be at work on the plan."""
        version, since = self._overtaken.get(plan.metadata.uid, ("", 0.0))
        if not version:
            return 0.0
        if version != plan.metadata.resource_version:
            return self._give_way(plan)
        left = since + self._settle + REST_SECONDS - self._clock.monotonic()
        if left <= 0:
            self._overtaken.clear()
        return left


def _is_due(plan: DowngradePlan) -> bool:
    if plan.metadata.deleting:
        return False
    carried_out = is_over(plan.status)
    return not carried_out or plan.status.observed_generation < plan.metadata.generation
