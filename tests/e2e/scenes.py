"""The beginning that many scenarios share."""

from __future__ import annotations

from typing import Any

from kube_in_process.habits.presence import Slow

from claimctl.kube.client import Client
from claimctl.wire.base import to_plain
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import DEPLOYMENTS, PODS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import NAMESPACE, Stage

_SLOW = Slow(prepare_seconds=0.0, unprepare_seconds=6.0)
"""So that another pod comes while the driver unprepares."""


async def hold_for_deployment(stage: Stage, replicas: int = 1, **annotations: str) -> None:
    """Create a claim and an annotated Deployment; wait until its pods run and claimctl holds it.

    The claim is ``slice``, the Deployment ``train``, and its ClaimReservation ``train-slice``.
    """
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.deployment(replicas=replicas, reserve="*", **annotations)
    await stage.create(DEPLOYMENTS, body)
    await stage.until_running(replicas)
    await stage.until_condition("Reserved", "True", "Reserved")


async def list_ahead(stage: Stage, claim: str = "slice", by: str = "claimctl") -> None:
    """List the pending pods as claimctl does before the scheduler, which it does for big starts.

    Args:
        by: who lists them (the field manager). A scheduler that is killed then never binds them.
    """
    found = await stage.claim(claim)
    pods = (await stage.client.list(PODS, NAMESPACE)).items
    listed = [to_plain(each) for each in found.status.reserved_for]
    for pod in pods:
        if not pod.spec.node_name and pod.metadata.name.startswith("train"):
            meta = pod.metadata
            listed.append({"resource": "pods", "name": meta.name, "uid": meta.uid})
    client = Client(stage.connect(), stage.clock, field_manager=by)
    client.use_version(RESOURCECLAIMS.group, stage.site.fleet.resource_api.partition("/")[2])
    meta = found.metadata
    await client.merge_patch(
        RESOURCECLAIMS,
        ObjectMeta(name=claim, namespace=meta.namespace, resource_version=meta.resource_version),
        {"status": {"reservedFor": listed}},
        subresource="status",
    )


def pod_on(node: str, name: str = "other", claim: str = "slice") -> dict[str, Any]:
    """A pod without an owner that names the claim and runs on one node only."""
    spec = manifests.deployment(claim=claim)["spec"]["template"]["spec"]
    there = {"nodeSelector": {"kubernetes.io/hostname": node}}
    return {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": {**spec, **there}}


async def come_while_unprepared(stage: Stage) -> None:
    """Hold a claim; a pod comes while its devices are unprepared for the last one, and runs on."""
    await stage.started()
    await hold_for_deployment(stage, 1)
    await stage.site.driver.take_up(_SLOW)
    (old,) = await stage.running()
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.clock.sleep(_SLOW.unprepare_seconds / 3)
    await stage.create(PODS, pod_on(old.spec.node_name, "late"))
    await stage.until_running(1)
    await stage.clock.sleep(_SLOW.unprepare_seconds + 3)


def with_claim(body: dict[str, Any], claim: str) -> dict[str, Any]:
    """The workload with one more claim for its pods."""
    spec = body["spec"]["template"]["spec"]
    spec["resourceClaims"].append({"name": claim, "resourceClaimName": claim})
    spec["containers"][0]["resources"]["claims"].append({"name": claim})
    return body
