"""resource.k8s.io in full: what a claim requests, and what drivers publish.

``wire.claims`` has the small structs that the controller keeps in its caches.
"""

from __future__ import annotations

import msgspec

from claimctl.wire import claims
from claimctl.wire.base import EMPTY, Present, Wire, null_is_empty
from claimctl.wire.device_classes import DeviceSelector
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.nodes import Taint, Toleration


class DeviceSubRequest(Wire, frozen=True, kw_only=True):
    """One of the alternatives of ``firstAvailable``; ``ExactDeviceRequest`` without a name."""

    name: str = ""
    device_class_name: str = ""
    selectors: tuple[DeviceSelector, ...] = ()
    allocation_mode: str = "ExactCount"
    count: int = 1
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    capacity: Present | None = None
    """The capacity that the request consumes (consumable capacity)."""


class DeviceRequest(DeviceSubRequest, frozen=True, kw_only=True):
    """One request of a claim. v1 has the fields below ``exactly``, v1beta1 in the request."""

    exactly: DeviceSubRequest | None = None
    first_available: tuple[DeviceSubRequest, ...] = ()


class DeviceConstraint(Wire, frozen=True, kw_only=True):
    """Without ``requests``, the constraint is for all requests of the claim."""

    requests: tuple[str, ...] = ()
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Wire, frozen=True, kw_only=True):
    requests: tuple[DeviceRequest, ...] = ()
    constraints: tuple[DeviceConstraint, ...] = ()


class SchedulingClaimSpec(claims.ResourceClaimSpec, frozen=True, kw_only=True):
    devices: DeviceClaim = DeviceClaim()


class SchedulingClaim(claims.ResourceClaim, frozen=True, kw_only=True):
    spec: SchedulingClaimSpec = SchedulingClaimSpec()


class ClaimTemplateSpec(Wire, frozen=True, kw_only=True):
    spec: SchedulingClaimSpec = SchedulingClaimSpec()


class ClaimTemplate(ObjectHeader, frozen=True, kw_only=True):
    """A ResourceClaimTemplate with a decoded spec."""

    spec: ClaimTemplateSpec = ClaimTemplateSpec()


class DeviceDetails(claims.BasicDevice, frozen=True, kw_only=True):
    """The details of a device in v1beta1. Attributes and capacity are plain JSON, by name."""

    attributes: msgspec.Raw = EMPTY
    capacity: msgspec.Raw = EMPTY
    consumes_counters: tuple[Present, ...] = ()

    def __post_init__(self) -> None:
        null_is_empty(self, "attributes", self.attributes)
        null_is_empty(self, "capacity", self.capacity)


class PublishedDevice(claims.Device, frozen=True, kw_only=True):
    """One device of a ResourceSlice. v1beta1 has what ``DeviceDetails`` has below ``basic``."""

    basic: DeviceDetails | None = None
    attributes: msgspec.Raw = EMPTY
    capacity: msgspec.Raw = EMPTY
    consumes_counters: tuple[Present, ...] = ()
    allow_multiple_allocations: bool = False
    binding_conditions: tuple[str, ...] = ()
    node_name: str | None = None
    node_selector: claims.NodeSelector | None = None
    all_nodes: bool = False

    def __post_init__(self) -> None:
        null_is_empty(self, "attributes", self.attributes)
        null_is_empty(self, "capacity", self.capacity)


class SchedulingSliceSpec(claims.ResourceSliceSpec, frozen=True, kw_only=True):
    """``node_name``, ``node_selector`` or ``all_nodes`` say where the devices can be used."""

    devices: tuple[PublishedDevice, ...] | None = None
    node_selector: claims.NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False


class SchedulingSlice(claims.ResourceSlice, frozen=True, kw_only=True):
    spec: SchedulingSliceSpec = SchedulingSliceSpec()


class RuledDevices(Wire, frozen=True, kw_only=True):
    """The devices that a DeviceTaintRule taints. What it does not name may be any."""

    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class TaintRuleSpec(Wire, frozen=True, kw_only=True):
    device_selector: RuledDevices | None = None
    """None: no device."""
    taint: Taint = Taint()


class DeviceTaintRule(ObjectHeader, frozen=True, kw_only=True):
    """A taint of devices that an administrator sets (v1beta2)."""

    spec: TaintRuleSpec = TaintRuleSpec()

    def concerns(self, driver: str, pool: str, device: str) -> bool:
        """Whether it taints this device."""
        chosen = self.spec.device_selector
        return chosen is not None and (
            chosen.driver in (None, driver)
            and chosen.pool in (None, pool)
            and chosen.device in (None, device)
        )
