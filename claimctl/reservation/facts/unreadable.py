"""Objects that cannot be read, and the claims that they may concern.

An unreadable object exists, and its content is unknown. So the worst is assumed: a pod runs on the
claim, a ReplicaSet makes pods for it, a ClaimReservation holds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from claimctl.reservation.facts.references import groups_in
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import PodResourceClaim
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    DOWNGRADEPLANS,
    PODGROUPS,
    PODS,
    REPLICASETS,
    RESOURCECLAIMS,
)
from claimctl.wire.unreadable import Unreadable

_ENTRIES: Mapping[str, tuple[str, ...]] = {
    PODS.plural: ("spec.resourceClaims", "status.resourceClaimStatuses"),
    REPLICASETS.plural: ("spec.template.spec.resourceClaims",),
    PODGROUPS.plural: ("spec.resourceClaims",),
}
"""By plural: the lists of an object whose entries name claims."""
_EXTENDED = "status.extendedResourceClaimStatus.resourceClaimName"


def claims_named(unread: Unreadable) -> frozenset[str] | None:
    """The claims that the object names in its own namespace; None if that cannot be read."""
    plural, names = unread.resource.plural, set[str | None]()
    if plural == RESOURCECLAIMS.plural:
        return frozenset((unread.name,)) if unread.name else None
    if plural == CLAIMRESERVATIONS.plural:
        name = unread.read("spec.resourceClaimName", str, "")
        return frozenset((name,)) if name else None
    for path in _ENTRIES.get(plural, ()):
        entries = unread.read(path, tuple[PodResourceClaim, ...], ())
        if entries is None:
            return None
        names |= {entry.resource_claim_name for entry in entries}
    if plural == PODS.plural:
        extended = unread.read(_EXTENDED, str, "")
        if extended is None:
            return None
        names.add(extended)
    return frozenset(filter(None, names))


def may_concern(unread: Unreadable, namespace: str, name: str, claim: ResourceClaim | None) -> bool:
    """Whether the unreadable object may concern the claim.

    Args:
        claim: the claim, or None if it is unknown.
    """
    if not unread.may_be_in(namespace):
        return False
    if unread.resource.plural == PODGROUPS.plural and claim is not None:
        listed = groups_in(claim.status.reserved_for)
        if unread.name in listed or (listed and not unread.name):
            return True
    names = claims_named(unread)
    return names is None or name in names


def may_freeze(plan: Unreadable, namespace: str) -> bool:
    """Whether the object is a DowngradePlan that may freeze the namespace."""
    if plan.resource.plural != DOWNGRADEPLANS.plural:
        return False
    namespaces = plan.read("spec.namespaces", tuple[str, ...], ())
    return not namespaces or namespace in namespaces


def about_claim(unread: Iterable[Unreadable]) -> tuple[Unreadable, ...]:
    """The objects because of which the controller leaves the claim alone: the claim itself, and
    ClaimReservations that certainly name it."""
    return tuple(
        item
        for item in unread
        if item.resource.plural == RESOURCECLAIMS.plural
        or (item.resource.plural == CLAIMRESERVATIONS.plural and claims_named(item) is not None)
    )
