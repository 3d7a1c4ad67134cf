"""The reconciler of DowngradePlans: it carries them out, one at a time.

A plan freezes its namespaces while it exists (see ``snapshots``). Every decision reads the cache
that has the plan, so no decision adds a workload reference any more. A reference that was decided
before either conflicts, or is in the list that the plan expands.
"""

from __future__ import annotations

from claimctl.controller.keys import PlanKey
from claimctl.controller.snapshots import Knowledge
from claimctl.controller.workers import DONE, After, Outcome
from claimctl.downgrade.ledger import Overtaken, PlanLedger, PlanWithdrawn
from claimctl.downgrade.prepare import run_plan
from claimctl.downgrade.records import is_carried_out
from claimctl.downgrade.restore import restore_plan
from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound
from claimctl.telemetry.face import Span
from claimctl.wire.reservations import RESTORE, DowngradePlan
from claimctl.wire.resources import DOWNGRADEPLANS

REST_SECONDS = 5.0
"""A run that is alive writes at least every settle time and so many seconds."""


class DowngradePlanReconciler:
    name = "downgradeplan"

    def __init__(self, client: Client, knowledge: Knowledge) -> None:
        self._client = client
        self._know = knowledge
        self._overtaken: dict[str, tuple[str, float]] = {}
        """By the plan's UID: the version that another client wrote, and when it was first seen."""

    async def reconcile(self, key: PlanKey, span: Span) -> Outcome:
        span.set(claimctl__plan__name=key.name)
        plans = self._know.caches.plans
        if plans.get(key.name) is None or plans.unreadable_for(key.name):
            return DONE
        try:
            plan = await self._client.get(DOWNGRADEPLANS, key.name)
            over = plan.metadata.deleting or is_carried_out(plan)
            return DONE if over else await self._carry_out(plan)
        except (NotFound, PlanWithdrawn):
            return DONE

    async def _carry_out(self, plan: DowngradePlan) -> Outcome:
        left = self._left_to_another(plan)
        if left > 0:
            return After(left)
        ledger, clock, rules = PlanLedger(self._client, plan), self._know.clock, self._know.rules
        try:
            if plan.spec.action == RESTORE:
                await restore_plan(self._client, ledger, clock, rules.dialect)
            else:
                await run_plan(self._client, ledger, clock, rules=rules)
        except Overtaken as overtaken:
            return After(self._give_way(overtaken.plan))
        return DONE

    def _give_way(self, plan: DowngradePlan) -> float:
        """Seconds to wait after another client wrote the plan.

        Without a wait, two clients that start over at each other's writes would never end.
        """
        meta = plan.metadata
        self._overtaken = {meta.uid: (meta.resource_version, self._know.clock.monotonic())}
        return self._know.rules.settle_seconds + REST_SECONDS

    def _left_to_another(self, plan: DowngradePlan) -> float:
        """Seconds for which another client may still be carrying out the plan."""
        version, since = self._overtaken.get(plan.metadata.uid, ("", 0.0))
        if not version:
            return 0.0
        if version != plan.metadata.resource_version:
            return self._give_way(plan)
        left = since + self._know.rules.settle_seconds + REST_SECONDS - self._know.clock.monotonic()
        if left <= 0:
            self._overtaken.clear()
        return left
