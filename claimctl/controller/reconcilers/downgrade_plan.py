"""The reconciler of DowngradePlans: it carries them out, one at a time.

A plan freezes its namespaces while it exists (see ``snapshots``). Every decision reads the cache
that has the plan, so no decision adds a workload reference any more. A reference that was decided
before either conflicts, or is in the list that the plan expands.
"""

from __future__ import annotations

from claimctl.controller.keys import PlanKey
from claimctl.controller.snapshots import Knowledge
from claimctl.controller.workers import DONE, After
from claimctl.downgrade.carry_out import carry_out
from claimctl.kube.client import Client
from claimctl.telemetry.face import Span


class DowngradePlanReconciler:
    """Reconciles the one plan.

    Args:
        stays: whether this process goes on after the plan, and will remove tombstones.
    """

    name = "downgradeplan"

    def __init__(self, client: Client, knowledge: Knowledge, *, stays: bool = True) -> None:
        self._client = client
        self._know = knowledge
        self._stays = stays

    async def reconcile(self, key: PlanKey, span: Span) -> After:
        span.set(claimctl__plan__name=key.name)
        know, plans = self._know, self._know.caches.plans
        if plans.get(key.name) is not None and not plans.unreadable_for(key.name):
            await carry_out(self._client, key.name, know.clock, know.rules, tombstones=self._stays)
        return DONE
