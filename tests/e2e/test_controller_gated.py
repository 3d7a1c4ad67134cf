"""Pods without a PodGroup on a cluster that serves PodGroups: the rules are those of ``hold``.

tests/e2e/test_controller_restarts.py has restarts and gaps on such a cluster, too.
"""

from __future__ import annotations

import pytest

from claimctl.wire.base import to_plain
from claimctl.wire.resources import DEPLOYMENTS, JOBS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import PODGROUP_136, Stage

pytestmark = [pytest.mark.cluster(PODGROUP_136), pytest.mark.core]

NEVER = 3600.0
"""A settle time that no scenario waits for."""


async def held(stage: Stage) -> None:
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(reserve="*"))
    await stage.until_running(1)
    (pod,) = await stage.running()
    await stage.until_listed("deployments/train", f"pods/{pod.metadata.name}")


async def test_a_claim_is_released_at_once(stage: Stage) -> None:
    await stage.started(settle_seconds=NEVER)
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(JOBS, manifests.job(pods=2, seconds=2, reserve="*"))
    await stage.until_some_run()
    await stage.until_released()


async def test_a_foreign_reference_lets_the_hold_go(stage: Stage) -> None:
    await stage.started(settle_seconds=NEVER)
    await held(stage)
    thing = {"apiGroup": "example.com", "resource": "things", "name": "x", "uid": "x"}
    await stage.write_list([*map(to_plain, (await stage.claim()).status.reserved_for), thing])
    await stage.until_condition("Consistent", "False", "UnknownReferences")
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_listed("things/x")
