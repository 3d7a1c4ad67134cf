"""The dialects of the reservation API: how a cluster lets a workload hold a claim.

A snapshot has the dialect of its cluster. Decisions ask it in the words of the protocol: may pods
start on this list without a write to the claim, and which entries stay at a fence?
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import is_pod
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import ClaimReservation

References = tuple[Reference, ...]


class Dialect:
    """The dialect ``hold``, of clusters without KEP-5194: claims list the workload's reference
    beside the pods'. The other dialects override what servers do differently there."""

    name = "hold"
    groups = False
    """Whether pods can share a claim through PodGroups."""

    def refuses(self, claim: ResourceClaim, workload: Reference) -> Reason | None:
        """Why the claim cannot be reserved for this incarnation of the workload, or None."""
        return None

    def created_for(self, workload: Reference) -> Reference | None:
        """The ``spec.reservedFor`` of a claim that claimctl creates for the workload."""
        return None

    def lists_each_pod(self, claim: ResourceClaim) -> bool:
        """Whether schedulers list each pod that has no PodGroup before they bind it."""
        return not claim.is_open_to_any

    def admits_unlisted(self, entries: Iterable[Reference]) -> bool:
        """Whether schedulers bind any pod beside these entries without a write to the claim. Then
        claimctl has to fence the claim before a release."""
        return False

    def unlisted_age(self, holder_age: float) -> float:
        """For how many seconds the list has named each pod that may start.

        Args:
            holder_age: seconds since the list last had an entry that is no pod.
        """
        return inf

    def leaves_at_fence(self, entries: References) -> References:
        """Which of the claim's holds and tombstones stay in the list at a fence."""
        return entries


class NativeDialect(Dialect):
    """KEP-5194: ``spec.reservedFor`` names the workload, and pods are not listed.

    In the list of any other claim, a workload reference would keep pods from running: the
    scheduler adds no pods beside it, and the kubelet refuses pods that are not listed.
    """

    name = "native"

    def refuses(self, claim: ResourceClaim, workload: Reference) -> Reason | None:
        created_for = claim.spec.reserved_for
        if created_for is None:
            return Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD
        if created_for.key != workload.key:
            return Reason.ALREADY_RESERVED_FOR
        if created_for.uid != workload.uid:
            return Reason.WORKLOAD_RECREATED
        listed = claim.status.allocation is not None and not claim.is_open_to_any
        return Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD if listed else None

    def created_for(self, workload: Reference) -> Reference | None:
        return workload

    def lists_each_pod(self, claim: ResourceClaim) -> bool:
        return False

    def admits_unlisted(self, entries: Iterable[Reference]) -> bool:
        return not all(map(is_pod, entries))

    def unlisted_age(self, holder_age: float) -> float:
        return holder_age

    def leaves_at_fence(self, entries: References) -> References:
        return ()


class PodGroupDialect(Dialect):
    """KEP-5729: pods share the claim through their PodGroup's reference, beside the hold. A claim
    that lists no group is held and released as in ``hold``."""

    name = "podgroup"
    groups = True


DIALECTS: dict[str, Dialect] = {
    dialect.name: dialect for dialect in (NativeDialect(), PodGroupDialect(), Dialect())
}


def recorded_dialect(reservations: Iterable[ClaimReservation]) -> str:
    """The dialect that a controller found; '' if no status has one."""
    dialects = (reservation.status.dialect for reservation in reservations)
    return next((dialect for dialect in dialects if dialect in DIALECTS), "")
