"""A witness that reads the server's history and nothing else.

It shares no code with what claimctl decides by: what a consumer is, is written down twice, so
that a mistake there does not excuse itself here.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field

from claimctl.demo.world import Key, World, as_claim, as_pod, claims_of, is_bound_consumer, runs
from claimctl.embedded.store import Revision
from claimctl.wire.base import decode
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation

DEALLOCATED_IN_USE = "DeallocatedInUse"
STARTED_WITHOUT_ALLOCATION = "StartedWithoutAllocation"


@dataclass(frozen=True, slots=True)
class Violation:
    """Something that must never be true, and the revision from which on it was."""

    rule: str
    revision: int
    namespace: str
    claim: str
    pods: tuple[str, ...]
    message: str


@dataclass(slots=True)
class Witness:
    """Counts what ``users`` (the names claimctl writes under) did to claims."""

    users: Collection[str]
    violations: list[Violation] = field(default_factory=list)
    writes: Counter[Key] = field(default_factory=Counter)
    """Per claim: how many of its revisions claimctl wrote."""
    revisions: Counter[Key] = field(default_factory=Counter)
    """Per claim: how often anybody wrote it."""
    losses: Counter[Key] = field(default_factory=Counter)
    """Per claim: how often its allocation was taken away."""
    deallocations: dict[Key, str] = field(default_factory=dict)
    """Per claim: who took the allocation away last."""
    devices: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    """Per claim: the devices it was allocated, in their order."""

    reasons: defaultdict[Key, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    """Per claim: every reason that its reservations ever gave, in their order."""

    def notice(self, revision: Revision, world: World) -> None:
        """Judge one revision; the world shows it already."""
        if revision.plural == "resourceclaims" and revision.group == "resource.k8s.io":
            self._notice_claim(revision, world)
        elif revision.plural == "pods" and not revision.group:
            self._notice_pod(revision, world)
        elif revision.plural == "claimreservations":
            self._notice_reservation(revision)

    def _notice_claim(self, revision: Revision, world: World) -> None:
        key = (revision.namespace, revision.name)
        ours = revision.actor in self.users
        self.writes[key] += ours
        self.revisions[key] += 1
        self._note_devices(key, as_claim(revision))
        if not _deallocates(revision):
            return
        self.losses[key] += 1
        self.deallocations[key] = revision.actor
        left = [pod.metadata.name for pod in world.users_of(key) if is_bound_consumer(pod)]
        if ours and left:
            self._accuse(
                DEALLOCATED_IN_USE, revision, revision.name, left, "deallocated by claimctl under"
            )

    def _note_devices(self, key: Key, claim: ResourceClaim | None) -> None:
        allocation = claim.status.allocation if claim else None
        if allocation is None:
            return
        device = "+".join(f"{each.pool}/{each.device}" for each in allocation.devices.results or ())
        known = self.devices.get(key, ())
        if known[-1:] != (device,):
            self.devices[key] = (*known, device)

    def _notice_pod(self, revision: Revision, world: World) -> None:
        pod = as_pod(revision)
        if pod is None or not runs(pod) or _ran_before(revision):
            return
        for name in sorted(claims_of(pod)):
            claim = world.claims.get((revision.namespace, name))
            if claim is None or claim.status.allocation is None:
                self._accuse(
                    STARTED_WITHOUT_ALLOCATION,
                    revision,
                    name,
                    [revision.name],
                    "not allocated at the start of",
                )

    def _notice_reservation(self, revision: Revision) -> None:
        reservation = decode(revision.data, ClaimReservation)
        key = (revision.namespace, reservation.spec.resource_claim_name)
        release = reservation.status.release
        told = [condition.reason for condition in reservation.status.conditions]
        for reason in (*told, release.reason if release else ""):
            self.reasons[key][reason] = None

    def _accuse(
        self, rule: str, revision: Revision, claim: str, pods: list[str], what: str
    ) -> None:
        message = (
            f"revision {revision.number}: claim {revision.namespace}/{claim} was {what} "
            f"{len(pods)} pod(s), first {pods[0]}"
        )
        self.violations.append(
            Violation(rule, revision.number, revision.namespace, claim, tuple(pods), message)
        )


def _deallocates(revision: Revision) -> bool:
    """Whether the claim lost its allocation, or went with it."""
    if revision.previous is None:
        return False
    before = decode(revision.previous, ResourceClaim)
    after = as_claim(revision)
    return before.status.allocation is not None and (
        after is None or after.status.allocation is None
    )


def _ran_before(revision: Revision) -> bool:
    return revision.previous is not None and runs(decode(revision.previous, Pod))
