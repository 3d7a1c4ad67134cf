"""The resources that claimctl uses, each with its path and its struct."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from claimctl.wire.claims import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from claimctl.wire.coordination import Event, Lease
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


PODS = Resource("", "v1", "pods", "Pod", Pod)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", ObjectHeader, namespaced=False)
NODES = Resource("", "v1", "nodes", "Node", Node, namespaced=False)
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", Deployment)
REPLICASETS = Resource("apps", "v1", "replicasets", "ReplicaSet", ReplicaSet)
STATEFULSETS = Resource("apps", "v1", "statefulsets", "StatefulSet", StatefulSet)
JOBS = Resource("batch", "v1", "jobs", "Job", Job)
RESOURCECLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim", ResourceClaim)
RESOURCECLAIMTEMPLATES = Resource(
    "resource.k8s.io",
    "v1",
    "resourceclaimtemplates",
    "ResourceClaimTemplate",
    ResourceClaimTemplate,
)
RESOURCESLICES = Resource(
    "resource.k8s.io", "v1", "resourceslices", "ResourceSlice", ResourceSlice, namespaced=False
)
PODGROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", "PodGroup", PodGroup)
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease", Lease)
EVENTS = Resource("events.k8s.io", "v1", "events", "Event", Event)
CLAIMRESERVATIONS = Resource(
    "claimctl.io", "v1alpha1", "claimreservations", "ClaimReservation", ClaimReservation
)
DOWNGRADEPLANS = Resource(
    "claimctl.io",
    "v1alpha1",
    "downgradeplans",
    "DowngradePlan",
    DowngradePlan,
    namespaced=False,
)
WORKLOADKINDS = Resource(
    "claimctl.io", "v1alpha1", "workloadkinds", "WorkloadKind", WorkloadKind, namespaced=False
)

WORKLOADS: Mapping[tuple[str, str], Resource[Any]] = {
    (resource.group, resource.kind): resource for resource in (DEPLOYMENTS, STATEFULSETS, JOBS)
}
"""The kinds of workloads whose pod templates claimctl reads, by API group and kind."""
