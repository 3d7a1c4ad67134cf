"""The controller in the dialect `hold`, where it lists the workload beside the pods."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from claimctl.reservation.facts.pods import is_finished
from claimctl.reservation.facts.references import uids_written_by
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    JOBS,
    PODS,
    RESOURCECLAIMS,
    STATEFULSETS,
)
from tests.e2e import manifests
from tests.e2e.harness import HOLD_134, HOLD_136, NAMESPACE, Stage
from tests.e2e.scenes import hold_for_deployment

pytestmark = pytest.mark.cluster(HOLD_136)

both = pytest.mark.parametrize("options", [HOLD_134, HOLD_136], ids=["1.34", "1.36"])


async def pod_names(stage: Stage) -> tuple[str, ...]:
    return tuple(f"pods/{pod.metadata.name}" for pod in await stage.running())


@pytest.mark.core
@pytest.mark.long
@both
async def test_a_hold_survives_idle_time_and_pods_that_come_and_go(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, 2, idle_timeout_seconds="20")
    before = (await stage.claim()).status.allocation
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_listed("deployments/train")
    await stage.clock.sleep(8)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 2}})
    await stage.until_running(2)
    assert (await stage.claim()).status.allocation == before
    await stage.until_listed("deployments/train", *await pod_names(stage))
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_released(within=120)
    await stage.until_condition("Released", "True", "Idle")


@pytest.mark.core
@pytest.mark.long
@both
async def test_a_finished_pod_beside_running_ones_gets_a_tombstone_and_no_storm(
    stage: Stage,
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment("service", replicas=1))
    await stage.until_running(1)
    await stage.create(JOBS, manifests.job(pods=1, seconds=3, reserve="slice"))
    await stage.create(CLAIMRESERVATIONS, manifests.reservation("service", workload="service"))

    async def buried() -> bool:
        listed = await stage.references()
        held = "deployments/service" in listed
        return held and any(each.startswith("finishedpods/train-") for each in listed)

    await stage.until(buried, "the finished pod has a tombstone beside the hold")
    await stage.quiet(20)
    listed = await stage.references()
    assert "deployments/service" in listed
    assert any(each.startswith("finishedpods/train-") for each in listed)
    assert not any(each.startswith("pods/train-") for each in listed)
    before = (await stage.claim()).metadata.resource_version
    await stage.quiet(30)
    assert (await stage.claim()).metadata.resource_version == before
    await stage.delete(JOBS, "train")
    await stage.until_listed("deployments/service", *await pod_names(stage))


@pytest.mark.core
@both
async def test_a_deleted_pod_that_a_finalizer_keeps_gets_no_tombstone_and_no_storm(
    stage: Stage,
) -> None:
    """kube-controller-manager removes its entry, and adds no pod that is being deleted."""
    await stage.started()
    await hold_for_deployment(stage, 2)
    leaving = (await stage.running())[0].metadata.name
    finalizers = {"metadata": {"finalizers": ["example.com/slow"]}}
    await stage.patch(PODS, leaving, finalizers)
    await stage.delete(PODS, leaving)

    async def left() -> bool:
        pod = await stage.client.get(PODS, leaving, NAMESPACE)
        running = {each.metadata.name for each in await stage.running()} - {leaving}
        expected = {"deployments/train", *(f"pods/{name}" for name in running)}
        listed = await stage.references()
        return is_finished(pod) and len(running) == 2 and set(listed) == expected

    await stage.until(left, "only the hold and the two other pods are listed")
    before = (await stage.claim()).metadata.resource_version
    await stage.quiet(15)
    assert (await stage.claim()).metadata.resource_version == before
    await stage.patch(PODS, leaving, {"metadata": {"finalizers": None}})


@pytest.mark.core
@both
async def test_a_job_that_has_ended_gives_its_claim_back_while_its_pods_are_kept(
    stage: Stage,
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(JOBS, manifests.job(pods=3, seconds=4, reserve="*"))
    await stage.until_some_run()
    await stage.until_condition("Reserved", "True", "Reserved")
    await stage.until_released()
    assert len((await stage.client.list(PODS, NAMESPACE)).items) == 3


@both
async def test_a_stateful_set_keeps_its_device_through_a_restart(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(STATEFULSETS, manifests.stateful_set(replicas=1, reserve="*"))
    await stage.until_listed("statefulsets/train", "pods/train-0")
    await stage.until_running(1)
    before = (await stage.claim()).status.allocation
    old = (await stage.running())[0].metadata.uid
    await stage.delete(PODS, "train-0")

    async def replaced() -> bool:
        return any(pod.metadata.uid != old for pod in await stage.running())

    await stage.until(replaced, "the pod is replaced")
    await stage.until_listed("statefulsets/train", "pods/train-0")
    assert (await stage.claim()).status.allocation == before
    await stage.delete(STATEFULSETS, "train")
    await stage.until_released()


@pytest.mark.core
@both
async def test_removing_the_annotation_lets_go_and_the_pods_keep_their_references(
    stage: Stage,
) -> None:
    await stage.started()
    await hold_for_deployment(stage, 2)
    await stage.until_listed("deployments/train", *await pod_names(stage))
    await stage.patch(
        DEPLOYMENTS, "train", {"metadata": {"annotations": {"claimctl.io/reserve": None}}}
    )
    await stage.until_listed(*await pod_names(stage))

    async def no_reservation() -> bool:
        return not await stage.reservations()

    await stage.until(no_reservation, "the reservation is gone")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.until_released()


@pytest.mark.core
async def test_a_force_deleted_pod_counts_for_its_grace(stage: Stage) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=1))
    grace = round(stage.scaled(300))
    body = manifests.reservation(idleTimeoutSeconds=1, forceDeletedPodGraceSeconds=grace)
    await stage.create(CLAIMRESERVATIONS, body)
    await stage.until_running(1)
    (pod,) = await stage.running()
    await stage.until_condition("Reserved", "True", "Reserved")
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.site.force_delete(pod.metadata.name)
    await stage.until_condition("Released", "False", "ForceDeletedPods")
    (reservation,) = await stage.reservations()
    (ghost,) = reservation.status.force_deleted_pods
    assert (ghost.uid, ghost.node_name) == (pod.metadata.uid, pod.spec.node_name)
    assert ghost.boot_id
    await stage.clock.sleep(stage.scaled(200))
    assert await stage.allocated()
    await stage.until_released(within=150)


async def test_a_reboot_of_its_node_ends_a_ghost_at_once(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, idle_timeout_seconds="1")
    (pod,) = await stage.running()
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.site.force_delete(pod.metadata.name)
    await stage.until_condition("Released", "False", "ForceDeletedPods")
    await stage.site.reboot(pod.spec.node_name)
    await stage.until_released(within=20)


async def test_another_machine_under_the_name_of_its_node_ends_no_ghost(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, idle_timeout_seconds="1")
    (pod,) = await stage.running()
    await stage.site.lose(pod.spec.node_name)
    await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
    await stage.site.force_delete(pod.metadata.name)
    await stage.until_condition("Released", "False", "ForceDeletedPods")
    other = {"machineID": "other", "systemUUID": "other", "bootID": "other"}
    await stage.site.patch_node(pod.spec.node_name, {"status": {"nodeInfo": other}}, "status")
    await stage.quiet(60)
    assert await stage.condition("Released") == ("False", "ForceDeletedPods")
    assert await stage.allocated()


async def test_nothing_is_written_when_nothing_changes(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, 3)
    await stage.quiet(60)
    before = max((each.number for each in await stage.site.history()), default=0)
    await stage.quiet(600)
    written = {each.plural for each in await stage.site.history(before)}
    # kubelets of real nodes report, and nobody but them may write nodes here
    assert written <= {"leases", "nodes"}


@both
async def test_a_hold_leaves_beside_the_reference_of_another_client(stage: Stage) -> None:
    """The claim stays with the other client, whatever a user writes into the managedFields."""
    await stage.started()
    await hold_for_deployment(stage, 2)
    await stage.until_condition("Reserved", "True", "Reserved")
    other = {"apiGroup": "example.com", "resource": "vms", "name": "vm", "uid": "uid-vm"}
    claim = await stage.claim()
    listed = [
        {"resource": each.resource, "name": each.name, "uid": each.uid}
        | ({"apiGroup": each.api_group} if each.api_group else {})
        for each in claim.status.reserved_for
    ]
    await stage.write_list([*listed, other])
    key = "k:" + json.dumps({"uid": "uid-vm"}, separators=(",", ":"))
    forged = {
        "manager": "claimctl",
        "operation": "Update",
        "apiVersion": RESOURCECLAIMS.api_version,
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:status": {"f:reservedFor": {key: {}}}},
        "subresource": "status",
    }
    await stage.patch(RESOURCECLAIMS, "slice", {"metadata": {"managedFields": [forged]}})
    assert "uid-vm" in uids_written_by(await stage.claim())
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_listed("vms/vm")
    await stage.quiet(60)
    assert await stage.allocated()


@pytest.mark.parametrize("version", [(1, 36), (1, 38)], ids=["1.36", "1.38"])
@pytest.mark.cluster(HOLD_136)
async def test_finished_pods_take_places_only_where_kcm_lists_them_again(
    stage: Stage, version: tuple[int, int]
) -> None:
    """The loop on finished pods has ended in 1.38 (kubernetes/kubernetes#141276, by its text)."""
    cluster = stage.embedded
    cluster.switch(replace(cluster.features, version=version))
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    body = manifests.job(pods=3, seconds=5, reserve="*", retention_policy="Persistent")
    body["spec"]["completions"] = 9
    await stage.create(JOBS, body)
    await stage.clock.sleep(8)
    await stage.until_running(3)
    names = [name.split("/")[0] for name in await stage.references()]
    assert ("finishedpods" in names) is (version < (1, 38))
    assert cluster.claims.finished_pod_writes < 20
    await stage.until_released()
