"""resource.k8s.io: ResourceClaim, ResourceClaimTemplate, ResourceSlice."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Annotated

import msgspec

from claimctl.wire.base import EMPTY, Present, Wire, decode, null_is_empty
from claimctl.wire.limits import REQUIRED, ObjectName, Uid
from claimctl.wire.meta import Condition, ManagedObjectMeta, ObjectHeader, ObjectMeta
from claimctl.wire.nodes import Taint, Toleration

CLAIM_FINALIZER = "resource.kubernetes.io/delete-protection"
"""The scheduler adds this finalizer before it allocates. Whatever deallocates removes it."""


UNCHANGEABLE = (
    "the parameters of its device configuration are not in the API server's own form, so the API "
    "server refuses every change of the claim: make the claim again with kubectl, which writes "
    "that form"
)


class Reference(Wire, frozen=True, kw_only=True):
    """An entry of a ResourceClaim's status.reservedFor."""

    api_group: ObjectName = ""
    """The API group of the object; empty for the core group."""
    resource: Annotated[ObjectName, REQUIRED] = ""
    """The plural name of the object's resource, like deployments."""
    name: Annotated[ObjectName, REQUIRED] = ""
    """The name of the object."""
    uid: Annotated[Uid, REQUIRED] = ""
    """The UID of the object."""

    @property
    def key(self) -> tuple[str, str, str]:
        """Group, resource and name: the same for all objects that had this name."""
        return self.api_group, self.resource, self.name


class DeviceRequestAllocationResult(Wire, frozen=True, kw_only=True):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False
    tolerations: tuple[Toleration, ...] = ()
    """The tolerations of the request at the time of the allocation."""
    binding_conditions: tuple[str, ...] = ()
    """Conditions of the device for which the scheduler waits before it binds a pod."""
    binding_failure_conditions: tuple[str, ...] = ()


class DeviceAllocationResult(Wire, frozen=True, kw_only=True):
    results: tuple[DeviceRequestAllocationResult, ...] | None = None


class NodeSelectorRequirement(Wire, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Wire, frozen=True, kw_only=True):
    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(Wire, frozen=True, kw_only=True):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class AllocationResult(Wire, frozen=True, kw_only=True):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None
    reserved_for_any_pod: bool = False
    """KEP-5194: pods are not listed, and the kubelet starts any pod that names the claim."""


class ResourceClaimSpec(Wire, frozen=True, kw_only=True):
    reserved_for: Reference | None = None
    """KEP-5194: the workload that the claim was created for. Its creator sets it; immutable."""


class AllocatedDeviceStatus(Wire, frozen=True, kw_only=True):
    """What a driver reports about a device of a claim."""

    driver: str = ""
    pool: str = ""
    device: str = ""
    conditions: tuple[Condition, ...] = ()


class ResourceClaimStatus(Wire, frozen=True, kw_only=True):
    allocation: AllocationResult | None = None
    reserved_for: tuple[Reference, ...] = ()
    devices: msgspec.Raw = EMPTY
    """A list of ``AllocatedDeviceStatus``. Drivers write it, so it is decoded apart."""

    def __post_init__(self) -> None:
        null_is_empty(self, "devices", self.devices)

    def reported(self, of: DeviceRequestAllocationResult) -> tuple[Condition, ...]:
        """The conditions that a driver reports about a device; none if they cannot be read."""
        with suppress(msgspec.DecodeError):
            for device in decode(self.devices, tuple[AllocatedDeviceStatus, ...]):
                if (device.driver, device.pool, device.device) == (of.driver, of.pool, of.device):
                    return device.conditions
        return ()


class ResourceClaim(ObjectHeader, frozen=True, kw_only=True):
    metadata: ManagedObjectMeta = ManagedObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()

    @property
    def is_open_to_any(self) -> bool:
        """Whether the allocation lets pods use the claim that its list does not name (KEP-5194)."""
        allocation = self.status.allocation
        return allocation is not None and allocation.reserved_for_any_pod

    @property
    def devices(self) -> tuple[DeviceRequestAllocationResult, ...]:
        """The allocated devices; none without an allocation."""
        allocation = self.status.allocation
        return allocation.devices.results or () if allocation is not None else ()

    @property
    def nodes_named(self) -> frozenset[str]:
        """The nodes that the allocation names: those of devices that belong to a node."""
        allocation = self.status.allocation
        selector = allocation.node_selector if allocation is not None else None
        terms = selector.node_selector_terms or () if selector is not None else ()
        rules = (rule for term in terms for rule in term.match_fields or ())
        names = (rule.values or () for rule in rules if rule.key == "metadata.name")
        return frozenset(name for values in names for name in values)


class ResourceClaimTemplateSpec(Wire, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = EMPTY

    def __post_init__(self) -> None:
        null_is_empty(self, "spec", self.spec)


class ResourceClaimTemplate(ObjectHeader, frozen=True, kw_only=True):
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class NodeAllocatableResource(Wire, frozen=True, kw_only=True):
    mapping: Present | None = None
    """Set if the device is a part of the node's own resource, such as its cpus."""


class BasicDevice(Wire, frozen=True, kw_only=True):
    """The fields that v1beta1 has below ``basic`` and later versions in the device itself."""

    taints: tuple[Taint, ...] | None = None
    binding_conditions: tuple[str, ...] | None = None


class Device(BasicDevice, frozen=True, kw_only=True):
    name: str = ""
    basic: BasicDevice | None = None
    node_allocatable_resources: Mapping[str, NodeAllocatableResource] | None = None
    """From 1.37 on (KEP-5517)."""
    node_allocatable_resource_mappings: Mapping[str, Present] | None = None
    """The same in 1.36, where every entry is a mapping."""

    @property
    def all_taints(self) -> tuple[Taint, ...]:
        """The taints, in either version."""
        return self.taints or (self.basic.taints if self.basic else None) or ()

    @property
    def has_binding_conditions(self) -> bool:
        """Whether the scheduler waits for conditions of the device, in either version."""
        return bool(self.binding_conditions or (self.basic and self.basic.binding_conditions))

    @property
    def is_for_one_pod(self) -> bool:
        """Whether the scheduler lets no pod use the device beside another that is listed."""
        resources = (self.node_allocatable_resources or {}).values()
        mapped = any(resource.mapping is not None for resource in resources)
        return mapped or bool(self.node_allocatable_resource_mappings)

    @property
    def is_special(self) -> bool:
        """Whether decisions look at more of the device than its name."""
        return bool(self.all_taints) or self.has_binding_conditions or self.is_for_one_pod


class ResourcePool(Wire, frozen=True, kw_only=True):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Wire, frozen=True, kw_only=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    devices: tuple[Device, ...] | None = None


class ResourceSlice(ObjectHeader, frozen=True, kw_only=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()
