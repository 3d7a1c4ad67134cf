"""Claims of volumes: bound, waited for, provisioned, protected and released."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.components.volumes import PROVISIONER
from kube_in_process.storage.requests import DeleteOptions

from .worlds import HOLD, Object, World

pytestmark = pytest.mark.kube_cluster(HOLD)

WITH_CLASS = replace(HOLD, default_storage_class=True)


def claim(world: World, name: str, size: str = "1Gi", **spec: Any) -> Object:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}}}
    return world.create("persistentvolumeclaims", name, {**asked, **spec})


def volume(world: World, name: str, size: str, **spec: Any) -> Object:
    given = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"]}
    source = {"hostPath": {"path": "/x"}}
    return world.create("persistentvolumes", name, {**given, **source, **spec})


def storage_class(world: World, name: str, **fields: Any) -> Object:
    return world.api.create("storageclasses", {"metadata": {"name": name}, **fields})


def pod(world: World, name: str, claimed: str, **spec: Any) -> Object:
    source = {"persistentVolumeClaim": {"claimName": claimed}}
    return world.pod(name, volumes=[{"name": "v", **source}], **spec)


def phase(world: World, plural: str, name: str) -> str:
    value: str = world.get(plural, name)["status"]["phase"]
    return value


async def test_a_claim_gets_the_smallest_volume_that_suits(world: World) -> None:
    volume(world, "small", "1Gi", storageClassName="a")
    volume(world, "middle", "5Gi", storageClassName="a")
    volume(world, "large", "9Gi", storageClassName="a")
    volume(world, "other", "5Gi", storageClassName="b")
    claim(world, "data", "2Gi", storageClassName="a")
    await world.passes(1)
    stored = world.get("persistentvolumeclaims", "data")
    assert stored["spec"]["volumeName"] == "middle"
    assert stored["status"] == {
        "phase": "Bound",
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "5Gi"},
    }
    assert stored["metadata"]["annotations"] == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    assert phase(world, "persistentvolumes", "middle") == "Bound"
    assert phase(world, "persistentvolumes", "large") == "Available"


@pytest.mark.parametrize(
    ("claimed", "why"),
    [
        ("missing", 'persistentvolumeclaim "missing" not found'),
        ("waiting", "pod has unbound immediate PersistentVolumeClaims"),
    ],
)
async def test_a_pod_waits_for_its_claim_with_the_text_of_the_scheduler(
    world: World, claimed: str, why: str
) -> None:
    """As 1.36.2 says it."""
    claim(world, "waiting")
    pod(world, "p", claimed)
    await world.passes(2)
    assert world.reason("p") == f"Unschedulable: 0/3 nodes are available: {why}. not found"
    if claimed == "missing":
        claim(world, "missing")
    volume(world, "first", "1Gi")
    volume(world, "second", "1Gi")
    await world.passes(2)
    assert world.phases("p") == ["Running"]
    if claimed == "waiting":
        text = "no persistent volumes available for this claim and no storage class is set"
        assert world.events("FailedBinding") == [text]


@pytest.mark.kube_cluster(WITH_CLASS)
async def test_a_stateful_set_runs_with_the_default_class(world: World) -> None:
    template = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    policy = {"whenScaled": "Delete"}
    world.workload(
        "statefulsets",
        "db",
        replicas=2,
        volumeClaimTemplates=[template],
        persistentVolumeClaimRetentionPolicy=policy,
    )
    await world.passes(5)
    assert world.phases("db") == ["Running", "Running"]
    assert phase(world, "persistentvolumeclaims", "data-db-1") == "Bound"
    assert len(world.api.list("persistentvolumes")) == 2
    world.api.patch("statefulsets", "default", "db", {"spec": {"replicas": 1}})
    await world.passes(5)
    names = [claim["metadata"]["name"] for claim in world.api.list("persistentvolumeclaims")]
    assert names == ["data-db-0"]
    assert len(world.api.list("persistentvolumes")) == 1
    world.api.delete("statefulsets", "default", "db")
    await world.passes(5)
    assert [
        claim["metadata"]["name"] for claim in world.api.list("persistentvolumeclaims")
    ] == names


async def test_a_claim_waits_for_the_node_of_its_first_pod(world: World) -> None:
    storage_class(world, "late", provisioner=PROVISIONER, volumeBindingMode="WaitForFirstConsumer")
    claim(world, "data", storageClassName="late")
    await world.passes(2)
    assert phase(world, "persistentvolumeclaims", "data") == "Pending"
    assert len(world.events("WaitForFirstConsumer")) == 1
    pod(world, "p", "data")
    await world.passes(2)
    assert world.phases("p") == ["Running"]
    stored = world.get("persistentvolumeclaims", "data")
    chosen = stored["metadata"]["annotations"]["volume.kubernetes.io/selected-node"]
    assert chosen == world.get("pods", "p")["spec"]["nodeName"]


async def test_a_pod_goes_where_its_volume_is(world: World) -> None:
    storage_class(
        world,
        "local",
        provisioner="kubernetes.io/no-provisioner",
        volumeBindingMode="WaitForFirstConsumer",
    )
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}
    terms = {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
    for number in range(3):
        node = f"node-{number}"
        labels = {"metadata": {"labels": {"kubernetes.io/hostname": node}}}
        world.api.patch("nodes", "", node, labels)
    claim(world, "data", storageClassName="local")
    pod(world, "p", "data")
    await world.passes(2)
    assert "3 node(s) didn't find available persistent volumes to bind" in world.reason("p")
    volume(world, "disk", "1Gi", storageClassName="local", nodeAffinity=terms)
    await world.passes(2)
    assert world.get("pods", "p")["spec"]["nodeName"] == "node-1"
    pod(world, "away", "data", nodeSelector={"kubernetes.io/hostname": "node-2"})
    await world.passes(1)
    assert world.reason("away") == (
        "Unschedulable: 0/3 nodes are available: 1 node(s) didn't match PersistentVolume's node "
        "affinity, 2 node(s) didn't match Pod's node affinity/selector. no new claims to "
        "deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for "
        "scheduling."
    )


async def test_nobody_plays_another_provisioner(world: World) -> None:
    storage_class(world, "far", provisioner="far.example.com")
    claim(world, "data", storageClassName="far")
    claim(world, "lost", storageClassName="missing")
    await world.passes(2)
    assert phase(world, "persistentvolumeclaims", "data") == "Pending"
    assert world.events("ExternalProvisioning")[0].startswith("Waiting for a volume to be created")
    assert world.events("ProvisioningFailed") == ['storageclass.storage.k8s.io "missing" not found']


async def test_a_pod_is_not_bound_before_its_volumes(world: World) -> None:
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    storage_class(world, "far", provisioner="far.example.com", **late)
    claim(world, "data", storageClassName="far")
    pod(world, "p", "data")
    await world.passes(10)
    assert "nodeName" not in world.get("pods", "p")["spec"]
    await world.passes(600)
    assert world.reason("p") == (
        'SchedulerError: running PreBind plugin "VolumeBinding": binding volumes: context '
        "deadline exceeded"
    )
    node = world.get("persistentvolumeclaims", "data")["metadata"]["annotations"]
    assert node["volume.kubernetes.io/selected-node"].startswith("node-")


async def test_what_is_used_stays_and_a_volume_is_released(world: World) -> None:
    volume(world, "disk", "1Gi")
    claim(world, "data")
    pod(world, "p", "data")
    await world.passes(2)
    world.api.delete("persistentvolumeclaims", "default", "data")
    world.api.delete("persistentvolumes", "", "disk")
    await world.passes(2)
    assert "deletionTimestamp" in world.get("persistentvolumeclaims", "data")["metadata"]
    pod(world, "late", "data")
    await world.passes(1)
    assert 'persistentvolumeclaim "data" is being deleted' in world.reason("late")
    world.api.delete("pods", "default", "p", DeleteOptions(grace_period_seconds=0))
    await world.passes(2)
    assert world.api.find("persistentvolumeclaims", "default", "data") is None
    assert world.api.find("persistentvolumes", "", "disk") is None


async def test_a_claim_whose_volume_has_gone_is_lost(world: World) -> None:
    volume(world, "disk", "1Gi")
    claim(world, "data")
    await world.passes(1)
    world.api.patch("persistentvolumes", "", "disk", {"metadata": {"finalizers": None}})
    world.api.delete("persistentvolumes", "", "disk")
    await world.passes(1)
    assert phase(world, "persistentvolumeclaims", "data") == "Lost"
    pod(world, "p", "data")
    await world.passes(1)
    lost = 'persistentvolumeclaim "data" bound to non-existent persistentvolume "disk"'
    assert lost in world.reason("p")


@pytest.mark.kube_cluster(WITH_CLASS)
async def test_an_ephemeral_volume_lives_as_long_as_its_pod(world: World) -> None:
    asked = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    source = {"ephemeral": {"volumeClaimTemplate": {"spec": asked}}}
    world.pod("p", volumes=[{"name": "v", **source}])
    await world.passes(2)
    assert world.phases("p") == ["Running"]
    world.api.delete("pods", "default", "p")
    await world.passes(3)
    assert world.api.list("persistentvolumeclaims") == []
    assert world.api.list("persistentvolumes") == []
