"""What DRA drivers and administrators do with devices: binding conditions, reports and taints."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from kube_in_process.components.kubelet.nodes import device_class
from kube_in_process.real.servers.nodes import FLEET_LABEL

from claimctl.kube.errors import NotServed
from claimctl.wire.base import Object
from claimctl.wire.resources import RESOURCECLAIMS
from claimctl_demo.documents import DocumentClient
from tests.e2e import manifests
from tests.e2e.harness import Stage
from tests.e2e.site import PEOPLE

READY, FAILED = "example.com/ready", "example.com/failed"
_TAINT = {"key": "example.com/unhealthy", "value": "yes", "effect": "NoExecute"}
_RULES = ("resource.k8s.io/v1beta2", "DeviceTaintRule")
_SOME_TIME = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Fabric:
    """Devices of a driver that reports, for each claim, whether they are bound to the node.

    From 1.36 on, the scheduler binds a pod only after this report (KEP-5007).
    """

    stage: Stage
    people: DocumentClient

    @property
    def name(self) -> str:
        """The name of the driver and of its DeviceClass."""
        return f"fabric.{self.stage.site.fleet.driver}"

    def claim(self, name: str) -> Object:
        """A claim of one of the devices."""
        body: Object = manifests.claim(name)
        body["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = self.name
        return body

    async def publish(self, *nodes: str, devices: int = 1) -> None:
        """Publish devices for nodes."""
        for node in nodes:
            await self.people.create(self._slice(node, devices))

    def _slice(self, node: str, devices: int) -> Object:
        api, pool = self.stage.site.fleet.resource_api, f"{node}-fabric"
        device = {
            "bindsToNode": True,
            "bindingConditions": [READY],
            "bindingFailureConditions": [FAILED],
        }
        meta = {"name": pool, "labels": {FLEET_LABEL: self.stage.site.fleet.prefix}}
        spec = {
            "driver": self.name,
            "nodeName": node,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": f"port-{index}", **device} for index in range(devices)],
        }
        return {"apiVersion": api, "kind": "ResourceSlice", "metadata": meta, "spec": spec}

    async def report(self, claim: str, condition: str) -> None:
        """Report a condition of the device that the claim has."""
        (device,) = await devices_of(self.stage, claim)
        true = {"type": condition, "status": "True", "reason": "Driver", "message": ""}
        told = {**device, "conditions": [{**true, "lastTransitionTime": _SOME_TIME}]}
        await self.stage.patch_status(RESOURCECLAIMS, claim, {"status": {"devices": [told]}})


@asynccontextmanager
async def fabric(stage: Stage) -> AsyncIterator[Fabric]:
    """A driver whose devices go with the scenario."""
    people = DocumentClient(stage.site.connection(PEOPLE), "driver")
    driver = Fabric(stage, people)
    api = stage.site.fleet.resource_api
    await people.create(device_class(api, driver.name, driver.name))
    try:
        yield driver
    finally:
        for node in stage.site.nodes:
            await people.delete((api, "ResourceSlice"), "", f"{node}-fabric")
        await people.delete((api, "DeviceClass"), "", driver.name)


async def devices_of(stage: Stage, claim: str = "slice") -> list[dict[str, str]]:
    """The devices that the claim has, by driver, pool and name; none if it is not allocated."""
    allocation = (await stage.claim(claim)).status.allocation
    results = allocation.devices.results if allocation is not None else ()
    return [
        {"driver": each.driver, "pool": each.pool, "device": each.device} for each in results or ()
    ]


async def pool_of(stage: Stage, claim: str = "slice") -> str:
    """The pool of the claim's first device; "" if it is not allocated.

    The pool of a device of the fleet has the name of its node.
    """
    found = await devices_of(stage, claim)
    return found[0]["pool"] if found else ""


@asynccontextmanager
async def tainted(
    stage: Stage, claim: str = "slice", effect: str = "NoExecute"
) -> AsyncIterator[None]:
    """Taint the claim's devices in their ResourceSlices, as their driver does; no pod may stay."""
    people = DocumentClient(stage.site.connection(PEOPLE), "driver")
    kind = (stage.site.fleet.resource_api, "ResourceSlice")
    broken = await devices_of(stage, claim)
    for piece in await people.list(kind):
        spec = piece["spec"]
        devices = [_tainted(spec, device, broken, effect) for device in spec["devices"]]
        if devices != spec["devices"]:
            pool = {**spec["pool"], "generation": spec["pool"]["generation"] + 1}
            patch = {"spec": {"devices": devices, "pool": pool}}
            await people.patch(kind, "", piece["metadata"]["name"], patch)
    yield


def _tainted(spec: Object, device: Object, broken: list[dict[str, str]], effect: str) -> Object:
    identity = {"driver": spec["driver"], "pool": spec["pool"]["name"], "device": device["name"]}
    return {**device, "taints": [{**_TAINT, "effect": effect}]} if identity in broken else device


@asynccontextmanager
async def tainted_by_rule(
    stage: Stage, claim: str = "slice", effect: str = "NoExecute"
) -> AsyncIterator[None]:
    """Taint the claim's device by a DeviceTaintRule, as an administrator does."""
    people = DocumentClient(stage.site.connection(PEOPLE), "people")
    (device,) = await devices_of(stage, claim)
    name = f"{device['pool']}-{device['device']}"
    spec = {"deviceSelector": device, "taint": {**_TAINT, "effect": effect}}
    body = {"apiVersion": _RULES[0], "kind": _RULES[1], "metadata": {"name": name}, "spec": spec}
    try:
        await people.create(body)
    except NotServed as missing:
        pytest.skip(str(missing))
    try:
        yield
    finally:
        await people.delete(_RULES, "", name)
