"""The dialects of the reservation API: how a cluster lets a workload hold a claim.

- ``hold``: the list of a claim names the workload beside the pods.
- ``native`` (KEP-5194): the list of a claim that was created for the workload names it and no pods.
- ``podgroup`` (KEP-5729): the list may name a PodGroup in place of its pods, beside the workload.

A snapshot has the dialect of its cluster. Decisions ask it wherever the servers of these clusters
differ. A further difference is one more method of ``Dialect``.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import is_pod
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import ClaimReservation


class Dialect:
    """The dialect ``hold``, of clusters without the two KEPs. The other dialects override what
    their servers do differently."""

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
        """Seconds since a pod could last start without an entry of its own in the list.

        Args:
            holder_age: seconds since the list last had an entry that is no pod.
        """
        return inf

    def kept_at_fence(self, entries: tuple[Reference, ...]) -> tuple[Reference, ...]:
        """Which of the claim's holds and tombstones stay in the list at a fence."""
        return entries


class NativeDialect(Dialect):
    """The dialect ``native``: ``spec.reservedFor`` names the workload, and pods are not listed.

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
        # the claim was allocated for the pods that it lists
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

    def kept_at_fence(self, entries: tuple[Reference, ...]) -> tuple[Reference, ...]:
        return ()


class PodGroupDialect(Dialect):
    """The dialect ``podgroup``: pods share the claim through the entry of their PodGroup. A claim
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
