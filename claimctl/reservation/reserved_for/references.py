"""Entries of ``status.reservedFor``: what they are and how they are made."""

from __future__ import annotations

from claimctl.wire.claims import Reference
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import TOMBSTONE_GROUP, TOMBSTONE_RESOURCE, WorkloadRef

LIMIT = 256
"""The most entries the API server accepts (ResourceClaimReservedForMaxSize)."""

NEAR_LIMIT = 240
"""From here on a list is reported as nearly full."""

WORKLOAD_RESOURCES = {
    ("apps", "Deployment"): "deployments",
    ("apps", "StatefulSet"): "statefulsets",
    ("batch", "Job"): "jobs",
}
"""The workload kinds claimctl reserves for, with their resource names."""

POD_GROUP = ("scheduling.k8s.io", "podgroups")


def is_pod(reference: Reference) -> bool:
    return not reference.api_group and reference.resource == "pods"


def is_tombstone(reference: Reference) -> bool:
    return (reference.api_group, reference.resource) == (TOMBSTONE_GROUP, TOMBSTONE_RESOURCE)


def is_pod_group(reference: Reference) -> bool:
    return (reference.api_group, reference.resource) == POD_GROUP


def is_workload(reference: Reference) -> bool:
    """Anything that is neither a pod nor the tombstone of one."""
    return not is_pod(reference) and not is_tombstone(reference)


def pod_reference(meta: ObjectMeta) -> Reference:
    return Reference(resource="pods", name=meta.name, uid=meta.uid)


def tombstone(pod: Reference | ObjectMeta) -> Reference:
    """What stands in a list in place of a finished pod: KCM finds the UID and is content."""
    return Reference(
        api_group=TOMBSTONE_GROUP, resource=TOMBSTONE_RESOURCE, name=pod.name, uid=pod.uid
    )


def workload_reference(ref: WorkloadRef, uid: str) -> Reference:
    """The reference to one incarnation of a workload.

    Raises:
        KeyError: the kind is none that claimctl reserves for.
    """
    resource = WORKLOAD_RESOURCES[ref.api_group, ref.kind]
    return Reference(api_group=ref.api_group, resource=resource, name=ref.name, uid=uid)


def same_name(one: Reference, other: Reference) -> bool:
    """Whether both name the same object, whatever its incarnation."""
    return (one.api_group, one.resource, one.name) == (
        other.api_group,
        other.resource,
        other.name,
    )
