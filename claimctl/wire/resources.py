"""The resources that claimctl uses, each with its path and its struct."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from claimctl.wire.claims import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from claimctl.wire.coordination import Event, Lease
from claimctl.wire.device_classes import DeviceClass
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.nodes import Node
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation, DowngradePlan
from claimctl.wire.workload_kinds import WorkloadKind
from claimctl.wire.workloads import Deployment, Job, ReplicaSet, StatefulSet

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Resource(Generic[T]):
    """A kind in one group and version. ``group`` is empty for the core group."""

    group: str
    version: str
    plural: str
    kind: str
    type: type[T]
    namespaced: bool = True

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """The request path. Without a namespace, a namespaced kind means all namespaces."""
        parts = ["/apis", self.group, self.version] if self.group else ["/api", self.version]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/".join(parts)


def read_as(resource: Resource[Any], type_: type[T]) -> Resource[T]:
    """The same resource, decoded to another struct."""
    names = resource.group, resource.version, resource.plural, resource.kind
    return Resource(*names, type_, resource.namespaced)


def kind_of(api: str, type_: type[T], *, namespaced: bool = True) -> Resource[T]:
    """The resource of a kind that its struct is named after, with a regular plural."""
    group, _, version = api.rpartition("/")
    kind = type_.__name__
    plural = f"{kind.lower()}{'es' if kind.endswith('s') else 's'}"
    return Resource(group, version, plural, kind, type_, namespaced)


PODS = kind_of("v1", Pod)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", ObjectHeader, namespaced=False)
NODES = kind_of("v1", Node, namespaced=False)
DEPLOYMENTS = kind_of("apps/v1", Deployment)
REPLICASETS = kind_of("apps/v1", ReplicaSet)
STATEFULSETS = kind_of("apps/v1", StatefulSet)
JOBS = kind_of("batch/v1", Job)
RESOURCECLAIMS = kind_of("resource.k8s.io/v1", ResourceClaim)
RESOURCECLAIMTEMPLATES = kind_of("resource.k8s.io/v1", ResourceClaimTemplate)
RESOURCESLICES = kind_of("resource.k8s.io/v1", ResourceSlice, namespaced=False)
DEVICECLASSES = kind_of("resource.k8s.io/v1", DeviceClass, namespaced=False)
PODGROUPS = kind_of("scheduling.k8s.io/v1beta1", PodGroup)
LEASES = kind_of("coordination.k8s.io/v1", Lease)
EVENTS = kind_of("events.k8s.io/v1", Event)
CLAIMRESERVATIONS = kind_of("claimctl.io/v1alpha1", ClaimReservation)
DOWNGRADEPLANS = kind_of("claimctl.io/v1alpha1", DowngradePlan, namespaced=False)
WORKLOADKINDS = kind_of("claimctl.io/v1alpha1", WorkloadKind, namespaced=False)

WORKLOADS: Mapping[tuple[str, str], Resource[Any]] = {
    (resource.group, resource.kind): resource for resource in (DEPLOYMENTS, STATEFULSETS, JOBS)
}
"""The kinds of workloads whose pod templates claimctl reads, by API group and kind."""
