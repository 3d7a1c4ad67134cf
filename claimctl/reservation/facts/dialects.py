"""The dialects of the reservation API: which claims may have a workload reference."""

from __future__ import annotations

from typing import Protocol

from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import same_name
from claimctl.wire.claims import Reference, ResourceClaim


class Dialect(Protocol):
    """How a cluster lets a workload hold a claim."""

    name: str
    groups: bool
    """Whether pods can share a claim through PodGroups."""
    lists_beside_others: bool
    """Whether the scheduler adds pods to a list that has entries that are no pods.

    If it does not, claimctl has to fence such a claim; only then does the scheduler write to the
    claim before it binds a pod.
    """

    def refuses(self, claim: ResourceClaim, workload: Reference) -> Reason | None:
        """Why the claim cannot be reserved for this incarnation of the workload, or None."""
        ...

    def created_for(self, workload: Reference) -> Reference | None:
        """The ``spec.reservedFor`` of a claim that claimctl creates for the workload."""
        ...


class Native:
    """KEP-5194: ``spec.reservedFor`` names the workload, and pods are not listed.

    In the list of any other claim, a workload reference would keep pods from running: the
    scheduler adds no pods beside it, and the kubelet refuses pods that are not listed.
    """

    name = "native"
    groups = False
    lists_beside_others = False

    def refuses(self, claim: ResourceClaim, workload: Reference) -> Reason | None:
        created_for = claim.spec.reserved_for
        if created_for is None:
            return Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD
        if not same_name(created_for, workload):
            return Reason.ALREADY_RESERVED_FOR
        if created_for.uid != workload.uid:
            return Reason.WORKLOAD_RECREATED
        allocation = claim.status.allocation
        if allocation is not None and not allocation.reserved_for_any_pod:
            return Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD
        return None

    def created_for(self, workload: Reference) -> Reference | None:
        return workload


class Hold:
    """Clusters without KEP-5194: the workload's reference is listed beside the pods'."""

    name = "hold"
    groups = False
    lists_beside_others = True

    def refuses(self, claim: ResourceClaim, workload: Reference) -> Reason | None:
        return None

    def created_for(self, workload: Reference) -> Reference | None:
        return None


class Group(Hold):
    """KEP-5729: pods share the claim through their PodGroup's reference.

    The workload's reference beside it is the hold. A claim that lists no group is held and released
    as in ``hold``.
    """

    name = "podgroup"
    groups = True


DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (Native(), Group(), Hold())}
