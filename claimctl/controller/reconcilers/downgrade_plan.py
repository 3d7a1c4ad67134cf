"""The reconciler of DowngradePlans: it carries them out, one at a time.

A plan freezes its namespaces while it exists (see ``snapshots``). Every decision reads the cache
that has the plan, so no decision adds a workload reference any more. A reference that was decided
before either conflicts, or is in the list that the plan expands.
"""

from __future__ import annotations

from claimctl.controller.caches.informers import Caches
from claimctl.controller.keys import PlanKey
from claimctl.controller.workers import DONE, After, Outcome
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
"""A run that is alive writes at least every settle time and so many seconds."""


class DowngradePlanReconciler:
    name = "downgradeplan"

    def __init__(self, client: Client, caches: Caches, clock: Clock, settle_seconds: float) -> None:
        self._client = client
        self._caches = caches
        self._clock = clock
        self._settle = settle_seconds
        self._overtaken: dict[str, tuple[str, float]] = {}
        """By the plan's UID: the version that another client wrote, and when it was first seen."""

    async def reconcile(self, key: PlanKey, span: Span) -> Outcome:
        span.set(claimctl__plan__name=key.name)
        if self._caches.plans.get(key.name) is None or self._caches.plans.unreadable_for(key.name):
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
        """Seconds to wait after another client wrote the plan.

        Without a wait, two clients that start over at each other's writes would never end.
        """
        meta = plan.metadata
        self._overtaken = {meta.uid: (meta.resource_version, self._clock.monotonic())}
        return self._settle + REST_SECONDS

    def _left_to_another(self, plan: DowngradePlan) -> float:
        """Seconds for which another client may still be carrying out the plan."""
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
