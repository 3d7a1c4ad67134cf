"""``claimctl reschedule`` and claims: what an eviction cannot move stays, and units stay whole."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.wire.resources import DEPLOYMENTS, RESOURCECLAIMTEMPLATES, RESOURCESLICES
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule_tests.e2e.rescheduling import (
    BUDGETS,
    CPU,
    LEAVE,
    budget,
    closed,
    held,
    is_held,
    places,
    reasons,
    rescheduled,
    runner,
    taints,
    utilization,
    workload,
)
from tests.e2e import manifests
from tests.e2e.harness import Stage
from tests.e2e.site import PEOPLE
from tests.support.counting_server import CountingTransport

THREE = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=3)
TEN_DEVICES = replace(THREE, devices_per_node=10)


three = pytest.mark.cluster(THREE)


@pytest.mark.cluster(TEN_DEVICES)
async def test_pods_move_only_to_free_devices(stage: Stage) -> None:
    """Scenario 10: ten pods with a claim each, one free device elsewhere: one move."""
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template("each"))
    await closed(stage, 0, 2)
    await stage.create(DEPLOYMENTS, workload("other", 9, template="each"))
    await stage.until_running(9)
    await closed(stage, 0, unschedulable=False)
    await closed(stage, 1)
    await stage.create(DEPLOYMENTS, workload("web", 10, template="each", requests={"cpu": "4"}))
    await stage.until_running(19)
    await closed(stage, 1, unschedulable=False)
    report = await rescheduled(stage, utilization(*CPU))
    assert [each.destination for each in report.plan.moves] == [stage.site.nodes[1]]
    assert report.evicted == 1
    await stage.until_running(19)
    assert (await places(stage, "web"))[stage.site.nodes[1]] == 1
    assert set(reasons(report.plan).values()) == {Ground.NO_DEVICES}


@pytest.mark.cluster(THREE)
async def test_nodes_without_devices_are_no_place_for_pods_with_devices(stage: Stage) -> None:
    """Scenario 8: a threshold of devices does not take a node without devices for under-used."""
    last = stage.site.nodes[2]
    for published in (await stage.client.list(RESOURCESLICES)).items:
        if published.spec.node_name == last:
            await stage.client.delete(RESOURCESLICES, published.metadata.name)
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template("each"))
    await closed(stage, 1)
    await stage.create(DEPLOYMENTS, workload("web", 4, template="each"))
    await stage.until_running(4)
    await closed(stage, 1, unschedulable=False)
    name = f"deviceclass.resource.kubernetes.io/{stage.site.fleet.device_class}"
    policy = utilization(f'{{"{name}": 25}}', f'{{"{name}": 75}}')
    report = await rescheduled(stage, policy)
    assert [each.destination for each in report.plan.moves] == [stage.site.nodes[1]]
    await stage.until_running(4)
    assert (await places(stage))[last] == 0
    assert (await rescheduled(stage, policy)).evicted == 0


@three
async def test_a_unit_that_a_budget_splits_stays(stage: Stage) -> None:
    """Scenario 11: two pods on one held claim, of which one may be missing."""
    await held(stage, 2)
    await stage.create(BUDGETS, budget("train", maxUnavailable=1))
    await stage.clock.sleep(2)
    report = await rescheduled(stage, utilization(*CPU, evictor="{moveHeldClaims: WholeUnit}"))
    assert report.evicted == 0
    train = {why for name, why in reasons(report.plan).items() if name.startswith("train-")}
    assert train <= {Ground.UNIT, Ground.BUDGET_SPENT}
    assert train


@three
async def test_a_whole_unit_moves_with_its_devices(stage: Stage) -> None:
    """Scenario 12: both pods and their device are on another node, and no taint stays."""
    await held(stage, 2)
    report = await rescheduled(stage, utilization(*CPU, evictor="{moveHeldClaims: WholeUnit}"))
    assert report.evicted == 2
    await stage.until_running(5)
    found = await places(stage, "train")
    assert found[stage.site.nodes[0]] == 0
    assert sorted(found.values()) == [0, 0, 2]
    await stage.until(lambda: is_held(stage), "the claim is held again")
    assert [await taints(stage, index) for index in range(3)] == [[], [], []]


@three
async def test_a_dry_run_writes_nothing(stage: Stage) -> None:
    await held(stage, 1)
    counting = CountingTransport(stage.site.connection(PEOPLE))
    policy = utilization(*CPU, evictor="{moveHeldClaims: WholeUnit}")
    assert (await runner(stage, policy, counting).plan()).moves
    assert {request.partition(" ")[0] for request in counting.requests} == {"GET"}


WORN = {"key": "example.com/worn", "value": "yes", "effect": "NoSchedule"}


@three
async def test_pods_leave_a_node_that_turned_bad_with_their_claims(stage: Stage) -> None:
    """Two with a held claim, one with a claim of its own; the pods without claims stay."""
    await held(stage, 2)
    await closed(stage, 1, 2)
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template("each"))
    await stage.create(DEPLOYMENTS, workload("web", 1, template="each"))
    await stage.until_running(6)
    await closed(stage, 1, 2, unschedulable=False)
    first = stage.site.nodes[0]
    await stage.site.patch_node(first, {"spec": {"taints": [WORN]}})
    report = await rescheduled(stage, LEAVE)
    assert report.evicted == 3
    await stage.until_running(6)
    assert (await places(stage, "web"))[first] == (await places(stage, "train"))[first] == 0
    assert (await places(stage, "filler"))[first] == 3
    assert await taints(stage) == [(WORN["key"], "yes")]
    assert (await rescheduled(stage, LEAVE)).plan.moves == ()
