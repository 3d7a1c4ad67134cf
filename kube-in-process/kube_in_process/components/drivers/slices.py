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
        known = {name(each): each for each in self._view.by("driver and pool", self._key(pool))}
        known |= {
            key: each for key, each in self._kept.items() if each["spec"]["pool"]["name"] == pool
        }
        if not known:
            return False
        newest = max(each["spec"]["pool"]["generation"] for each in known.values())
        return not any(
            _has(each, device)
            for each in known.values()
            if each["spec"]["pool"]["generation"] == newest
        )

    def devices(self, node: str) -> list[Object]:
        """The devices that the driver offers on a node."""
        return [body for each in self._of(node) for body in each["spec"].get("devices") or ()]

    def nodes(self) -> list[str]:
        """The nodes for which the driver has slices, published or not."""
        live = [each for each in self._view.items() if each["spec"]["driver"] == self._driver]
        found = (each["spec"].get("nodeName") for each in (*live, *self._kept.values()))
        return list(dict.fromkeys(each for each in found if each))

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
        bodies = {each["name"]: each for each in shown}
        newer = {
            "name": pool["name"],
            "generation": pool["generation"] + 1,
            "resourceSliceCount": len(parts),
        }
        for each in old:
            self._kept.pop(name(each), None)
        homes = self._homes[node] = {}
        for number, part in enumerate(parts):
            plain = f"{node}-{self._driver}" + (f"-{number}" if number else "")
            named = name(old[number]) if number < len(old) else plain
            homes.update({each["name"]: named for each in part})
            here = [bodies[each["name"]] for each in part if each["name"] in bodies]
            spec = {**head, "pool": newer, "devices": here}
            self._kept[named] = {"metadata": {"name": named}, "spec": spec}

    def publish(self, node: str) -> None:
        """Publish what is not published."""
        waiting = {key: each for key, each in self._kept.items() if _is_on(each, node)}
        if not waiting:
            return
        for each in self._live(node):
            if name(each) not in waiting:
                self._api.delete("resourceslices", "", name(each))
        for plain, body in waiting.items():
            del self._kept[plain]
            found = self._view.get("", plain)
            if found is None:
                self._api.create("resourceslices", body)
            else:
                self._api.update("resourceslices", {**found, "spec": body["spec"]})

    def withdraw(self, node: str) -> None:
        """Delete the node's slices. ``publish`` publishes them again."""
        replaced = any(_is_on(each, node) for each in self._kept.values())
        for each in self._live(node):
            if not replaced:
                self._kept[name(each)] = {
                    "metadata": {"name": name(each)},
                    "spec": each["spec"],
                }
            self._api.delete("resourceslices", "", name(each))

    # Devices in place

    def look(self, node: str) -> list[Object]:
        """The devices that are offered on a node; from now on, their slices are known."""
        self._homes[node] = {
            body["name"]: name(each)
            for each in self._of(node)
            for body in each["spec"].get("devices") or ()
        }
        return self.devices(node)

    def knows(self, node: str, devices: Sequence[Object]) -> bool:
        """Whether these are all the devices of the node's pool, the hidden ones included."""
        return set(self._homes[node]) == {each["name"] for each in devices}

    def edit(self, node: str, shown: Sequence[Object]) -> None:
        """Publish these devices of the pool, and no other ones, in the same generation."""
        homes = self._homes[node]
        for each in self._of(node):
            bodies = [body for body in shown if homes[body["name"]] == name(each)]
            if bodies != (each["spec"].get("devices") or []):
                self._write(each, bodies)

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
        kept = [each for each in self._kept.values() if _is_on(each, node)]
        return kept or list(self._live(node))


def _has(resource_slice: Object, device: str) -> bool:
    return any(each["name"] == device for each in resource_slice["spec"].get("devices") or ())


def _is_on(resource_slice: Object, node: str) -> bool:
    return bool(resource_slice["spec"].get("nodeName") == node)
