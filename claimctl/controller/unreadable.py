"""The unreadable objects in the caches, and the keys that they concern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from claimctl.controller.caches.informers import Caches, reserved_key
from claimctl.controller.keys import ClaimKey, WorkloadKey
from claimctl.reservation.facts.unreadable import claims_named, may_concern
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.resources import CLAIMRESERVATIONS, NODES, RESOURCESLICES, WORKLOADS
from claimctl.wire.unreadable import Unreadable


class UnreadableObjects:
    """The unreadable objects of all caches."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def about(self, key: ClaimKey, claim: ResourceClaim | None) -> tuple[Unreadable, ...]:
        """The unreadable objects that may concern the claim, except workloads."""
        return tuple(i for i in self._caches.unread() if may_concern(i, *key, claim))

    def about_reservations_for(self, key: WorkloadKey) -> Unreadable | None:
        """An unreadable ClaimReservation that may be the workload's; else None."""
        for item in self._caches.reservations.unread():
            named = item.read("spec.workloadRef.name", str, "") or key.name
            if item.may_be_in(key.namespace) and named == key.name:
                return item
        return None

    def claims(self, unread: Unreadable) -> Iterator[ClaimKey]:
        """The claims that the object names or may concern."""
        plural = unread.resource.plural
        if plural in (NODES.plural, RESOURCESLICES.plural):
            return
        if plural in {resource.plural for resource in WORKLOADS.values()}:
            yield from self._reserved_for(unread)
        elif (names := claims_named(unread)) is not None and unread.namespace:
            yield from (ClaimKey(unread.namespace, name) for name in sorted(names))
        else:
            yield from self.all_in(unread)

    def all_in(self, unread: Unreadable) -> list[ClaimKey]:
        """Every claim of the object's namespace, or of all namespaces if it is unknown."""
        keys = {ClaimKey(*claim.metadata.key) for claim in self._caches.claims.items()}
        keys |= {reserved_key(reservation) for reservation in self._caches.reservations.items()}
        return sorted(key for key in keys if unread.may_be_in(key.namespace))

    def _reserved_for(self, workload: Unreadable) -> Iterable[ClaimKey]:
        for reservation in self._caches.reservations.items():
            same = reservation.spec.workload_ref.name == workload.name or not workload.name
            if same and workload.may_be_in(reservation.metadata.namespace):
                yield reserved_key(reservation)

    def workloads(self, unread: Unreadable) -> Iterator[WorkloadKey]:
        """The workloads that an unreadable workload or ClaimReservation may concern."""
        for kind, informer in self._caches.workloads.items():
            of_kind = unread.resource.plural in (informer.resource.plural, CLAIMRESERVATIONS.plural)
            for workload in informer.items() if of_kind else ():
                key = WorkloadKey(*kind, workload.metadata.namespace, workload.metadata.name)
                if unread.may_be_in(key.namespace):
                    yield key
