"""What the driver and the administrator of devices do in a test's cluster.

From 1.36 on, the use of a device can depend on what its driver reports (binding conditions), and
its taints can evict pods.
"""

from __future__ import annotations

from dataclasses import dataclass

from .worlds import Object, World

READY, FAILED = "example.com/ready", "example.com/failed"
SLOW: Object = {
    "bindsToNode": True,
    "bindingConditions": [READY],
    "bindingFailureConditions": [FAILED],
}
"""The fields of a device that is used only after its driver has reported READY."""
_WHEN = "2026-01-01T00:00:00Z"


@dataclass(frozen=True, slots=True)
class Fabric:
    """The driver of the devices, and its DeviceClass of the same name."""

    world: World
    name: str = "fabric.example.com"

    def make_class(self) -> None:
        selector = {"cel": {"expression": f'device.driver == "{self.name}"'}}
        self.world.create("deviceclasses", self.name, {"selectors": [selector]})

    def publish(self, pool: str, node: str, *devices: str, fields: Object | None = None) -> None:
        """Publish devices of a node; ``fields`` are those of each device (None: ``SLOW``)."""
        more = SLOW if fields is None else fields
        spec = {
            "driver": self.name,
            "nodeName": node,
            "pool": {"name": pool, "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": device, **more} for device in devices],
        }
        self.world.create("resourceslices", f"{self.name}-{pool}", spec)

    def report(self, claim: str, kind: str = READY, status: str = "True") -> None:
        """Report one condition of every device that a claim has, in place of earlier ones."""
        body = self.world.get("resourceclaims", claim)
        condition = {"type": kind, "status": status, "reason": "Driver", "message": "told"}
        devices = [
            {
                **{key: result[key] for key in ("driver", "pool", "device")},
                "conditions": [{**condition, "lastTransitionTime": _WHEN}],
            }
            for result in body["status"]["allocation"]["devices"]["results"]
        ]
        change = {"status": {"devices": devices}}
        self.world.api.patch("resourceclaims", "default", claim, change, "status")

    def taint(self, pool: str, *taints: Object, device: str = "") -> None:
        """Give one device of a pool these taints, or all of its devices; none: take them off."""
        name = f"{self.name}-{pool}"
        devices = [
            {**known, "taints": list(taints)} if device in ("", known["name"]) else known
            for known in self.world.get("resourceslices", name)["spec"]["devices"]
        ]
        self.world.api.patch("resourceslices", "", name, {"spec": {"devices": devices}})

    def make_rule(self, name: str, taint: Object, **selector: str) -> Object:
        """Taint devices of the driver by a rule; ``selector`` has pool and device, or less."""
        chosen = {"driver": self.name, **selector}
        spec = {"deviceSelector": chosen, "taint": taint}
        return self.world.create("devicetaintrules", name, spec)
