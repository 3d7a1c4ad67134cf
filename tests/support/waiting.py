"""Claims without devices, claims that have them, and pods that wait."""

from __future__ import annotations

from typing import Any

from tests.support.claim_server import NAMESPACE, Server

Json = dict[str, Any]


def a_class(server: Server, name: str) -> None:
    """A DeviceClass of this name."""
    there = server.admin.list("deviceclasses")
    if name not in {made["metadata"]["name"] for made in there}:
        server.admin.create("deviceclasses", {"metadata": {"name": name}, "spec": {}})


def asks(server: Server, name: str, of_class: str = "gpu", count: int = 1) -> None:
    """A claim without devices that asks for devices of a class, which exists."""
    a_class(server, of_class)
    request = {"name": "gpu", "exactly": {"deviceClassName": of_class, "count": count}}
    body = {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"devices": {"requests": [request]}},
    }
    server.admin.create("resourceclaims", body)


def has_devices(
    server: Server, name: str, *references: Json, of_class: str = "gpu", **result: Any
) -> None:
    """A claim with a device.

    Args:
        result: more fields of the device in the allocation.
    """
    asks(server, name, of_class)
    device = {"request": "gpu", "driver": "d.example.com", "pool": "n1", "device": name, **result}
    status = {
        "allocation": {"devices": {"results": [device]}},
        "reservedFor": list(references),
    }
    server.admin.patch("resourceclaims", NAMESPACE, name, {"status": status}, "status")


def publish(server: Server, *devices: str) -> None:
    """The ResourceSlice of node n1."""
    spec = {
        "driver": "d.example.com",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name} for name in devices],
    }
    server.admin.create("resourceslices", {"metadata": {"name": "n1"}, "spec": spec})


def unschedulable(server: Server, name: str, why: str = "cannot allocate all claims") -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "lastTransitionTime": f"{server.clock.now():%Y-%m-%dT%H:%M:%SZ}",
        "message": f"0/1 nodes are available: 1 {why}.",
    }
    server.admin.patch("pods", NAMESPACE, name, {"status": {"conditions": [condition]}}, "status")
