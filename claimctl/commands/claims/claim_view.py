"""Claims as commands show them: state, devices, holders, retention policy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from claimctl.commands.claims.device_classes import AskingClaim, device_classes
from claimctl.commands.claims.matters import OF_DEVICES, Matter
from claimctl.reservation.facts.pods import Consumers, claim_names
from claimctl.reservation.facts.reasons import ConditionType, Reason, RetentionPolicy
from claimctl.reservation.facts.references import (
    LIMIT,
    is_pod,
    is_tombstone,
    is_workload,
    listed_ahead,
)
from claimctl.text import counted, natural
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import Condition, find_condition
from claimctl.wire.ordinals import Ordinal
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import (
    RELEASE_ANNOTATION,
    ClaimReservation,
    ClaimReservationStatus,
)


@dataclass(frozen=True, slots=True)
class ClaimView:
    """One claim with the pods and the reservations that name it."""

    claim: ResourceClaim
    pods: tuple[Pod, ...]
    reservations: tuple[ClaimReservation, ...]
    matters: tuple[Matter, ...] = ()
    """What is wrong with it, as far as it was judged."""
    waiting: tuple[str, ...] | None = None
    """Pods that wait for devices of the claim's classes, as namespace/name; None: not looked for"""

    @property
    def namespace(self) -> str:
        return self.claim.metadata.namespace

    @property
    def name(self) -> str:
        return self.claim.metadata.name

    @property
    def state(self) -> str:
        """Deleting, Pending, Releasing, Held (by a workload), InUse or Allocated.

        Releasing as the controller's metric has it: also while the release waits.
        """
        status, known = self.claim.status, self.reservations
        if self.claim.metadata.deleting:
            return "Deleting"
        if status.allocation is None:
            return "Pending"
        if any(made.status.release or release_reported(made, self.claim) for made in known):
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
    def is_idle(self) -> bool:
        """Whether a workload holds the claim's devices and no pod uses the claim."""
        return self.state == "Held" and self.consumers.count == 0

    @property
    def allocated_since(self) -> datetime | None:
        """Since when the claim has its devices, as far as that is recorded."""
        allocation = self.claim.status.allocation
        if allocation is None:
            return None
        times = (self.status_of(made).allocation_time for made in self.reservations)
        return allocation.allocation_timestamp or max(filter(None, times), default=None)

    @property
    def used_since(self) -> datetime | None:
        """Since when pods with a node use the claim; None if there is none now."""
        times = (pod.metadata.creation_timestamp for pod in self.consumers.bound.values())
        return min(filter(None, times), default=None)

    @property
    def unused_since(self) -> datetime | None:
        """Since when no pod with a node has used the claim's devices; None if one uses them."""
        if self.consumers.bound or self.claim.status.allocation is None:
            return None
        times = (self.status_of(made).last_consumer_time for made in self.reservations)
        return max(filter(None, times), default=self.idle_since)

    def status_of(self, made: ClaimReservation) -> ClaimReservationStatus:
        """Its status; an empty one if it was written for an earlier claim of this name."""
        mine = made.status.claim_uid in ("", self.claim.metadata.uid)
        return made.status if mine else ClaimReservationStatus()

    @property
    def classes(self) -> tuple[str, ...]:
        """The DeviceClasses of its devices, or that it asks for, if its requests were read."""
        known = device_classes(self.claim) if isinstance(self.claim, AskingClaim) else ()
        return tuple(sorted(known))

    @property
    def never_given_up(self) -> bool:
        """Whether claimctl keeps the claim also while its pods find no node."""
        seconds = (made.spec.reallocate_after_seconds for made in self.reservations)
        return any(value is None for value in seconds)

    @property
    def idle_since(self) -> datetime | None:
        """Since when a workload that holds the claim has wanted no pods; None if it wants some."""
        times = (made.status.idle_since for made in self.reservations)
        return max((time for time in times if time is not None), default=None)

    def held_until(self) -> datetime | str:
        """When an idle claim is released, or what has to happen before; the latest counts."""
        if not self.never_given_up and any(matter.kind in OF_DEVICES for matter in self.matters):
            return "a pod waits for it: then claimctl gives it up"
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
        """The state, and what is wrong with the claim, or whether a release is asked for."""
        if self.matters:
            return f"{self.state} ({self.matters[0].reason})"
        asked = self.release_asked and self.state != "Releasing"
        return f"{self.state} (release asked)" if asked else self.state

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
    def ordinal(self) -> Ordinal | None:
        """The ordinal of a workload whose sticky claim it is."""
        of_ordinals = (made.spec.sticky for made in self.reservations if made.spec.sticky)
        return next((sticky.whose for sticky in of_ordinals), None)

    @property
    def retention(self) -> str:
        """The policies of the reservations that hold; of all while none does."""
        holding = [made for made in self.reservations if made.status.reserved_for is not None]
        policies = (made.spec.retention_policy for made in holding or self.reservations)
        return ",".join(dict.fromkeys(policies))


_RELEASING = frozenset(
    {
        Reason.CONSUMERS_LEFT,
        Reason.FORCE_DELETED_PODS,
        Reason.HISTORY_UNKNOWN,
        Reason.UNKNOWN_REFERENCES,
        Reason.PODS_MAY_BE_BOUND,
        Reason.PODS_LISTED,
        Reason.FINISHED_PODS_LEFT,
        Reason.UNREADABLE,
        Reason.SETTLING,
        Reason.RELEASING,
    }
)
"""What the condition Released says while a claim is to be released; other reasons say why not."""


def release_reported(made: ClaimReservation, claim: ResourceClaim) -> Condition | None:
    """What the controller says of a release of the claim that waits or is under way."""
    if claim.status.allocation is None or made.status.claim_uid != claim.metadata.uid:
        return None
    said = find_condition(made.status.conditions, ConditionType.RELEASED)
    releasing = said is not None and said.status == "False" and said.reason in _RELEASING
    return said if releasing else None


def views(
    claims: Iterable[ResourceClaim], pods: Iterable[Pod], reservations: Iterable[ClaimReservation]
) -> list[ClaimView]:
    """One view for each claim, sorted by namespace and name, numbers in names as such."""
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
        ClaimView(by_key[key], tuple(users.get(key, ())), tuple(reserved.get(key, ())))
        for key in sorted(by_key, key=lambda key: (key[0], natural(key[1])))
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
