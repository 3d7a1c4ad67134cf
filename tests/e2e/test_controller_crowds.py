"""What one tenant does to its own pods and claims takes no time from anybody else's."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.cli.formats import Output
from claimctl.commands.claims.ended_pods import state_ended
from claimctl.commands.claims.explanation import explain
from claimctl.commands.claims.release_request import ReleaseWanted
from claimctl.wire.limits import TEN_YEARS
from claimctl.wire.pods import Pod
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    NAMESPACES,
    PODS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
)
from tests.e2e import manifests
from tests.e2e.harness import HOLD_136, NAMESPACE, Stage
from tests.e2e.unreliable_transport import UnreliableTransport
from tests.support.spoiling import Spoiling

pytestmark = pytest.mark.cluster(HOLD_136)

CROWD = 1100
"""More pods than a status names."""
SOON = 40.0
"""Seconds within which a release ends that waits for the Lease, and for no grace."""
FOR_EVER = 2_147_483_647


async def held(stage: Stage, name: str = "train", claim: str = "slice") -> None:
    """A Deployment of one pod that holds a claim made from a template."""
    await stage.create(DEPLOYMENTS, manifests.deployment(name, 1, claim))
    body = manifests.reservation(
        f"{name}-{claim}", workload=name, claim=claim, resourceClaimTemplateName="template"
    )
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_condition("Reserved", "True", "Reserved", name=f"{name}-{claim}")


async def crowd(stage: Stage, claim: str) -> None:
    """Many pods of a claim are made on nodes that do not exist, and are deleted by force."""
    for number in range(CROWD if stage.cluster is not None else CROWD // 10):
        used = [{"name": "c", "resourceClaimName": claim}]
        spec: dict[str, Any] = {
            "containers": [{"name": "main", "image": "i"}],
            "nodeName": f"fake-{number}",
            "terminationGracePeriodSeconds": 86_400,
            "resourceClaims": used,
        }
        name = f"crowd-{number}"
        await stage.create(PODS, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})
        await stage.site.force_delete(name)


async def next_leader(stage: Stage, before: UnreliableTransport) -> None:
    """The leader has noted a checkpoint. Then it dies, and another process takes over."""
    await stage.clock.sleep(90)
    before.cut_off()
    await stage.kill("one")
    await stage.started("two", checkpoint=True)


@pytest.mark.long
async def test_many_pods_of_one_claim_vanish_and_another_claim_is_free_at_once(
    stage: Stage,
) -> None:
    transport = UnreliableTransport(stage.connect())
    await stage.started("one", transport=transport, checkpoint=True)
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    for name, claim in (("evil", "piece"), ("train", "slice")):
        await held(stage, name, claim)
    await crowd(stage, "piece")
    await stage.delete(DEPLOYMENTS, "evil")
    await next_leader(stage, transport)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released(within=SOON)
    await stage.quiet(400)
    assert await stage.allocated("piece")


@pytest.mark.long
async def test_an_unreadable_claim_of_a_tenant_costs_the_next_leader_no_grace(
    stage: Stage,
) -> None:
    spoiling = Spoiling(stage.connect())
    spoiling.spoil("resourceclaims", "bad")
    transport = UnreliableTransport(spoiling)
    await stage.started("one", transport=transport, checkpoint=True)
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    await stage.client.create(NAMESPACES, {"metadata": {"name": "evil"}})
    body = {**manifests.claim("bad"), "metadata": {"name": "bad", "namespace": "evil"}}
    await stage.client.create(RESOURCECLAIMS, body, "evil")
    await held(stage)
    await next_leader(stage, transport)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released(within=SOON)


async def gone_for_ever(stage: Stage) -> Pod:
    """A pod that its kubelet would not end in 68 years is deleted by force, and its Deployment."""
    await stage.create(RESOURCECLAIMTEMPLATES, manifests.claim_template())
    body = manifests.deployment()
    body["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = FOR_EVER
    await stage.create(DEPLOYMENTS, body)
    reserving = manifests.reservation(resourceClaimTemplateName="template")
    await stage.create(CLAIMRESERVATIONS, reserving)
    await stage.until_running(1)
    await stage.until_condition("Reserved", "True", "Reserved")
    (pod,) = await stage.running()
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.site.force_delete(pod.metadata.name)
    await stage.delete(DEPLOYMENTS, "train")
    return pod


async def recorded(stage: Stage) -> bool:
    statuses = [one.status for one in await stage.reservations()]
    graces = [
        ghost.termination_grace_period_seconds
        for status in statuses
        for ghost in status.force_deleted_pods
    ]
    return graces == [TEN_YEARS]


@pytest.mark.core
async def test_a_pod_that_nothing_ends_keeps_its_device_until_somebody_says_it_has_ended(
    stage: Stage,
) -> None:
    await stage.started()
    pod = await gone_for_ever(stage)
    await stage.until(lambda: recorded(stage), "the status is accepted")
    await stage.quiet(1000)
    assert await stage.allocated()
    found = await explain(stage.client, NAMESPACE, "slice", stage.clock.now())
    name = pod.metadata.name
    wanted = ReleaseWanted("slice", False, None, Output.TABLE, pod_has_ended=name)
    assert await state_ended(stage.client, found, wanted) == 0
    await stage.until_released()
