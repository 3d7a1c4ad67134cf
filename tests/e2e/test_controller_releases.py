"""The same reservations on every Kubernetes minor version from 1.32 to 1.37."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.wire.base import to_plain
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DEPLOYMENTS,
    PODGROUPS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
)
from tests.e2e import manifests
from tests.e2e.harness import DEVICE_CLASS, HOLD_136, NewStage, Stage
from tests.e2e.scenes import hold_for_deployment

VERSIONS = {(1, 32): "v1beta1", (1, 33): "v1beta2"}
"""What is preferred of resource.k8s.io; v1 from 1.34 on."""


def hold(minor: int) -> ClusterOptions:
    return ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, minor))


def claim(version: str, name: str = "slice") -> dict[str, Any]:
    body = manifests.claim(name)
    if version == "v1beta1":
        body["spec"]["devices"]["requests"] = [{"name": "gpu", "deviceClassName": DEVICE_CLASS}]
    return body


@pytest.mark.core
@pytest.mark.parametrize("minor", [32, 33, 34, 35, 36, 37])
async def test_a_claim_is_held_through_idle_time_and_released_at_the_end(
    new_stage: NewStage, minor: int
) -> None:
    version = VERSIONS.get((1, minor), "v1")
    async with new_stage(hold(minor)) as stage:
        stage.client.use_version(RESOURCECLAIMS.group, version)
        manager = await stage.started()
        assert manager.detection is not None
        assert manager.detection.dialect == "hold"
        await stage.create(RESOURCECLAIMS, claim(version))
        await stage.create(DEPLOYMENTS, manifests.deployment(replicas=3, reserve="*"))
        await stage.until_running(3)
        await stage.until_condition("Reserved", "True", "Reserved")
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
        await stage.until_listed("deployments/train")
        await stage.quiet(20)
        assert await stage.allocated()
        await stage.delete(DEPLOYMENTS, "train")
        await stage.until_released()


@pytest.mark.parametrize(("minor", "stays"), [(32, True), (33, True), (34, False), (36, False)])
async def test_a_withdrawn_hold_leaves_the_claim_to_pods_that_kcm_will_remove(
    new_stage: NewStage, minor: int, stays: bool
) -> None:
    """Before 1.34, KCM would not look at the claim again after an outage."""
    version = VERSIONS.get((1, minor), "v1")
    async with new_stage(hold(minor)) as stage:
        stage.client.use_version(RESOURCECLAIMS.group, version)
        await stage.started()
        await stage.create(RESOURCECLAIMS, claim(version))
        await stage.create(DEPLOYMENTS, manifests.deployment(replicas=2))
        await stage.create(CLAIMRESERVATIONS, manifests.reservation())
        await stage.until_running(2)
        await stage.until_condition("Reserved", "True", "Reserved")
        thing = {"apiGroup": "example.com", "resource": "things", "name": "x", "uid": "x"}
        await stage.write_list([*map(to_plain, (await stage.claim()).status.reserved_for), thing])
        await stage.until_condition("Consistent", "False", "UnknownReferences")
        await stage.delete(CLAIMRESERVATIONS, "train-slice")
        if stays:
            await stage.quiet(20)
            assert "deployments/train" in await stage.references()
            await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
            await stage.until_listed("things/x")
        await stage.until(lambda: stage.gone(CLAIMRESERVATIONS, "train-slice"), "it is withdrawn")
        pods = [f"pods/{pod.metadata.name}" for pod in await stage.running()]
        assert set(await stage.references()) == {*pods, "things/x"}
        assert stays or len(pods) == 2


@pytest.mark.parametrize("minor", [32, 33])
async def test_a_claim_is_made_from_a_template_in_the_version_that_is_served(
    new_stage: NewStage, minor: int
) -> None:
    version = VERSIONS[1, minor]
    async with new_stage(hold(minor)) as stage:
        stage.client.use_version(RESOURCECLAIMS.group, version)
        template = claim(version, "template")
        body = {"metadata": template["metadata"], "spec": {"spec": template["spec"]}}
        await stage.create(RESOURCECLAIMTEMPLATES, body)
        await stage.started()
        body = manifests.reservation(resourceClaimTemplateName="template")
        await stage.create(CLAIMRESERVATIONS, body)
        await stage.create(DEPLOYMENTS, manifests.deployment(replicas=1))
        await stage.until_running(1)
        await stage.until_condition("Reserved", "True", "Reserved")


@pytest.mark.core
@pytest.mark.cluster(HOLD_136)
async def test_three_pods_and_a_hold_when_the_pods_are_gone_the_list_ends_empty(
    stage: Stage,
) -> None:
    await stage.started()
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(replicas=3, reserve="*"))
    await stage.until_running(3)
    pods = [f"pods/{pod.metadata.name}" for pod in await stage.running()]
    await stage.until_listed("deployments/train", *pods)
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released()
    writers = [
        revision.actor
        for revision in await stage.site.history()
        if revision.plural == "resourceclaims" and _deallocates(revision)
    ]
    assert writers == [stage.site.account]


@pytest.mark.cluster(HOLD_136)
async def test_a_kcm_older_than_its_api_server_is_found_out_by_what_it_leaves(stage: Stage) -> None:
    await stage.started()
    await hold_for_deployment(stage, 3)
    await stage.site.pause("resourceclaim-controller")
    for replicas, patience in ((2, 30.0), (1, 5.0)):
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": replicas}})
        await stage.until_running(replicas)
        pods = [f"pods/{pod.metadata.name}" for pod in await stage.running()]
        before = stage.clock.monotonic()
        await stage.until_listed("deployments/train", *pods)
        assert stage.clock.monotonic() - before < patience


@pytest.mark.cluster(hold(33))
async def test_a_server_upgraded_under_the_controller_is_followed_in_its_new_version(
    stage: Stage,
) -> None:
    stage.client.use_version(RESOURCECLAIMS.group, "v1beta2")
    manager = await stage.started()
    await hold_for_deployment(stage)
    cluster = stage.embedded
    newer = ClusterOptions(preset=Preset.POD_GROUPS, kubernetes_version=(1, 37))
    cluster.switch(newer.features())
    stage.client.use_version(RESOURCECLAIMS.group, "v1")
    await stage.clock.sleep(1500)
    assert manager.detection is not None
    assert manager.detection.dialect == "podgroup"
    assert manager.detection.groups_version == "v1beta1"
    await stage.delete(DEPLOYMENTS, "train")
    await stage.until_released()
    assert (await stage.client.list(PODGROUPS)).items == ()


@pytest.mark.cluster(ClusterOptions(preset=Preset.POD_GROUPS))
async def test_a_cluster_whose_gate_is_off_is_held_in_the_hold_way(stage: Stage) -> None:
    cluster = stage.embedded
    cluster.switch(replace(cluster.features, api_group_claims=False))
    manager = await stage.started()
    assert manager.detection is not None
    assert manager.detection.dialect == "hold"
    assert "drops spec.resourceClaims" in " ".join(manager.detection.reasons)


def _deallocates(revision: Any) -> bool:
    before = b'"allocation"' in (revision.previous or b"")
    return before and b'"allocation":' not in revision.data.replace(b'f:allocation":', b"")


async def test_a_reservation_that_names_itself_holds_for_no_longer_than_the_cluster_allows(
    new_stage: NewStage,
) -> None:
    async with new_stage(HOLD_136) as stage:
        await stage.started(max_seconds_without_pods=60.0)
        await stage.create(RESOURCECLAIMS, manifests.claim())
        await stage.create(DEPLOYMENTS, manifests.deployment(replicas=1))
        await stage.until_running(1)
        body = manifests.reservation("own", reallocateTimeoutSeconds=None)
        body["spec"]["workloadRef"] = {
            "apiGroup": "claimctl.io",
            "kind": "ClaimReservation",
            "name": "own",
        }
        await stage.create(CLAIMRESERVATIONS, body)
        await stage.until_condition("Reserved", "True", "Reserved", name="own")
        await stage.quiet(120)
        assert await stage.allocated()
        await stage.delete(DEPLOYMENTS, "train")
        await stage.until_running(0)
        await stage.quiet(40)
        assert await stage.allocated()
        await stage.until_released()
        await stage.until_condition("Released", "True", "UnusedTooLong", name="own")
