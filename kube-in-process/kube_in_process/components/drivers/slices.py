"""The ResourceSlices that one driver publishes for its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from kube_in_process.components.objects import name
from kube_in_process.objects import Object
from kube_in_process.runtime.local import ApiFor
from kube_in_process.runtime.views import View

Change = Callable[[Object], Object]
"""From the body of a device to its new body."""

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
        self._hidden: dict[tuple[str, str], tuple[str, int, Object]] = {}
        """By pool and device: the slice from which it was taken, its place there, and its body."""
        view.index("driver and node", node_of)
        view.index("driver and pool", pool_of)

    def lacks(self, pool: str, device: str) -> bool:
        """Whether the driver offers the pool, and offers it without this device."""
        known = {name(each): each for each in self._view.by("driver and pool", self._key(pool))}
        known |= {
            key: each for key, each in self._kept.items() if each["spec"]["pool"]["name"] == pool
        }
        if not known or (pool, device) in self._hidden:
            return False
        newest = max(each["spec"]["pool"]["generation"] for each in known.values())
        return not any(
            _has(each, device)
            for each in known.values()
            if each["spec"]["pool"]["generation"] == newest
        )

    def devices(self, node: str) -> list[Object]:
        """The devices that the driver offers on a node, the hidden ones last."""
        slices = self._of(node)
        pools = {each["spec"]["pool"]["name"] for each in slices}
        hidden = [body for (pool, _), (*_, body) in self._hidden.items() if pool in pools]
        return [device for each in slices for device in each["spec"].get("devices") or ()] + hidden

    def nodes(self) -> list[str]:
        """The nodes for which the driver has slices, published or not."""
        live = [each for each in self._view.items() if each["spec"]["driver"] == self._driver]
        found = (each["spec"].get("nodeName") for each in (*live, *self._kept.values()))
        return list(dict.fromkeys(each for each in found if each))

    # Publishing

    def replace(self, node: str, devices: Sequence[Object]) -> None:
        """Make a new generation of the node's pool. It is published with ``publish``."""
        old = self._of(node)
        unknown: Object = {
            "driver": self._driver,
            "nodeName": node,
            "pool": {"name": node, "generation": 0},
        }
        head = old[0]["spec"] if old else unknown
        pool = head["pool"]
        shown = self._without_hidden(pool["name"], devices)
        parts = [
            shown[first : first + MOST_DEVICES] for first in range(0, len(shown), MOST_DEVICES)
        ] or [[]]
        newer = {
            "name": pool["name"],
            "generation": pool["generation"] + 1,
            "resourceSliceCount": len(parts),
        }
        for each in old:
            self._kept.pop(name(each), None)
        for number, part in enumerate(parts):
            plain = f"{node}-{self._driver}" + (f"-{number}" if number else "")
            named = name(old[number]) if number < len(old) else plain
            spec = {**head, "pool": newer, "devices": part}
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

    # Single devices

    def change(self, node: str, device: str, change: Change) -> None:
        """Change the body of one device, in the same generation. Raises KeyError."""
        for each in self._of(node):
            if _has(each, device):
                bodies = each["spec"]["devices"]
                self._write(each, [change(x) if x["name"] == device else x for x in bodies])
                return
        pools = {each["spec"]["pool"]["name"] for each in self._of(node)}
        for pool in pools:
            if (pool, device) in self._hidden:
                plain, place, body = self._hidden[pool, device]
                self._hidden[pool, device] = (plain, place, change(body))
                return
        raise KeyError(f"{self._driver} has no device {device} on {node}")

    def hide(self, pool: str, device: str) -> None:
        """Take a device out of its slice."""
        for each in self._of_pool(pool):
            if _has(each, device):
                bodies = list(each["spec"]["devices"])
                place = next(i for i, body in enumerate(bodies) if body["name"] == device)
                self._hidden[pool, device] = (name(each), place, bodies.pop(place))
                self._write(each, bodies)
                return

    def show(self, pool: str, device: str) -> None:
        """Put a hidden device back."""
        plain, place, body = self._hidden.pop((pool, device), ("", 0, {}))
        slices = list(self._of_pool(pool))
        if not plain or not slices:
            return
        home = next((each for each in slices if name(each) == plain), slices[0])
        bodies = list(home["spec"].get("devices") or ())
        bodies.insert(place, body)
        self._write(home, bodies)

    def _without_hidden(self, pool: str, devices: Sequence[Object]) -> list[Object]:
        offered = {each["name"]: each for each in devices}
        for key in [each for each in self._hidden if each[0] == pool]:
            plain, place, _ = self._hidden.pop(key)
            if key[1] in offered:
                self._hidden[key] = (plain, place, offered.pop(key[1]))
        return list(offered.values())

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

    def _of_pool(self, pool: str) -> Iterator[Object]:
        yield from (x for x in self._kept.values() if x["spec"]["pool"]["name"] == pool)
        live = self._view.by("driver and pool", self._key(pool))
        yield from (each for each in live if name(each) not in self._kept)


def _has(resource_slice: Object, device: str) -> bool:
    return any(each["name"] == device for each in resource_slice["spec"].get("devices") or ())


def _is_on(resource_slice: Object, node: str) -> bool:
    return bool(resource_slice["spec"].get("nodeName") == node)
