"""The claims of the cluster, the pods that use them, and which claims keep a pod on its node.

A claim that lasts is still allocated when the replacement of an evicted pod is scheduled. The pod
can run only where the claim's devices can be reached. What happens to each kind of claim was
measured on real servers (docs/moving-claims.md)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from claimctl.reservation.facts.pods import claim_names, is_bound, is_done
from claimctl.reservation.facts.recorded_references import recorded_reference
from claimctl.reservation.facts.references import (
    is_pod,
    is_pod_group,
    is_tombstone,
)
from claimctl.wire.claims import DeviceRequestAllocationResult, NodeSelector, Reference
from claimctl.wire.pods import PodResourceClaim
from claimctl.wire.reservations import ClaimReservation
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.published import DeviceId
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.shapes.devices import DeviceClaim, SchedulingClaim
from claimctl_reschedule.shapes.scheduling import SchedulingPod

ClaimKey = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class KnownClaim:
    """A claim with all that uses it, as it was read."""

    claim: SchedulingClaim
    consumers: frozenset[str] = frozenset()
    """UIDs of the bound pods that use it and are not done."""
    reservations: tuple[ClaimReservation, ...] = ()
    """Its ClaimReservations, by name."""
    ghosts: tuple[str, ...] = ()
    """Names of the pods that vanished and whose grace is not over."""

    @property
    def key(self) -> ClaimKey:
        return self.claim.metadata.key

    @property
    def name(self) -> str:
        return self.claim.metadata.name

    @property
    def uid(self) -> str:
        return self.claim.metadata.uid

    @property
    def spec(self) -> DeviceClaim:
        return self.claim.spec.devices

    @property
    def allocated(self) -> bool:
        return self.claim.status.allocation is not None

    @property
    def results(self) -> tuple[DeviceRequestAllocationResult, ...]:
        allocation = self.claim.status.allocation
        return (allocation.devices.results or ()) if allocation else ()

    @property
    def devices(self) -> tuple[DeviceId, ...]:
        """The devices that nothing else may get. Admin access takes none."""
        return tuple((r.driver, r.pool, r.device) for r in self.results if not r.admin_access)

    @property
    def node_selector(self) -> NodeSelector | None:
        allocation = self.claim.status.allocation
        return allocation.node_selector if allocation else None

    @property
    def shared(self) -> bool:
        """Whether another pod needs no entry of its own (reservedForAnyPod, or a PodGroup)."""
        allocation = self.claim.status.allocation
        return self.group_listed or (allocation is not None and allocation.reserved_for_any_pod)

    @property
    def group_listed(self) -> bool:
        return any(map(is_pod_group, self.claim.status.reserved_for))

    @property
    def holders(self) -> tuple[Reference, ...]:
        """The entries that keep the claim allocated without pods. A PodGroup's does not."""
        return tuple(
            entry
            for entry in self.claim.status.reserved_for
            if not is_pod(entry) and not is_tombstone(entry) and not is_pod_group(entry)
        )

    @property
    def foreign_holders(self) -> tuple[Reference, ...]:
        """Those that the controller does not remove: no ClaimReservation has them on record."""
        own: set[str] = set()
        for reservation in self.reservations:
            if (recorded := recorded_reference(self.claim, reservation)) is not None:
                own |= {recorded.uid}
        if self.claim.spec.reserved_for is not None and self.reservations:
            own |= {self.claim.spec.reserved_for.uid}
        return tuple(
            holder for holder in self.holders if not self.reservations or holder.uid not in own
        )

    @property
    def held(self) -> bool:
        """Whether the claim stays allocated when its last pod goes. A ClaimReservation that has not
        added its hold yet counts: it may do so at any moment."""
        return bool(self.holders or self.reservations)

    def lists(self, uid: str) -> bool:
        return self.shared or any(entry.uid == uid for entry in self.claim.status.reserved_for)

    def owned_by(self, pods: frozenset[str]) -> bool:
        """Whether the claim was generated for one of the pods, and goes with it."""
        owner = self.claim.metadata.controller()
        return owner is not None and owner.uid in pods


