"""resource.k8s.io before v1: convert the shapes that differ to and from the stored form.

v1beta2 has the shapes of v1. In v1beta1, a request has itself the fields that v1 has under
``exactly``, and a device has under ``basic`` the fields that it has itself in v1.
"""

from __future__ import annotations

from collections.abc import Callable

from kube_in_process.kinds.kind import Kind
from kube_in_process.kinds.strategy import Strategy
from kube_in_process.objects import Object

OLDEST = "v1beta1"
_IN_BOTH = ("name", "firstAvailable")


class Converted(Strategy):
    """A kind with another shape in v1beta1; ``path`` leads to the part that differs."""

    stored_plain = True
    path: tuple[str, ...] = ("spec", "devices", "requests")

    def to_stored(self, item: Object) -> Object:
        """A request with its exact part below ``exactly``."""
        asked = {key: value for key, value in item.items() if key not in _IN_BOTH}
        kept = {key: value for key, value in item.items() if key in _IN_BOTH}
        return {**kept, "exactly": asked} if asked else kept

    def from_stored(self, item: Object) -> Object:
        kept = {key: value for key, value in item.items() if key != "exactly"}
        return {**kept, **(item.get("exactly") or {})}

    def inward(self, obj: Object, kind: Kind, version: str) -> Object:
        if version == OLDEST and self.path:
            obj = _at(obj, self.path, self.to_stored)
        return obj

    def outward(self, obj: Object, kind: Kind, version: str) -> Object:
        if version == OLDEST and self.path:
            obj = _at(obj, self.path, self.from_stored)
        return super().outward(obj, kind, version)


def flattened(item: Object) -> Object:
    """A device as v1 has it."""
    kept = {key: value for key, value in item.items() if key != "basic"}
    return {**kept, **(item.get("basic") or {})}


def unflattened(item: Object) -> Object:
    """A device as v1beta1 has it."""
    below = {key: value for key, value in item.items() if key != "name"}
    return {"name": item.get("name", ""), "basic": below}


def _at(obj: Object, path: tuple[str, ...], change: Callable[[Object], Object]) -> Object:
    """A copy of ``obj`` with every item of the list at ``path`` changed."""
    below = obj.get(path[0])
    if len(path) == 1:
        if not isinstance(below, list):
            return obj
        changed = [change(item) if isinstance(item, dict) else item for item in below]
        return {**obj, path[0]: changed}
    if not isinstance(below, dict):
        return obj
    return {**obj, path[0]: _at(below, path[1:], change)}
