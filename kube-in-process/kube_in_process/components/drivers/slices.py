"""The ResourceSlices that one driver publishes for its nodes."""

from __future__ import annotations

from collections.abc import Sequence

from kube_in_process.components.objects import name
from kube_in_process.objects import Object
from kube_in_process.runtime.local import ApiFor
from kube_in_process.runtime.views import View

MOST_DEVICES = 64
"""The most devices of a slice that may have taints (a limit of the API server)."""


def node_of(resource_slice: Object) -> tuple[str, ...]:
    """Index values: 'driver/node' of a slice of one node."""
    spec = resource_slice["spec"]
    return (f"{spec['driver']}/{spec['nodeName']}",) if spec.get("nodeName") else ()


def pool_of(resource_slice: Object) -> tuple[str, ...]:
    """Index values: 'driver/pool'."""
    spec = resource_slice["spec"]
    return (f"{spec['driver']}/{spec['pool']['name']}",)


class Slices:
    """The slices of one driver, those that are not published at the moment included."""

    def __init__(self, driver: str, api: ApiFor, view: View) -> None:
        self._driver = driver
        self._api = api
        self._view = view
        self._kept: dict[str, Object] = {}
        """By name: slices that the driver publishes when it can."""
        self._homes: dict[str, dict[str, str]] = {}
        """By node and device: the slice of the device, also while it is hidden."""
        view.index("driver and node", node_of)
        view.index("driver and pool", pool_of)

    def lacks(self, pool: str, device: str) -> bool:
        """Whether the driver offers the pool, and offers it without this device."""
        known = {
            name(resource_slice): resource_slice
            for resource_slice in self._view.by("driver and pool", self._key(pool))
        }
        known |= {
            key: resource_slice
            for key, resource_slice in self._kept.items()
            if resource_slice["spec"]["pool"]["name"] == pool
        }
        if not known:
            return False
        newest = max(
            resource_slice["spec"]["pool"]["generation"] for resource_slice in known.values()
        )
        return not any(
            _has(resource_slice, device)
            for resource_slice in known.values()
            if resource_slice["spec"]["pool"]["generation"] == newest
        )

    def devices(self, node: str) -> list[Object]:
        """The devices that the driver offers on a node."""
        return [
            body
            for resource_slice in self._of(node)
            for body in resource_slice["spec"].get("devices") or ()
        ]

    def nodes(self) -> list[str]:
        """The nodes for which the driver has slices, published or not."""
        live = [
            resource_slice
            for resource_slice in self._view.items()
            if resource_slice["spec"]["driver"] == self._driver
        ]
        names = (
            resource_slice["spec"].get("nodeName")
            for resource_slice in (*live, *self._kept.values())
        )
        return list(dict.fromkeys(node for node in names if node))

    # Publishing

    def replace(self, node: str, devices: Sequence[Object], shown: Sequence[Object]) -> None:
        """Make a new generation of the node's pool. It is published with ``publish``.

        Args:
            devices: all devices of the pool.
            shown: those of them that are published, as they are published.
        """
        old = self._of(node)
        unknown: Object = {
            "driver": self._driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 0},
        }
        head = old[0]["spec"] if old else unknown
        pool = head["pool"]
        parts = [
            devices[first : first + MOST_DEVICES] for first in range(0, len(devices), MOST_DEVICES)
        ] or [[]]
        bodies = {body["name"]: body for body in shown}
        newer = {
            "name": pool["name"],
            "generation": pool["generation"] + 1,
            "resourceSliceCount": len(parts),
        }
        for resource_slice in old:
            self._kept.pop(name(resource_slice), None)
        homes = self._homes[node] = {}
        for number, part in enumerate(parts):
            plain = f"{node}-{self._driver}" + (f"-{number}" if number else "")
            named = name(old[number]) if number < len(old) else plain
            homes.update({body["name"]: named for body in part})
            here = [bodies[body["name"]] for body in part if body["name"] in bodies]
            spec = {**head, "pool": newer, "devices": here}
            self._kept[named] = {"metadata": {"name": named}, "spec": spec}

    def publish(self, node: str) -> None:
        """Publish what is not published."""
        waiting = {
            key: resource_slice
            for key, resource_slice in self._kept.items()
            if _is_on(resource_slice, node)
        }
        if not waiting:
            return
        for resource_slice in self._live(node):
            if name(resource_slice) not in waiting:
                self._api.delete("resourceslices", "", name(resource_slice))
        for plain, body in waiting.items():
            del self._kept[plain]
            published = self._view.get("", plain)
            if published is None:
                self._api.create("resourceslices", body)
            else:
                self._api.update("resourceslices", {**published, "spec": body["spec"]})

    def withdraw(self, node: str) -> None:
        """Delete the node's slices. ``publish`` publishes them again."""
        replaced = any(_is_on(resource_slice, node) for resource_slice in self._kept.values())
        for resource_slice in self._live(node):
            if not replaced:
                self._kept[name(resource_slice)] = {
                    "metadata": {"name": name(resource_slice)},
                    "spec": resource_slice["spec"],
                }
            self._api.delete("resourceslices", "", name(resource_slice))

    # Devices in place

    def look(self, node: str) -> list[Object]:
        """The devices that are offered on a node; from now on, their slices are known."""
        self._homes[node] = {
            body["name"]: name(resource_slice)
            for resource_slice in self._of(node)
            for body in resource_slice["spec"].get("devices") or ()
        }
        return self.devices(node)

    def knows(self, node: str, devices: Sequence[Object]) -> bool:
        """Whether these are all the devices of the node's pool, the hidden ones included."""
        return set(self._homes[node]) == {device["name"] for device in devices}

    def edit(self, node: str, shown: Sequence[Object]) -> None:
        """Publish these devices of the pool, and no other ones, in the same generation."""
        homes = self._homes[node]
        for resource_slice in self._of(node):
            bodies = [body for body in shown if homes[body["name"]] == name(resource_slice)]
            if bodies != (resource_slice["spec"].get("devices") or []):
                self._write(resource_slice, bodies)

    def _write(self, resource_slice: Object, devices: list[Object]) -> None:
        changed = {**resource_slice, "spec": {**resource_slice["spec"], "devices": devices}}
        if name(resource_slice) in self._kept:
            self._kept[name(resource_slice)] = changed
        else:
            self._api.update("resourceslices", changed)

    # Looking

    def _key(self, value: str) -> str:
        return f"{self._driver}/{value}"

    def _live(self, node: str) -> tuple[Object, ...]:
        return self._view.by("driver and node", self._key(node))

    def _of(self, node: str) -> list[Object]:
        kept = [
            resource_slice for resource_slice in self._kept.values() if _is_on(resource_slice, node)
        ]
        return kept or list(self._live(node))


def _has(resource_slice: Object, device: str) -> bool:
    return any(body["name"] == device for body in resource_slice["spec"].get("devices") or ())


def _is_on(resource_slice: Object, node: str) -> bool:
    return bool(resource_slice["spec"].get("nodeName") == node)
