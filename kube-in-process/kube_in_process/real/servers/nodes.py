"""Register nodes and their devices, as kubelets and DRA drivers do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kube_in_process.components.kubelet.nodes import device_class, node_info
from kube_in_process.real.client import Document, DocumentClient, Refused, Version
from kube_in_process.real.servers.features import resource_api

NODE: Version = ("v1", "Node")
_PAGE = 128
"""The largest number of devices that the API server accepts in one ResourceSlice."""

FLEET_LABEL = "claimctl.io/fleet"
"""The label of each node and ResourceSlice with the prefix of its fleet."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """Nodes of the same kind. Fleets with different prefixes and drivers can share a cluster."""

    version: tuple[int, int]
    """The Kubernetes version. It decides which version of resource.k8s.io devices have."""
    count: int = 3
    """The number of nodes."""
    devices: int = 4
    """The number of devices of each node."""
    prefix: str = "node"
    driver: str = "gpu.example.com"
    device_class: str = "gpu.example.com"
    boots: dict[str, int] = field(default_factory=dict)
    """By node: how often it has been rebooted."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"{self.prefix}-{index}" for index in range(self.count))

    @property
    def resource_api(self) -> str:
        return f"resource.k8s.io/{resource_api(self.version)}"

    @property
    def claims(self) -> Version:
        return (self.resource_api, "ResourceClaim")


async def join(client: DocumentClient, fleet: Fleet) -> None:
    """Register the DeviceClass, the nodes and their devices. Existing objects stay.

    Raises:
        Refused: the API server refuses one of the objects.
    """
    await _create(client, device_class(fleet.resource_api, fleet.device_class, fleet.driver))
    for name in fleet.names:
        await _create(client, {"apiVersion": "v1", "kind": "Node", **_node(fleet, name)})
        await report(client, fleet, name)
        # the API server adds the taint not-ready to every new node, and only the node lifecycle
        # controller of kube-controller-manager removes it
        await client.patch(NODE, "", name, {"spec": {"taints": None}})
        for body in _slices(fleet, name):
            await _create(client, body)


async def leave(client: DocumentClient, fleet: Fleet) -> None:
    """Delete the nodes, their devices and the DeviceClass."""
    for name in fleet.names:
        for body in _slices(fleet, name):
            kind = (fleet.resource_api, "ResourceSlice")
            await client.delete(kind, "", body["metadata"]["name"])
        await client.delete(NODE, "", name)
    await client.delete((fleet.resource_api, "DeviceClass"), "", fleet.device_class)


async def report(
    client: DocumentClient, fleet: Fleet, name: str, conditions: Sequence[Document] = ()
) -> None:
    """Write the node's status as its kubelet does: Ready, unless ``conditions`` are given."""
    capacity = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
    status = {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": list(conditions) or [ready("True", "KubeletReady")],
        "addresses": [{"type": "Hostname", "address": name}],
        "nodeInfo": node_info(name, fleet.boots.get(name, 0), fleet.version, "stand-in"),
    }
    await client.patch_status(NODE, "", name, {"status": status})


def ready(status: str, reason: str) -> Document:
    """The condition Ready of a node."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
    return {"type": "Ready", "status": status, "reason": reason, "message": reason, **times}


async def _create(client: DocumentClient, body: Document) -> None:
    try:
        await client.create(body)
    except Refused as refused:
        if refused.reason != "AlreadyExists":
            raise


def _node(fleet: Fleet, name: str) -> Document:
    system = {"os": "linux", "arch": "amd64"}
    labels = {"kubernetes.io/hostname": name, FLEET_LABEL: fleet.prefix}
    # kube-controller-manager would add the beta labels and the annotation in further writes
    for group in ("kubernetes.io", "beta.kubernetes.io"):
        labels |= {f"{group}/{key}": value for key, value in system.items()}
    annotations = {"node.alpha.kubernetes.io/ttl": "0"}
    return {"metadata": {"name": name, "labels": labels, "annotations": annotations}}


def _slices(fleet: Fleet, node: str) -> list[Document]:
    names = [f"dev-{index}" for index in range(fleet.devices)]
    pages = [names[start : start + _PAGE] for start in range(0, len(names), _PAGE)]
    pool = {"name": node, "generation": 1, "resourceSliceCount": len(pages)}
    return [
        {
            "apiVersion": fleet.resource_api,
            "kind": "ResourceSlice",
            "metadata": {
                "name": f"{node}-{fleet.driver}-{number}",
                "labels": {FLEET_LABEL: fleet.prefix},
            },
            "spec": {
                "driver": fleet.driver,
                "nodeName": node,
                "pool": pool,
                "devices": [_device(fleet, name) for name in page],
            },
        }
        for number, page in enumerate(pages)
    ]


def _device(fleet: Fleet, name: str) -> Document:
    """A device without attributes. In v1beta1, its attributes are in the field ``basic``."""
    beta = fleet.resource_api.endswith("v1beta1")
    return {"name": name, "basic": {}} if beta else {"name": name}
