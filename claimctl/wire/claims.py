"""resource.k8s.io: ResourceClaim, ResourceClaimTemplate, ResourceSlice."""

from __future__ import annotations

from datetime import datetime

import msgspec

from claimctl.wire.base import Wire
from claimctl.wire.meta import ManagedObjectMeta, ObjectMeta


class Reference(Wire):
    """One entry of ``status.reservedFor`` (ResourceClaimConsumerReference)."""

    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceRequestAllocationResult(Wire):
    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool = False


class DeviceAllocationResult(Wire):
    results: tuple[DeviceRequestAllocationResult, ...] | None = None


class NodeSelectorRequirement(Wire):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None


class NodeSelectorTerm(Wire):
    match_expressions: tuple[NodeSelectorRequirement, ...] | None = None
    match_fields: tuple[NodeSelectorRequirement, ...] | None = None


class NodeSelector(Wire):
    node_selector_terms: tuple[NodeSelectorTerm, ...] | None = None


class AllocationResult(Wire):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: datetime | None = None
    reserved_for_any_pod: bool = False
    """KEP-5194: pods are not listed and the kubelet starts any pod that names the claim."""


class ResourceClaimSpec(Wire):
    reserved_for: Reference | None = None
    """KEP-5194: the workload the claim was created for; set by its creator, immutable."""


class ResourceClaimStatus(Wire):
    allocation: AllocationResult | None = None
    reserved_for: tuple[Reference, ...] = ()


class ResourceClaim(Wire):
    api_version: str = ""
    kind: str = ""
    metadata: ManagedObjectMeta = ManagedObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Wire):
    metadata: ObjectMeta = ObjectMeta()
    spec: msgspec.Raw = msgspec.Raw(b"{}")


class ResourceClaimTemplate(Wire):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


class DeviceTaint(Wire):
    key: str = ""
    value: str = ""
    effect: str = ""


class Device(Wire):
    name: str = ""
    taints: tuple[DeviceTaint, ...] | None = None


class ResourcePool(Wire):
    name: str = ""
    generation: int = 0
    resource_slice_count: int = 0


class ResourceSliceSpec(Wire):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str = ""
    devices: tuple[Device, ...] | None = None


class ResourceSlice(Wire):
    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceSliceSpec = ResourceSliceSpec()
