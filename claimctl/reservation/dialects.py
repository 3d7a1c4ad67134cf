"""One strategy per reservation API: which claims may carry a workload reference."""

from __future__ import annotations

from typing import Protocol

from claimctl.reservation.reasons import Reason
from claimctl.reservation.reserved_for.references import same_name
from claimctl.wire.claims import Reference, ResourceClaim


class Dialect(Protocol):
    """How a cluster lets a workload hold a claim."""

    name: str
    groups: bool
    """Whether pods can share a claim through PodGroups.

    Then a scheduler that still sees a group in the list starts pods without writing to the claim,
    although the group may have been taken out: every release has to wait for that to be over.
    """
    lists_beside_others: bool
    """Whether the scheduler lists a pod in a claim whose list names what is no pod.

    Where it does not, such a claim has to be fenced before a write to it can show that a pod came.
    """

    def refuses(self, claim: ResourceClaim, workload: Reference) -> Reason | None:
        """Why the claim cannot be reserved for this incarnation of the workload, or None."""
        ...

    def created_for(self, workload: Reference) -> Reference | None:
        """What ``spec.reservedFor`` has to say in a claim that is made for the workload."""
        ...


class Native:
    """KEP-5194: the claim says in its spec whom it was made for, and pods are not listed.

    A workload reference on any other claim would strand pods: the scheduler lists none beside
    it, and the kubelet refuses those that are not listed.
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
    """Today's clusters: the workload's reference stands beside those of the pods."""

    name = "hold"
    groups = False
    lists_beside_others = True

    def refuses(self, claim: ResourceClaim, workload: Reference) -> Reason | None:
        return None

    def created_for(self, workload: Reference) -> Reference | None:
        return None


class Group(Hold):
    """KEP-5729: pods share through their PodGroup's reference, and the workload's beside it holds.

    Pods whose template names no group are listed one by one, as in ``hold``.
    """

    name = "podgroup"
    groups = True


DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (Native(), Group(), Hold())}
