"""What ``claimctl uninstall run`` deletes, and in which order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset

from claimctl.cli.errors import CommandFailed
from claimctl.commands.install.apply import Installer
from claimctl.commands.install.components import BASE, Choice, chosen, every_document
from claimctl.commands.install.objects import (
    HELM_NAMESPACE,
    HELM_RELEASE,
    MANAGER,
    Objects,
)
from claimctl.commands.uninstall.work import in_order_of_deletion, present
from claimctl.kube.clock import LoopClock
from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient

PLACE = "claimctl-system"


@pytest.fixture
@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    made = Cluster(ClusterOptions(preset=Preset.PLAIN, nodes=1), LoopClock())
    await made.start()
    yield made
    await made.stop()


async def install(cluster: Cluster, *components: str) -> DocumentClient:
    documents = chosen(Choice(components, PLACE, "registry.example.com/claimctl:1"))
    for document in documents:
        if document["kind"] == "Namespace":
            document["metadata"]["labels"] = {}
    await Installer(cluster.transport(), cluster.clock).apply(documents)
    return DocumentClient(cluster.transport(), MANAGER)


async def test_every_component_goes_and_the_definitions_go_last(cluster: Cluster) -> None:
    await install(cluster, *BASE, "network-policy")
    objects = Objects(cluster.transport(), cluster.clock)
    there = await present(objects, PLACE)
    kinds = {document["kind"] for document in there}
    assert {"Deployment", "Namespace", "ClusterRole", "NetworkPolicy"} <= kinds
    assert {document["kind"] for document in there[-3:]} == {"CustomResourceDefinition"}
    for document in there:
        await objects.delete(document)
    left = [document for document in await present(objects, PLACE) if document["kind"] not in LATE]
    assert left == []


LATE = ("Namespace", "CustomResourceDefinition", "Deployment")
"""They are gone when what they contain is gone."""


async def test_what_helm_installed_is_left_to_helm(cluster: Cluster) -> None:
    client = await install(cluster, *BASE)
    notes = {"metadata": {"annotations": {HELM_RELEASE: "c", HELM_NAMESPACE: "gpus"}}}
    await client.patch(("apps/v1", "Deployment"), PLACE, "claimctl-controller", notes)
    with pytest.raises(CommandFailed, match="use helm uninstall c -n gpus"):
        await present(Objects(cluster.transport(), cluster.clock), PLACE)


def test_a_namespace_that_others_may_use_stays() -> None:
    def namespaces(place: str) -> list[Object]:
        documents = in_order_of_deletion(every_document(place))
        return [each for each in documents if each["kind"] == "Namespace"]

    assert namespaces("gpus") == []
    assert len(namespaces(PLACE)) == 1
