"""What the caches find by their indexes."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from kube_in_process.options import Preset

from claimctl.controller.caches.informers import Caches
from claimctl.controller.keys import ClaimKey, GroupKey, WorkloadKey
from claimctl.kube.clock import LoopClock
from claimctl.wire.ordinals import LEADER_WORKER_SET, STATEFUL_SET, Ordinal
from tests.support.builders import CLAIM, NAMESPACE, NOW
from tests.support.counting_server import CountingServer, pod_body, server
from tests.unit.controller.cluster import filled, furnish

TRAIN = WorkloadKey("apps", "Deployment", NAMESPACE, "train")
ELSEWHERE = "default"


def furnished() -> CountingServer:
    """A cluster where the claim is reserved for a Deployment, whose pods share it in a PodGroup."""
    made = server(Preset.POD_GROUPS, kubernetes_version=(1, 37))
    furnish(made)
    group: dict[str, Any] = {"schedulingGroup": {"podGroupName": "gang"}}
    change = {"spec": {"template": {"spec": group}}}
    made.admin.patch("deployments", NAMESPACE, "train", change)
    spec = made.admin.get("deployments", NAMESPACE, "train")["spec"]
    spec["template"]["spec"] = pod_body("template")["spec"]
    made.create(
        "deployments", {"metadata": {"name": "alone", "namespace": NAMESPACE}, "spec": spec}
    )
    return made


async def test_the_workloads_of_a_group_are_those_whose_templates_name_it() -> None:
    caches = await filled(furnished())
    found = caches.workloads_in(GroupKey(NAMESPACE, "gang"))
    assert [key for key, _ in found] == [TRAIN]
    assert list(caches.workloads_in(GroupKey("default", "gang"))) == []
    assert list(caches.workloads_in(GroupKey(NAMESPACE, ""))) == []


async def test_a_claim_and_a_workload_have_their_reservations_and_pods() -> None:
    caches = await filled(furnished())
    key = ClaimKey(NAMESPACE, CLAIM)
    assert [each.metadata.name for each in caches.reservations_of(key)] == ["train-slice"]
    assert [each.metadata.name for each in caches.reservations_for(TRAIN)] == ["train-slice"]
    assert [each.metadata.name for each in caches.pods_of(key)] == ["train-1"]
    assert caches.reservations_of(ClaimKey("default", CLAIM)) == ()
    assert caches.pods_of(ClaimKey(NAMESPACE, "other")) == ()


async def test_a_pod_of_an_ordinal_counts_by_its_name_if_it_has_no_sticky_claim() -> None:
    made = furnished()
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "uid": "s", "controller": True}
    for name, above in (("serve-1", "serve"), ("serve-1-2", "serve-1"), ("other-1", "serve")):
        body = pod_body(name)
        body["metadata"]["ownerReferences"] = [{**owner, "name": above}]
        made.create("pods", body)
    caches = await filled(made)

    def found(workload: tuple[str, str], name: str, ordinal: Ordinal) -> list[str]:
        key = WorkloadKey(*workload, NAMESPACE, name)
        return [pod.metadata.name for pod in caches.pods_of_ordinal(key, ordinal)]

    assert found(STATEFUL_SET, "serve", Ordinal(1)) == ["serve-1"]
    assert found(LEADER_WORKER_SET, "serve", Ordinal(1, 0)) == ["serve-1"]
    assert found(LEADER_WORKER_SET, "serve", Ordinal(1, 2)) == ["serve-1-2"]
    assert found(LEADER_WORKER_SET, "serve", Ordinal(2, 0)) == []
    # its name is right, and its controller is another one
    assert found(STATEFUL_SET, "other", Ordinal(1)) == []


async def test_a_pod_whose_status_loses_a_claim_is_still_one_of_its_pods() -> None:
    made, key = server(), ClaimKey(NAMESPACE, "train-gpu")
    body = pod_body("train")
    body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "gpus"}]
    made.create("pods", body)
    for named in ([{"name": "gpu", "resourceClaimName": "train-gpu"}], None):
        change = {"status": {"resourceClaimStatuses": named}}
        made.admin.patch("pods", NAMESPACE, "train", change, "status")
        if named:
            caches = Caches(made.client, LoopClock(NOW), Random(0))
            follows = asyncio.create_task(caches.pods.run())
            await caches.pods.wait_synced()
    version = made.admin.get("pods", NAMESPACE, "train")["metadata"]["resourceVersion"]
    assert await caches.pods.probes.catch_up(version, 10)
    follows.cancel()
    await asyncio.gather(follows, return_exceptions=True)
    assert [each.metadata.resource_version for each in caches.pods_of(key)] == [version]


async def test_the_drivers_on_a_node_are_those_of_a_claim_or_of_all_claims_of_a_namespace() -> None:
    made = furnished()
    for name, driver, node in (("a", "gpu", "node-0"), ("b", "nic", "node-0"), ("c", "fpga", "")):
        body = allocated(name, driver, node)
        made.create("resourceclaims", body)
        made.admin.patch("resourceclaims", ELSEWHERE, name, body, "status")
    caches = await filled(made)
    expected = {
        ClaimKey(ELSEWHERE, "a"): {"gpu"},
        ClaimKey(ELSEWHERE, "c"): set(),
        ClaimKey(ELSEWHERE, "gone"): set(),
        ClaimKey(ELSEWHERE, ""): {"gpu", "nic"},
        ClaimKey("other", ""): set(),
    }
    assert {key: caches.drivers_on(key, "node-0") for key in expected} == expected
    assert caches.drivers_on(ClaimKey(ELSEWHERE, "a"), "node-1") == set()


def allocated(name: str, driver: str, node: str) -> dict[str, Any]:
    """A claim with a device of the driver: of the node, or of the network if that is ''."""
    result = {"request": "gpu", "driver": driver, "pool": name, "device": "d-0"}
    allocation: dict[str, Any] = {"devices": {"results": [result]}}
    if node:
        named = {"key": "metadata.name", "operator": "In", "values": [node]}
        allocation["nodeSelector"] = {"nodeSelectorTerms": [{"matchFields": [named]}]}
    exactly = {"deviceClassName": "gpu.example.com"}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    metadata = {"name": name, "namespace": ELSEWHERE}
    return {"metadata": metadata, "spec": spec, "status": {"allocation": allocation}}
