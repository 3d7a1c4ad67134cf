"""The reconciler of DowngradePlans against a server."""

from __future__ import annotations

import asyncio
from random import Random

from claimctl.controller.keys import PlanKey
from claimctl.controller.reconcilers.downgrade_plan import DowngradePlanReconciler
from claimctl.controller.workers import DONE
from claimctl.kube.clock import LoopClock
from claimctl.kube.informer import Informer
from claimctl.wire.resources import DOWNGRADEPLANS
from tests.support.builders import NOW
from tests.support.recording import Recording
from tests.unit.controller.cluster import filled, furnish, groups_server, knowledge, plan


async def test_a_plan_that_cannot_be_read_is_not_carried_out() -> None:
    made, spoilt = groups_server()
    furnish(made)
    made.create("downgradeplans", plan())
    caches = await filled(made)
    caches.plans = Informer(made.client, DOWNGRADEPLANS, LoopClock(NOW), rng=Random(0))
    task = asyncio.create_task(caches.plans.run())
    await caches.plans.wait_synced()
    spoilt.spoil("downgradeplans", "claimctl")
    made.admin.patch("downgradeplans", "", "claimctl", {"metadata": {"labels": {"x": "y"}}})
    await asyncio.sleep(1)
    assert caches.plans.get("claimctl") is not None
    made.requests.clear()
    reconciler = DowngradePlanReconciler(made.client, knowledge(made, caches, "native"))
    with Recording().span("reconcile") as span:
        assert await reconciler.reconcile(PlanKey("claimctl"), span) == DONE
    assert [each for each in made.requests if "downgradeplans" in each] == []
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
