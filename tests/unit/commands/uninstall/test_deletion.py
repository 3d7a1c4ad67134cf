"""What ``claimctl uninstall run`` deletes, and in which order."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset

from claimctl.commands.install.apply import HELM_NAMESPACE, HELM_RELEASE, MANAGER, Installer
from claimctl.commands.install.components import BASE, Choice, chosen, every_document
from claimctl.commands.uninstall.deletion import Deletion, OfHelm, in_order_of_deletion, name_of
from claimctl.kube.clock import LoopClock
from claimctl.kube.documents import DocumentClient
from claimctl.wire.base import Object

PLACE = "claimctl-system"


@pytest.fixture
@asynccontextmanager
async def cluster() -> AsyncIterator[Cluster]:
    made = Cluster(ClusterOptions(preset=Preset.PLAIN, nodes=1), LoopClock())
    await made.start()
    yield made
    await made.stop()


async def install(cluster: Cluster, *components: str) -> DocumentClient:
    client = DocumentClient(cluster.transport(), MANAGER)
    documents = chosen(Choice(components, PLACE, "registry.example.com/claimctl:1"))
    for document in documents:
        if document["kind"] == "Namespace":
            document["metadata"]["labels"] = {}
    await Installer(client, cluster.clock).apply(documents)
    return client


async def test_every_component_goes_and_the_definitions_go_last(cluster: Cluster) -> None:
    await install(cluster, *BASE, "network-policy")
    deletion = Deletion(cluster.transport(), PLACE)
    present = await deletion.present()
    kinds = {each["kind"] for each in present}
    assert {"Deployment", "Namespace", "ClusterRole", "NetworkPolicy"} <= kinds
    assert {each["kind"] for each in present[-3:]} == {"CustomResourceDefinition"}
    told: list[str] = []
    await deletion.delete(present, told.append)
    assert told == [name_of(each) for each in present]
    left = [each for each in await deletion.present() if each["kind"] not in LATE]
    assert left == []


LATE = ("Namespace", "CustomResourceDefinition", "Deployment")
"""They are gone when what they contain is gone."""


async def test_what_helm_installed_is_left_to_helm(cluster: Cluster) -> None:
    client = await install(cluster, *BASE)
    notes = {"metadata": {"annotations": {HELM_RELEASE: "c", HELM_NAMESPACE: "gpus"}}}
    await client.patch(("apps/v1", "Deployment"), PLACE, "claimctl-controller", notes)
    with pytest.raises(OfHelm, match="use helm uninstall c -n gpus"):
        await Deletion(cluster.transport(), PLACE).present()


def test_a_namespace_that_others_may_use_stays() -> None:
    def namespaces(place: str) -> list[Object]:
        documents = in_order_of_deletion(every_document(place))
        return [each for each in documents if each["kind"] == "Namespace"]

    assert namespaces("gpus") == []
    assert len(namespaces(PLACE)) == 1
