"""Objects that cannot be read, and the claims that they may concern.

An unreadable object exists, and its content is unknown. So the worst is assumed: a pod runs on the
claim, a ReplicaSet makes pods for it, a ClaimReservation holds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from claimctl.reservation.facts.references import is_pod_group
from claimctl.wire.base import Wire
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.podgroups import PodGroupSpec
from claimctl.wire.pods import (
    PodExtendedResourceClaimStatus,
    PodResourceClaim,
    PodResourceClaimStatus,
)
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DOWNGRADEPLANS,
    PODGROUPS,
    PODS,
    REPLICASETS,
    RESOURCECLAIMS,
)
from claimctl.wire.unreadable import Unreadable


class _PodSpec(Wire, frozen=True, kw_only=True):
    resource_claims: tuple[PodResourceClaim, ...] = ()


class _PodStatus(Wire, frozen=True, kw_only=True):
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None


class _Pod(Wire, frozen=True, kw_only=True):
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


class _PodPlace(Wire, frozen=True, kw_only=True):
    node_name: str = ""


class _PlacedPod(Wire, frozen=True, kw_only=True):
    spec: _PodPlace = _PodPlace()


class _Template(Wire, frozen=True, kw_only=True):
    spec: _PodSpec = _PodSpec()


class _ReplicaSetSpec(Wire, frozen=True, kw_only=True):
    template: _Template = _Template()


class _ReplicaSet(Wire, frozen=True, kw_only=True):
    spec: _ReplicaSetSpec = _ReplicaSetSpec()


class _Named(Wire, frozen=True, kw_only=True):
    name: str = ""


class _WorkloadSpec(Wire, frozen=True, kw_only=True):
    workload_ref: _Named = _Named()


class _ReservationOfWorkload(Wire, frozen=True, kw_only=True):
    spec: _WorkloadSpec = _WorkloadSpec()


class _ReservationSpec(Wire, frozen=True, kw_only=True):
    resource_claim_name: str = ""


class _Reservation(Wire, frozen=True, kw_only=True):
    spec: _ReservationSpec = _ReservationSpec()


class _Group(Wire, frozen=True, kw_only=True):
    spec: PodGroupSpec = PodGroupSpec()


class _PlanSpec(Wire, frozen=True, kw_only=True):
    namespaces: tuple[str, ...] = ()


class _Plan(Wire, frozen=True, kw_only=True):
    spec: _PlanSpec = _PlanSpec()


def claims_named(unread: Unreadable) -> frozenset[str] | None:
    """The claims that the object names in its own namespace; None if that cannot be read."""
    match unread.resource.plural:
        case RESOURCECLAIMS.plural:
            return frozenset((unread.name,)) if unread.name else None
        case PODS.plural:
            pod: _Pod | None = unread.part(_Pod)
            if pod is None:
                return None
            extended = pod.status.extended_resource_claim_status
            names = _names((*pod.spec.resource_claims, *pod.status.resource_claim_statuses))
            return names | {extended.resource_claim_name} if extended is not None else names
        case REPLICASETS.plural:
            part: _ReplicaSet | None = unread.part(_ReplicaSet)
            return None if part is None else _names(part.spec.template.spec.resource_claims)
        case CLAIMRESERVATIONS.plural:
            reservation: _Reservation | None = unread.part(_Reservation)
            name = reservation.spec.resource_claim_name if reservation else ""
            return frozenset((name,)) if name else None
        case PODGROUPS.plural:
            group: _Group | None = unread.part(_Group)
            return None if group is None else _names(group.spec.resource_claims)
    return frozenset()


def _names(entries: Iterable[Any]) -> frozenset[str]:
    return frozenset(filter(None, (entry.resource_claim_name for entry in entries)))


def workload_named(reservation: Unreadable) -> str | None:
    """The name of the workload in a ClaimReservation; None if it cannot be read."""
    part: _ReservationOfWorkload | None = reservation.part(_ReservationOfWorkload)
    return part.spec.workload_ref.name or None if part is not None else None


def node_of(pod: Unreadable) -> str:
    """The node that a pod names, or ''."""
    part: _PlacedPod | None = pod.part(_PlacedPod)
    return part.spec.node_name if part is not None else ""


def may_concern(unread: Unreadable, namespace: str, name: str, claim: ResourceClaim | None) -> bool:
    """Whether the unreadable object may concern the claim.

    Args:
        claim: the claim, or None if it is unknown.
    """
    if not unread.may_be_in(namespace):
        return False
    if unread.resource.plural == PODGROUPS.plural and claim is not None:
        listed = {entry.name for entry in claim.status.reserved_for if is_pod_group(entry)}
        if unread.name in listed or (listed and not unread.name):
            return True
    names = claims_named(unread)
    return names is None or name in names


def may_freeze(plan: Unreadable, namespace: str) -> bool:
    """Whether the object is a DowngradePlan that may freeze the namespace."""
    if plan.resource.plural != DOWNGRADEPLANS.plural:
        return False
    part: _Plan | None = plan.part(_Plan)
    return part is None or not part.spec.namespaces or namespace in part.spec.namespaces


def about_claim(unread: Iterable[Unreadable]) -> tuple[Unreadable, ...]:
    """The objects because of which the controller leaves the claim alone.

    These are the claim itself, and ClaimReservations that certainly name it.
    """
    return tuple(
        item
        for item in unread
        if item.resource.plural == RESOURCECLAIMS.plural
        or (item.resource.plural == CLAIMRESERVATIONS.plural and claims_named(item) is not None)
    )
