"""The devices that a driver publishes on one node, and that come and go."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from tests.support.drivers import Drivers

BROKEN = {"key": "gpu.example.com/xid", "value": "79", "effect": "NoSchedule"}
"""The taint of a broken device."""


class Pool:
    """The pool of a driver on one node."""

    def __init__(self, driver: Drivers, node: str) -> None:
        self.driver, self.node, self._generation = driver, node, 1
        self._kind = (driver.resource_api, "ResourceSlice")
        self.slice = f"{driver.name}-{node}"

    async def offers(
        self,
        *devices: str,
        count: int = 1,
        taints: Any = (),
        tainted: Container[str] | None = None,
    ) -> None:
        """Publish these devices from now on, in one slice of ``count``.

        Args:
            tainted: the devices that have the taints; None: all.
        """
        self._generation += 1
        published = [
            {"name": device}
            if not taints or (tainted is not None and device not in tainted)
            else {"name": device, "taints": list(taints)}
            for device in devices
        ]
        pool = {"name": self.node, "generation": self._generation, "resourceSliceCount": count}
        patch = {"spec": {"pool": pool, "devices": published}}
        await self.driver.client.patch(self._kind, "", self.slice, patch)

    async def leave(self) -> None:
        """Take the slice away, as a kubelet does that starts."""
        await self.driver.client.delete(self._kind, "", self.slice)

    async def come_back(self, *devices: str) -> None:
        await self.driver.publish(self.node, self.node, *devices, fields={})
