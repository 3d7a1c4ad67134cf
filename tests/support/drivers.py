"""What the driver and the administrator of devices do, on an embedded cluster or a real one.

From 1.36 on, the use of a device can depend on what its driver reports (binding conditions), and
its taints can evict pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from kube_in_process.real.client import Version

from claimctl.kube.errors import ApiError, NotServed
from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient

READY, FAILED = "example.com/ready", "example.com/failed"
SLOW: Object = {
    "bindsToNode": True,
    "bindingConditions": [READY],
    "bindingFailureConditions": [FAILED],
}
"""The fields of a device that is used only after its driver has reported READY."""
RULE: Version = ("resource.k8s.io/v1beta2", "DeviceTaintRule")
_WHEN = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Drivers:
    """The driver ``name``. The claims that it reports about are in ``namespace``."""

    client: DocumentClient
    namespace: str = "default"
    name: str = "fabric.example.com"
    """Also the name of its DeviceClass."""
    resource_api: str = "resource.k8s.io/v1"
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of what it publishes: of several scenarios on one cluster, each sees its own."""

    async def publish(
        self, pool: str, node: str, *devices: str, fields: Object | None = None
    ) -> None:
        """Publish devices of a node; ``fields`` are those of each device (None: ``SLOW``)."""
        more = SLOW if fields is None else fields
        spec = {
            "driver": self.name,
            "nodeName": node,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": device, **more} for device in devices],
        }
        await self._make("ResourceSlice", f"{self.name}-{pool}", spec)

    async def make_class(self) -> None:
        """Create the DeviceClass of all devices of the driver."""
        selector = {"cel": {"expression": f'device.driver == "{self.name}"'}}
        await self._make("DeviceClass", self.name, {"selectors": [selector]})

    async def report(self, claim: str, kind: str = READY, status: str = "True") -> None:
        """Report one condition of every device that a claim has, in place of earlier ones."""
        where = (self.resource_api, "ResourceClaim")
        body = await self.client.get(where, self.namespace, claim)
        condition = {"type": kind, "status": status, "reason": "Driver", "message": "told"}
        devices = [
            {
                **{key: result[key] for key in ("driver", "pool", "device")},
                "conditions": [{**condition, "lastTransitionTime": _WHEN}],
            }
            for result in body["status"]["allocation"]["devices"]["results"]
        ]
        patch = {"status": {"devices": devices}}
        for tries_left in range(9, -1, -1):
            try:
                await self.client.patch_status(where, self.namespace, claim, patch)
                return
            except ApiError as refused:
                # a busy server gives up after five writes of others
                if refused.status != 409 or not tries_left:
                    raise

    async def taint(self, pool: str, *taints: Object, device: str = "") -> None:
        """Give one device of a pool these taints, or all of its devices; none: take them off."""
        for body in await self._mine("ResourceSlice"):
            spec = body["spec"]
            if spec["pool"]["name"] != pool:
                continue
            devices = [
                {**known, "taints": list(taints)} if device in ("", known["name"]) else known
                for known in spec["devices"]
            ]
            where, name = (self.resource_api, "ResourceSlice"), body["metadata"]["name"]
            await self.client.patch(where, "", name, {"spec": {"devices": devices}})

    async def make_rule(self, name: str, taint: Object, **selector: str) -> None:
        """Taint devices of the driver by a rule; ``selector`` has pool and device, or less.

        Raises:
            NotServed: the cluster has no DeviceTaintRules.
        """
        chosen = {"driver": self.name, **selector}
        await self._make(
            RULE[1], self._rule(name), {"deviceSelector": chosen, "taint": taint}, RULE[0]
        )

    async def drop_rule(self, name: str) -> None:
        await self.client.delete(RULE, "", self._rule(name))

    async def leave(self) -> None:
        """Delete what the driver has published, its class, and the rules about it."""
        for kind in ("ResourceSlice", "DeviceClass"):
            for body in await self._mine(kind):
                name = body["metadata"]["name"]
                await self.client.delete((self.resource_api, kind), "", name)
        with suppress(NotServed):
            for body in await self.client.list(RULE):
                if body["metadata"]["name"].startswith(f"{self.name}-"):
                    await self.client.delete(RULE, "", body["metadata"]["name"])

    async def _mine(self, kind: str) -> list[Object]:
        objects = await self.client.list((self.resource_api, kind))
        return [
            body
            for body in objects
            if self.name in (body["spec"].get("driver"), body["metadata"]["name"])
        ]

    def _rule(self, name: str) -> str:
        return f"{self.name}-{name}"

    async def _make(self, kind: str, name: str, spec: Object, api: str = "") -> None:
        meta = {"name": name, "labels": dict(self.labels)}
        body = {"apiVersion": api or self.resource_api, "kind": kind, "metadata": meta}
        await self.client.create({**body, "spec": spec})
