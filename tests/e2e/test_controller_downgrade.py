"""A downgrade and the way back while pods come and go: prepare, then restore."""

from __future__ import annotations

import pytest

from claimctl.controller import checkpoint
from claimctl.controller.settings import Duty
from claimctl.downgrade.records import PlanPhase
from claimctl.installation import INSTALLED, LEASE_NAME
from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, LEASES, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.downgrading import prepared, there_and_back, workloads
from tests.e2e.harness import GROUP_136, HOLD_134, HOLD_136, NAMESPACE, Stage

pytestmark = pytest.mark.alone


@pytest.mark.cluster(HOLD_134)
async def test_replaced_references_return_on_1_34(stage: Stage) -> None:
    await there_and_back(stage, "hold")


@pytest.mark.cluster(HOLD_136)
async def test_the_controller_of_a_command_only_carries_out_the_plan(stage: Stage) -> None:
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=2, reserve="*"))
    await stage.until_running(2)
    await stage.started(duty=Duty.PLAN)
    assert await prepared(stage) == PlanPhase.PREPARED
    await stage.quiet(60)
    assert await workloads(stage) == set()
    assert (await stage.client.list(CLAIMRESERVATIONS, NAMESPACE)).items == ()
    settings = stage.site.settings
    namespace = str(settings.get("lease_namespace", INSTALLED))
    lease = await stage.client.get(LEASES, LEASE_NAME, namespace)
    assert lease.metadata.annotation(checkpoint.ANNOTATION) is None


@pytest.mark.cluster(GROUP_136)
async def test_replaced_references_return_beside_a_group(stage: Stage) -> None:
    await there_and_back(stage, "podgroup")
