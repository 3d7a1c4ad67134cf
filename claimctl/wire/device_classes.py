"""resource.k8s.io: DeviceClass."""

from __future__ import annotations

from claimctl.wire.base import Wire
from claimctl.wire.meta import ObjectHeader


class CelSelector(Wire, frozen=True, kw_only=True):
    expression: str = ""


class DeviceSelector(Wire, frozen=True, kw_only=True):
    cel: CelSelector | None = None
    """None in a selector of a kind that claimctl does not know."""


class DeviceClassSpec(Wire, frozen=True, kw_only=True):
    selectors: tuple[DeviceSelector, ...] = ()
    extended_resource_name: str | None = None


class DeviceClass(ObjectHeader, frozen=True, kw_only=True):
    spec: DeviceClassSpec = DeviceClassSpec()