class Claims:
    """All claims, by name and by pod."""

    def __init__(self, observed: Observed) -> None:
        consumers: dict[ClaimKey, set[str]] = defaultdict(set)
        self._pods: dict[str, SchedulingPod] = {}
        for pod in observed.pods:
            if is_bound(pod) and not is_done(pod):
                self._pods[pod.metadata.uid] = pod
                for name in claim_names(pod):
                    consumers[pod.metadata.namespace, name].add(pod.metadata.uid)
        reservations: dict[ClaimKey, tuple[ClaimReservation, ...]] = defaultdict(tuple)
        for made in sorted(observed.reservations, key=lambda known: known.metadata.name):
            reservations[made.metadata.namespace, made.spec.resource_claim_name] += (made,)
        self._claims = {
            (key := claim.metadata.key): KnownClaim(
                claim,
                frozenset(consumers.get(key, ())),
                reservations[key],
                tuple(_ghosts(reservations[key], observed.now)),
            )
            for claim in observed.claims
        }
        self._templates = {template.metadata.key: template for template in observed.claim_templates}

    def all(self) -> Iterator[KnownClaim]:
        yield from self._claims.values()

    def users(self, claim: KnownClaim) -> tuple[SchedulingPod, ...]:
        """The bound pods that use the claim, by name."""
        pods = (self._pods[uid] for uid in claim.consumers)
        return tuple(sorted(pods, key=lambda pod: (pod.metadata.name, pod.metadata.uid)))

    def of(self, pod: SchedulingPod) -> tuple[KnownClaim, ...]:
        """The claims that a pod uses, by name; those that do not exist are left out."""
        keys = ((pod.metadata.namespace, name) for name in sorted(claim_names(pod)))
        return tuple(self._claims[key] for key in keys if key in self._claims)

    def named_by(self, pod: SchedulingPod) -> Iterator[KnownClaim | DeviceClaim | Obstacle]:
        """What a pod that waits, or the replacement of a pod, asks for. A DeviceClaim stands for a
        claim that is yet to be generated."""
        statuses = {status.name: status for status in pod.status.resource_claim_statuses}
        for entry in pod.spec.resource_claims:
            generated = statuses.get(entry.name)
            name = entry.resource_claim_name or (generated and generated.resource_claim_name)
            if name:
                yield self._find(pod, entry, name)
            elif generated is None:
                yield self._from_template(pod, entry)
        extended = pod.status.extended_resource_claim_status
        if extended is not None and extended.resource_claim_name:
            yield self._find(pod, PodResourceClaim(), extended.resource_claim_name)

    def _find(
        self, pod: SchedulingPod, entry: PodResourceClaim, name: str
    ) -> KnownClaim | DeviceClaim | Obstacle:
        claim = self._claims.get((pod.metadata.namespace, name))
        if claim is not None and not claim.claim.metadata.deleting:
            return claim
        if entry.resource_claim_template_name:
            return self._from_template(pod, entry)
        if claim is not None:
            return Obstacle(Ground.CLAIM_UNREACHABLE, f"claim {name} is being deleted")
        return Obstacle(Ground.FIT_UNKNOWN, f"claim {name} was not read")

    def _from_template(self, pod: SchedulingPod, entry: PodResourceClaim) -> DeviceClaim | Obstacle:
        name = entry.resource_claim_template_name or ""
        template = self._templates.get((pod.metadata.namespace, name))
        if template is None:
            return Obstacle(Ground.FIT_UNKNOWN, f"ResourceClaimTemplate {name} was not read")
        return template.spec.spec.devices


def shares_group(pod: SchedulingPod) -> ClaimKey | None:
    """Namespace and name of the pod's PodGroup."""
    name = pod.spec.group_name
    return (pod.metadata.namespace, name) if name else None


def _ghosts(reservations: tuple[ClaimReservation, ...], now: datetime) -> Iterator[str]:
    """The pods that vanished and may still run, as in ``reservation.users.ghosts``.

    The longest grace that a reservation asks for counts. A reservation that goes by signs of life
    has a ghost on record as long as it counts.
    """
    graces = [made.spec.force_deleted_pod_grace_seconds for made in reservations]
    longest = max((seconds for seconds in graces if seconds is not None), default=0)
    for reservation in reservations:
        for ghost in reservation.status.force_deleted_pods:
            over = ghost.since is not None and now >= ghost.since + timedelta(seconds=longest)
            if None in graces or not over:
                yield ghost.name


class AfterEviction(StrEnum):
    """What becomes of a claim when pods that use it leave."""

    GOES_WITH_POD = "GoesWithPod"
    """It was generated for a pod that leaves."""
    NOT_ALLOCATED = "NotAllocated"
    IN_USE = "InUse"
    """Another pod uses it."""
    GHOST = "Ghost"
    """A pod that vanished may still use it."""
    HELD = "Held"
    """It stays allocated until the controller releases it."""
    FOREIGN = "HeldByAnother"
    """Another client than claimctl holds it, or a PodGroup is listed that nothing removes."""
    WHILE_OPEN = "WhileNodeOpen"
    """The replacement exists before the claim is free, and comes back. If the node is closed to the
    replacement, the scheduler deallocates the claim for it."""
    MAY_RETURN = "MayReturn"
    """The same for a StatefulSet, which waits until the old pod is gone, and for a Job: where the
    replacement goes depends on the release and on chance. With the node closed it moves."""


_UNCERTAIN = frozenset({"StatefulSet", "Job"})
"""Owners whose replacements came back on one release and moved on another one."""
LASTING = frozenset(AfterEviction) - {AfterEviction.GOES_WITH_POD, AfterEviction.NOT_ALLOCATED}
"""While the node is open, these claims are still allocated when the replacement is scheduled."""


def after_eviction(claim: KnownClaim, leaving: frozenset[str], owner_kind: str) -> AfterEviction:
    """What becomes of the claim when the pods ``leaving`` (UIDs) are evicted together."""
    if claim.owned_by(leaving):
        return AfterEviction.GOES_WITH_POD
    if not claim.allocated:
        return AfterEviction.NOT_ALLOCATED
    if not claim.consumers <= leaving:
        return AfterEviction.IN_USE
    if claim.ghosts:
        return AfterEviction.GHOST
    if claim.foreign_holders or (claim.group_listed and not claim.reservations):
        return AfterEviction.FOREIGN
    if claim.held:
        return AfterEviction.HELD
    return AfterEviction.MAY_RETURN if owner_kind in _UNCERTAIN else AfterEviction.WHILE_OPEN
