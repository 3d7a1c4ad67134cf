"""Pods that the scheduler has placed and that wait until a driver has bound their devices.

Such a pod is bound with the claims as they are then, to the node that was chosen long before.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from claimctl.wire.pods import Pod
from claimctl.wire.reservations import REALLOCATE_ANNOTATION
from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, PODS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.drivers import FAILED, READY, Fabric, fabric, pool_of
from tests.e2e.harness import HOLD_136, NAMESPACE, PODGROUP_136, Stage
from tests.e2e.scenes import list_ahead, pod_on, with_claim

pytestmark = pytest.mark.cluster(replace(HOLD_136, nodes=2))

TIMES: dict[str, Any] = {"binding_seconds": 2.0, "settle_seconds": 2.0}
LONG = 8.0
"""Seconds after which claimctl would have released the claim of any other pod."""


async def waiting(stage: Stage) -> list[Pod]:
    """The pods of the Deployment that are not bound."""
    pods = (await stage.client.list(PODS, NAMESPACE)).items
    return [pod for pod in pods if pod.metadata.name.startswith("train") and not pod.spec.node_name]


async def waits(stage: Stage) -> bool:
    return await waiting(stage) != []


async def held_on(stage: Stage, node: str) -> None:
    """A Deployment without pods holds ``slice`` on a node; its pods want the claim ``fab``, too."""
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.deployment(replicas=0)
    await stage.create(DEPLOYMENTS, with_claim(body, "fab"))
    reservation = manifests.reservation(retentionPolicy="Persistent")
    await stage.create(CLAIMRESERVATIONS, reservation)
    await stage.create(PODS, pod_on(node, "first"))
    await stage.until_listed("deployments/train", "pods/first")
    await stage.delete(PODS, "first")
    await stage.until_listed("deployments/train")


async def unschedulable(stage: Stage) -> bool:
    return any(
        each.reason == "Unschedulable"
        for pod in await waiting(stage)
        for each in pod.status.conditions
    )


async def given_up(stage: Stage) -> bool:
    """Whether the claim has ever lost its devices."""
    versions = [each for each in await stage.site.history() if each.plural == "resourceclaims"]
    had = [bool((each.object().get("status") or {}).get("allocation")) for each in versions]
    return (True, False) in pairwise(had)


async def allocated(stage: Stage, claim: str) -> None:
    async def holds() -> bool:
        return await stage.allocated(claim)

    await stage.until(holds, f"{claim} is allocated")


async def withdrawn(stage: Stage) -> None:
    """Withdraw the reservation, and wait until the list has nothing but the hold."""
    await stage.delete(CLAIMRESERVATIONS, "train-slice")
    await stage.until_listed("deployments/train")


async def keeps_its_claim(stage: Stage, driver: Fabric, claim: str, node: str, pods: int) -> None:
    """The claim stays while the pods wait, another pod wants it elsewhere, and until they run."""
    place = await pool_of(stage)
    await stage.quiet(LONG)
    assert await pool_of(stage) == place
    await driver.report(claim, READY)
    await stage.until_running(pods)
    assert await pool_of(stage) == place
    assert {pod.spec.node_name for pod in await stage.running()} == {node}


@pytest.mark.core
async def test_pods_that_were_listed_ahead_keep_a_claim_that_is_withdrawn(stage: Stage) -> None:
    here, there = stage.site.nodes
    await stage.started(**TIMES, list_ahead=False)
    async with fabric(stage) as driver:
        await driver.publish(here)
        await held_on(stage, here)
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 1}})
        await stage.until(lambda: waits(stage), "the pod waits for its other claim")
        await list_ahead(stage)
        await stage.create(RESOURCECLAIMS, driver.claim("fab"))
        await allocated(stage, "fab")
        await stage.create(PODS, pod_on(there))
        await withdrawn(stage)
        await keeps_its_claim(stage, driver, "fab", here, 1)


@pytest.mark.core
async def test_a_pod_that_was_unschedulable_once_keeps_a_claim_that_is_to_be_given_up(
    stage: Stage,
) -> None:
    """Its condition says so until it is bound. Only nominatedNodeName tells."""
    here, there = stage.site.nodes
    await stage.started(**TIMES, list_ahead=False)
    async with fabric(stage) as driver:
        await driver.publish(here)
        await stage.create(RESOURCECLAIMS, driver.claim("fab"))
        await held_on(stage, here)
        await stage.cordon(here)
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 1}})
        await stage.until(lambda: unschedulable(stage), "the pod finds no node")
        await stage.cordon(here, unschedulable=False)
        await allocated(stage, "fab")
        (pod,) = await waiting(stage)
        await stage.until_listed("deployments/train", f"pods/{pod.metadata.name}")
        await stage.create(PODS, pod_on(there))
        asked = {REALLOCATE_ANNOTATION: (await stage.claim()).metadata.uid}
        await stage.patch(CLAIMRESERVATIONS, "train-slice", {"metadata": {"annotations": asked}})
        await keeps_its_claim(stage, driver, "fab", here, 1)


@pytest.mark.core
@pytest.mark.parametrize("options", [replace(PODGROUP_136, nodes=2)], ids=["podgroup"])
async def test_pods_of_a_group_keep_a_claim_that_is_withdrawn(stage: Stage) -> None:
    here, there = stage.site.nodes
    await stage.started(**TIMES)
    async with fabric(stage) as driver:
        await driver.publish(here, there)
        await stage.create(RESOURCECLAIMS, driver.claim("slice"))
        await stage.create(CLAIMRESERVATIONS, manifests.reservation(retentionPolicy="Persistent"))
        body = manifests.in_group(manifests.deployment(replicas=2))
        body["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": here}
        await stage.create(DEPLOYMENTS, body)
        await stage.until_listed("podgroups/train", "deployments/train")
        await stage.create(PODS, pod_on(there))
        await withdrawn(stage)
        await keeps_its_claim(stage, driver, "slice", here, 2)


async def test_a_held_device_that_cannot_be_bound_is_given_up(stage: Stage) -> None:
    await stage.started(**TIMES, slow_binding_seconds=4.0)
    async with fabric(stage) as driver:
        await driver.publish(*stage.site.nodes, devices=2)
        await stage.create(RESOURCECLAIMS, driver.claim("slice"))
        await stage.create(DEPLOYMENTS, manifests.deployment())
        body = manifests.reservation(reallocateTimeoutSeconds=2)
        await stage.create(CLAIMRESERVATIONS, body)
        await stage.until(lambda: waits(stage), "the pod waits for its driver")
        (pod,) = await waiting(stage)
        await stage.until_listed("deployments/train", f"pods/{pod.metadata.name}")
        await driver.report("slice", FAILED)
        await stage.until(lambda: given_up(stage), "the claim is given up", within=30)
        await allocated(stage, "slice")
        await driver.report("slice", READY)
        await stage.until_running(1)
        await stage.until_condition("Reserved", "True", "Reserved")
