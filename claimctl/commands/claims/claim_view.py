"""Claims as commands show them: state, devices, holders, retention policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from claimctl.downgrade.expansion import listed_ahead
from claimctl.downgrade.under_way import frozen_for
from claimctl.reservation.facts.pods import Consumers, claim_names
from claimctl.reservation.facts.reasons import ConditionType, Reason, RetentionPolicy
from claimctl.reservation.facts.references import (
    LIMIT,
    is_pod,
    is_pod_group,
    is_tombstone,
    is_workload,
)
from claimctl.text import counted
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import find_condition
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import RELEASE_ANNOTATION, ClaimReservation, DowngradePlan


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim with the pods and the reservations that name it."""

    claim: ResourceClaim
    pods: tuple[Pod, ...]
    reservations: tuple[ClaimReservation, ...]
    waiting: tuple[str, ...] | None = None
    """Pods that wait for devices of the claim's classes, as namespace/name; None: not looked for"""
    plans: tuple[DowngradePlan, ...] | None = None
    """The DowngradePlans; None: the user may not list them."""

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
        if any(reservation.status.release is not None for reservation in self.reservations):
            return "Releasing"
        if self.workloads:
            return "Held"
        return "InUse" if status.reserved_for else "Allocated"

    @property
    def release_asked(self) -> bool:
        """Whether a user has asked for a release, which waits."""
        asked = (made.metadata.annotation(RELEASE_ANNOTATION) for made in self.reservations)
        return self.claim.status.allocation is not None and self.claim.metadata.uid in asked

    @property
    def frozen_for(self) -> str:
        """Why no workload holds the claim while its pods do: for a ``downgrade`` or an ``upgrade``;
        '' if a workload holds it, or if there is another reason. A PodGroup holds nothing."""
        wanted = [made for made in self.reservations if not made.metadata.deleting]
        in_use = self.state in {"Allocated", "InUse", "Held"} and bool(wanted)
        if not in_use or not all(map(is_pod_group, self.workloads)):
            return ""
        if self.plans is not None:
            return frozen_for(self.plans, self.claim)
        # what the controller says
        conditions = (find_condition(it.status.conditions, ConditionType.RESERVED) for it in wanted)
        said = (it.reason for it in conditions if it is not None and it.status == "False")
        return "downgrade" if Reason.FROZEN in said else ""

    @property
    def is_idle(self) -> bool:
        """Whether a workload holds the claim's devices and no pod uses the claim."""
        return self.state == "Held" and self.consumers.count == 0

    @property
    def idle_since(self) -> datetime | None:
        """Since when a workload that holds the claim has wanted no pods; None if it wants some."""
        times = (made.status.idle_since for made in self.reservations)
        return max((time for time in times if time is not None), default=None)

    def held_until(self) -> datetime | str:
        """When an idle claim is released, or what has to happen before; the latest counts."""
        policies = {reservation.spec.retention_policy for reservation in self.reservations}
        if RetentionPolicy.MANUAL in policies:
            return "it is released by hand"
        if RetentionPolicy.PERSISTENT in policies:
            return "the workload ends"
        ends = []
        for made in self.reservations:
            if made.status.idle_since is None:
                return "the workload is idle"
            ends.append(made.status.idle_since + timedelta(seconds=made.spec.idle_timeout_seconds))
        return max(ends, default="nobody says when")

    @property
    def shown_state(self) -> str:
        """The state, and whether a release is asked for, or the claim is not held."""
        if self.frozen_for:
            how = "by its PodGroup alone" if self.workloads else "not held"
            return f"{self.state} ({how})"
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
        names = (pending[uid].metadata.name for uid in listed_ahead(self.claim, pending))
        return tuple(sorted(names))

    @property
    def workloads(self) -> tuple[Reference, ...]:
        return tuple(filter(is_workload, self.claim.status.reserved_for))

    @property
    def devices(self) -> tuple[str, ...]:
        return tuple(f"{device.pool}/{device.device}" for device in self.claim.devices)

    @property
    def nodes(self) -> tuple[str, ...]:
        """The nodes of the claim's consumers; without consumers, the nodes of its allocation."""
        return self.consumers.nodes() or _nodes_of_allocation(self.claim)

    @property
    def holders(self) -> str:
        """The names of the listed workloads, then how many pods are listed; '' for nobody."""
        names = [f"{workload.resource}/{workload.name}" for workload in self.workloads]
        pods = [counted(len(self.listed_pods), "pod")] if self.listed_pods else []
        return ", ".join([*names, *pods])

    @property
    def places(self) -> str:
        """How many of the list's places are taken, of how many."""
        return f"{len(self.claim.status.reserved_for)}/{LIMIT}"

    @property
    def retention(self) -> str:
        """The policies of the reservations that hold; of all while none does."""
        holding = [made for made in self.reservations if made.status.reserved_for is not None]
        policies = (made.spec.retention_policy for made in holding or self.reservations)
        return ",".join(dict.fromkeys(policies))


def views(
    claims: Iterable[ResourceClaim],
    pods: Iterable[Pod],
    reservations: Iterable[ClaimReservation],
    plans: tuple[DowngradePlan, ...] | None = None,
) -> list[ClaimView]:
    """One view for each claim, sorted by namespace and name."""
    users: dict[tuple[str, str], list[Pod]] = {}
    for pod in pods:
        for name in claim_names(pod):
            users.setdefault((pod.metadata.namespace, name), []).append(pod)
    reserved: dict[tuple[str, str], list[ClaimReservation]] = {}
    for reservation in reservations:
        key = (reservation.metadata.namespace, reservation.spec.resource_claim_name)
        reserved.setdefault(key, []).append(reservation)
    by_key = {claim.metadata.key: claim for claim in claims}
    return [
        ClaimView(by_key[key], tuple(users.get(key, ())), tuple(reserved.get(key, ())), plans=plans)
        for key in sorted(by_key)
    ]


def _nodes_of_allocation(claim: ResourceClaim) -> tuple[str, ...]:
    """The nodes that the allocation names. Drivers of node-local devices select nodes by name."""
    allocation = claim.status.allocation
    selector = allocation.node_selector if allocation else None
    terms = (selector.node_selector_terms or ()) if selector else ()
    fields = [rule for term in terms for rule in term.match_fields or ()]
    labels = [rule for term in terms for rule in term.match_expressions or ()]
    rules = (*fields, *(rule for rule in labels if rule.key == "kubernetes.io/hostname"))
    return tuple(sorted({value for rule in rules for value in rule.values or ()}))
