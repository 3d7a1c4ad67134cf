"""Claims as commands show them: state, devices, holders, retention policy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from claimctl.reservation.facts.pods import Consumers, claim_names
from claimctl.reservation.facts.references import (
    LIMIT,
    is_pod,
    is_tombstone,
    is_workload,
    listed_ahead,
)
from claimctl.text import counted
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import RELEASE_ANNOTATION, ClaimReservation


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim with the pods and the reservations that name it."""

    claim: ResourceClaim
    pods: tuple[Pod, ...]
    reservations: tuple[ClaimReservation, ...]

    @property
    def namespace(self) -> str:
        return self.claim.metadata.namespace

    @property
    def name(self) -> str:
        return self.claim.metadata.name

    @property
    def state(self) -> str:
        """Deleting, Pending, Releasing (fenced), Held (by a workload), InUse or Allocated."""
        status = self.claim.status
        if self.claim.metadata.deleting:
            return "Deleting"
        if status.allocation is None:
            return "Pending"
        if any(one.status.release is not None for one in self.reservations):
            return "Releasing"
        if self.workloads:
            return "Held"
        return "InUse" if status.reserved_for else "Allocated"

    @property
    def release_asked(self) -> bool:
        """Whether a user has asked for a release, which waits."""
        uid = self.claim.metadata.uid
        asked = (one.metadata.annotation(RELEASE_ANNOTATION) == uid for one in self.reservations)
        return self.claim.status.allocation is not None and any(asked)

    @property
    def shown_state(self) -> str:
        """The state, and whether a release is asked for."""
        return f"{self.state} (release asked)" if self.release_asked else self.state

    @property
    def consumers(self) -> Consumers:
        return Consumers.of(self.pods)

    @property
    def listed_pods(self) -> tuple[Reference, ...]:
        return tuple(filter(is_pod, self.claim.status.reserved_for))

    @property
    def tombstones(self) -> tuple[Reference, ...]:
        return tuple(filter(is_tombstone, self.claim.status.reserved_for))

    @property
    def listed_ahead(self) -> tuple[str, ...]:
        """The names of the pending pods that claimctl listed before the scheduler did."""
        pending = self.consumers.pending
        return tuple(
            sorted(pending[uid].metadata.name for uid in listed_ahead(self.claim, pending))
        )

    @property
    def workloads(self) -> tuple[Reference, ...]:
        return tuple(filter(is_workload, self.claim.status.reserved_for))

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(f"{one.pool}/{one.device}" for one in self.claim.devices)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the claim's consumers; without consumers, the nodes of its allocation."""
        return self.consumers.nodes() or _selected_nodes(self.claim)

    @property
    def holders(self) -> str:
        """The names of the listed workloads, then how many pods are listed; '' for nobody."""
        names = [f"{each.resource}/{each.name}" for each in self.workloads]
        pods = [counted(len(self.listed_pods), "pod")] if self.listed_pods else []
        return ", ".join([*names, *pods])

    @property
    def places(self) -> str:
        """How many of the list's places are taken, of how many."""
        return f"{len(self.claim.status.reserved_for)}/{LIMIT}"

    @property
    def retention(self) -> str:
        policies = dict.fromkeys(one.spec.retention_policy for one in self.reservations)
        return ",".join(policies)


def views(
    claims: Iterable[ResourceClaim],
    pods: Iterable[Pod],
    reservations: Iterable[ClaimReservation],
) -> list[ClaimView]:
    """One view for each claim, sorted by namespace and name."""
    users: dict[tuple[str, str], list[Pod]] = {}
    for pod in pods:
        for name in claim_names(pod):
            users.setdefault((pod.metadata.namespace, name), []).append(pod)
    reserved: dict[tuple[str, str], list[ClaimReservation]] = {}
    for one in reservations:
        key = (one.metadata.namespace, one.spec.resource_claim_name)
        reserved.setdefault(key, []).append(one)
    found = sorted(claims, key=lambda claim: (claim.metadata.namespace, claim.metadata.name))
    return [_view(claim, users, reserved) for claim in found]


def _view(
    claim: ResourceClaim,
    users: dict[tuple[str, str], list[Pod]],
    reserved: dict[tuple[str, str], list[ClaimReservation]],
) -> ClaimView:
    key = (claim.metadata.namespace, claim.metadata.name)
    return ClaimView(claim, tuple(users.get(key, ())), tuple(reserved.get(key, ())))


def _selected_nodes(claim: ResourceClaim) -> tuple[str, ...]:
    """The nodes that the allocation names. Drivers of node-local devices select nodes by name."""
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation else None
    terms = (selector.node_selector_terms or ()) if selector else ()
    requirements = (
        one for term in terms for one in (*(term.match_fields or ()), *_hostnames(term))
    )
    return tuple(sorted({value for one in requirements for value in one.values or ()}))


def _hostnames(term: Any) -> Sequence[Any]:
    return [one for one in term.match_expressions or () if one.key == "kubernetes.io/hostname"]
