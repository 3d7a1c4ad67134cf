"""The installation on an embedded cluster, and what it refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest
from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset

from claimctl.cli.errors import CommandFailed
from claimctl.commands.install.apply import (
    ApplyOutcome,
    Installer,
    available,
    version_of,
    why_waiting,
)
from claimctl.commands.install.components import BASE, Choice, chosen
from claimctl.commands.install.objects import MANAGER
from claimctl.kube.clock import LoopClock
from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient

CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
DEPLOYMENT = ("apps/v1", "Deployment")
WHERE = ("claimctl-system", "claimctl-controller")


def documents(*components: str, namespace: str = "claimctl-system") -> list[Object]:
    """The manifests, without the label of the namespace: Pod Security is not emulated."""
    found = chosen(Choice(components or BASE, namespace, "registry.example.com/claimctl:1"))
    for document in found:
        if document["kind"] == "Namespace":
            document["metadata"]["labels"] = {}
    return found


class InstallWorld:
    def __init__(self, cluster: Cluster) -> None:
        self.client = DocumentClient(cluster.transport(), MANAGER)
        self.told: dict[str, ApplyOutcome] = {}
        self.installer = Installer(cluster.transport(), cluster.clock, self.told.__setitem__)

    async def install(self, found: list[Object]) -> set[ApplyOutcome]:
        self.told.clear()
        await self.installer.check(found)
        await self.installer.apply(found)
        assert len(self.told) == len(found)
        return set(self.told.values())


@pytest.fixture
@asynccontextmanager
async def world() -> AsyncIterator[InstallWorld]:
    cluster = Cluster(ClusterOptions(preset=Preset.PLAIN, nodes=2), LoopClock())
    await cluster.start()
    yield InstallWorld(cluster)
    await cluster.stop()
    assert cluster.failures == []


async def test_an_installation_is_made_repeated_and_changed(world: InstallWorld) -> None:
    assert await world.install(documents()) == {ApplyOutcome.CREATED}
    await world.installer.wait(documents(), 30)
    assert await world.install(documents()) == {ApplyOutcome.UNCHANGED}
    changed = documents()
    changed[-3]["spec"]["replicas"] = 1
    assert changed[-3]["kind"] == "Deployment"
    assert await world.install(changed) == {ApplyOutcome.UNCHANGED, ApplyOutcome.CHANGED}
    assert [name for name, outcome in world.told.items() if outcome is ApplyOutcome.CHANGED] == [
        "Deployment claimctl-system/claimctl-controller"
    ]


async def test_a_dry_run_tells_the_same_and_changes_nothing(world: InstallWorld) -> None:
    await world.install(documents("crds"))
    world.told.clear()
    await world.installer.apply(documents(), dry_run=True)
    outcomes = {name.split()[0]: outcome for name, outcome in world.told.items()}
    assert outcomes["CustomResourceDefinition"] is ApplyOutcome.UNCHANGED
    assert outcomes["Deployment"] is ApplyOutcome.CREATED
    found = await world.client.list(DEPLOYMENT)
    assert found == []


async def test_fields_of_others_stay(world: InstallWorld) -> None:
    await world.install(documents())
    scaled = {"metadata": {"annotations": {"note": "ours"}}}
    await world.client.patch(DEPLOYMENT, *WHERE, scaled)
    await world.install(documents())
    found = await world.client.get(DEPLOYMENT, *WHERE)
    assert found["metadata"]["annotations"]["note"] == "ours"


async def test_a_second_namespace_is_refused(world: InstallWorld) -> None:
    await world.install(documents())
    with pytest.raises(CommandFailed, match=r"is installed in namespace claimctl-system already"):
        await world.install(documents(namespace="gpus"))


async def test_what_helm_installed_is_left_to_helm(world: InstallWorld) -> None:
    await world.install(documents())
    notes = {"meta.helm.sh/release-name": "c", "meta.helm.sh/release-namespace": "gpus"}
    await world.client.patch(DEPLOYMENT, *WHERE, {"metadata": {"annotations": notes}})
    with pytest.raises(CommandFailed, match="use helm upgrade c -n gpus"):
        await world.install(documents())


async def test_older_crds_do_not_replace_newer_ones(world: InstallWorld) -> None:
    newer = documents("crds")
    for each in newer:
        each["metadata"]["labels"]["app.kubernetes.io/version"] = "99.1.0"
    await world.install(newer)
    with pytest.raises(CommandFailed, match=r"comes from claimctl 99.1.0, and this is claimctl"):
        await world.install(documents("crds"))
    assert await world.install(newer) == {ApplyOutcome.UNCHANGED}


async def test_a_kind_that_is_not_served_is_named(world: InstallWorld) -> None:
    monitor: dict[str, Any] = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": {"name": "m", "namespace": "default"},
    }
    with pytest.raises(CommandFailed, match="PodMonitor is not served by this cluster: install"):
        await world.install([monitor])


async def test_a_component_that_needs_a_newer_cluster_says_which() -> None:
    cluster = Cluster(ClusterOptions(kubernetes_version=(1, 34)), LoopClock())
    await cluster.start()
    with pytest.raises(
        CommandFailed, match=r"by this cluster: Kubernetes 1\.36 and newer serve it"
    ):
        await InstallWorld(cluster).install(documents("sticky-claims"))
    await cluster.stop()


async def test_a_component_is_installed_by_its_name(world: InstallWorld) -> None:
    assert await world.install(documents("sticky-claims")) == {ApplyOutcome.CREATED}
    assert await world.install(documents("sticky-claims")) == {ApplyOutcome.UNCHANGED}


async def test_a_refusal_names_the_object(world: InstallWorld) -> None:
    wrong = documents("rbac", "controller")
    deployment = next(each for each in wrong if each["kind"] == "Deployment")
    deployment["spec"]["replicas"] = -1
    with pytest.raises(
        CommandFailed, match=r"Deployment claimctl-system/claimctl-controller: .*-1"
    ):
        await world.install(wrong)


async def test_a_controller_that_finds_no_node_is_told_when_the_time_is_over(
    world: InstallWorld,
) -> None:
    wrong = documents()
    deployment = next(each for each in wrong if each["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["nodeSelector"] = {"no": "such"}
    await world.install(wrong)
    with pytest.raises(CommandFailed, match=r"is not available within 5 s: pod claimctl-contr.*: "):
        await world.installer.wait(wrong, 5)


async def test_waiting_ends_when_the_deployment_is_available(world: InstallWorld) -> None:
    await world.install(documents())
    async with asyncio.timeout(30):
        await world.installer.wait(documents(), 60)
    assert available(await world.client.get(DEPLOYMENT, *WHERE))
    assert (await world.client.list(CRD))[0]["spec"]["group"] == "claimctl.io"


def test_an_image_that_cannot_be_pulled_is_the_reason() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "not found"}
    status = {"containerStatuses": [{"state": {"waiting": waiting}}]}
    pod = {"metadata": {"name": "p"}, "status": status}
    assert why_waiting(pod) == "pod p: ImagePullBackOff: not found"
    assert why_waiting({**pod, "status": {}}) == ""


@pytest.mark.parametrize(
    "change",
    [
        {"observedGeneration": 1},
        {"updatedReplicas": 1},
        {"availableReplicas": 1},
        {"replicas": 3},
    ],
)
def test_a_rollout_under_way_is_not_available(change: dict[str, int]) -> None:
    complete = {
        "observedGeneration": 2,
        "updatedReplicas": 2,
        "availableReplicas": 2,
        "replicas": 2,
    }
    deployment = {"metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": complete}
    assert available(deployment)
    assert not available({**deployment, "status": complete | change})


def test_versions_are_compared_as_numbers() -> None:
    assert version_of("0.10.0") > version_of("0.9.9")
    assert version_of("nonsense") == version_of("") == ()
    assert replace(Choice(), namespace="a").namespace == "a"


@pytest.mark.parametrize(
    "status",
    [
        None,
        {"observedGeneration": None, "replicas": None},
        {"containerStatuses": None, "conditions": None},
        {"containerStatuses": [{"state": None}]},
    ],
)
def test_null_is_as_good_as_absent(status: dict[str, Any] | None) -> None:
    document = {"metadata": {"name": "p", "generation": 1}, "spec": {}, "status": status}
    assert not available(document)
    assert why_waiting(document) == ""
