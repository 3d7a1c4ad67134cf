"""The witness: it judges claimctl's writes by the server's history alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import msgspec
from kube_in_process.storage.store import Revision

from claimctl.wire.base import decode
from claimctl.wire.claims import (
    CLAIM_FINALIZER,
    AllocationResult,
    NodeSelector,
    ResourceClaim,
)
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from claimctl_witness.removals import Removals
from claimctl_witness.vanished import Vanishings
from claimctl_witness.world import (
    TERMINAL,
    Key,
    World,
    as_claim,
    as_pod,
    claims_of,
    is_bound_consumer,
    runs,
)

DEALLOCATED_IN_USE = "DeallocatedInUse"
DEALLOCATED_UNDER_GHOST = "DeallocatedUnderGhost"
REMOVED_FOREIGN = "RemovedForeignReference"
UNRECORDED = "ReplacedUnrecorded"
EMPTIED = "EmptiedBesideAllocation"
TOOK_FINALIZER = "TookFinalizer"
STRANDED = "StrandedPod"
WROTE_NOTHING = "WroteNothing"
LISTED_AGAIN = "ListedAgain"
LISTED_WITHOUT_HOLD = "ListedWithoutHold"
LISTED_UNFIT = "ListedUnfit"
STARTED_WITHOUT_ALLOCATION = "StartedWithoutAllocation"


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise, and the revision that broke it."""

    rule: str
    revision: int
    namespace: str
    claim: str
    pods: tuple[str, ...]
    message: str


@dataclass(slots=True)
class Witness:
    """Judges the writes of claimctl, and counts writes and deallocations per claim.

    Args:
        users: the user names that claimctl writes under.
    """

    users: Collection[str]
    grace: float = 0.0
    """Seconds for which a vanished pod counts if no reservation names a grace."""
    late: float = 0.0
    """Seconds by which this history may be late: 0 for one that the server itself writes."""
    one_pod_drivers: Collection[str] = frozenset()
    """Drivers that want one pod in the list: an allocated claim of theirs may rest with an empty
    list, while a reservation answers for it."""
    violations: list[Violation] = field(default_factory=list)
    writes: Counter[Key] = field(default_factory=Counter)
    """Per claim: the number of claimctl's writes."""
    revisions: Counter[Key] = field(default_factory=Counter)
    """Per claim: the number of all writes."""
    losses: Counter[Key] = field(default_factory=Counter)
    """Per claim: the number of deallocations."""
    deallocations: dict[Key, str] = field(default_factory=dict)
    """Per claim: the user that deallocated it last."""
    devices: dict[Key, tuple[str, ...]] = field(default_factory=dict)
    """Per claim: the devices of its allocations, in order of time."""

    reasons: defaultdict[Key, dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    """Per claim: all reasons in the statuses of its reservations, in order of time."""
    unfinished: dict[Key, None] = field(default_factory=dict)
    """Claims that claimctl deallocated and that still have the scheduler's finalizer."""
    fenced: dict[Key, None] = field(default_factory=dict)
    """Claims that claimctl fenced: allocated, with no entry but tombstones. A scheduler may
    deallocate such a claim before claimctl does; claimctl then removes the finalizer."""
    waiting: dict[Key, frozenset[str]] = field(default_factory=dict)
    """Per claim: UIDs of the pods that a scheduler may have been binding when claimctl deallocated
    it."""
    vanished: Vanishings = field(init=False)
    removals: Removals = field(init=False)

    def __post_init__(self) -> None:
        self.vanished = Vanishings(self.users)
        self.removals = Removals(self.users)

    def notice(self, revision: Revision, world: World) -> None:
        """Judge one revision, which ``world`` has applied already."""
        self.vanished.notice(revision)
        self.removals.notice(revision)
        if revision.actor in self.users:
            self._notice_effect(revision)
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
        if ours:
            self._judge_list(revision, world)
            self._judge_additions(revision, world)
        self.removals.noticed(revision)
        self._note_finalizer(revision, ours=ours)
        if not _deallocates(revision):
            return
        self.losses[key] += 1
        self.deallocations[key] = revision.actor
        if ours:
            self._judge_deallocation(revision, world)
        self.vanished.forget(key)

    def _judge_deallocation(self, revision: Revision, world: World) -> None:
        key = (revision.namespace, revision.name)
        waiting = {pod.metadata.uid for pod in world.users_of(key) if _may_be_in_a_cycle(pod)}
        self.waiting[key] = self.waiting.get(key, frozenset()) | waiting
        left = [pod.metadata.name for pod in world.users_of(key) if is_bound_consumer(pod)]
        if left:
            self._accuse(
                DEALLOCATED_IN_USE, revision, revision.name, left, "deallocated by claimctl under"
            )
        specs = [one.spec for one in world.reservations_of(key)]
        graces = [spec.force_deleted_pod_grace_seconds or 0.0 for spec in specs]
        at = revision.at + self.late
        ghosts = self.vanished.within(key, max(graces, default=self.grace), at)
        if ghosts:
            self._accuse(
                DEALLOCATED_UNDER_GHOST,
                revision,
                revision.name,
                ghosts,
                "deallocated by claimctl within the grace of",
            )

    def _judge_list(self, revision: Revision, world: World) -> None:
        foreign = [each.name for each in self.removals.forbidden(revision, world)]
        if foreign:
            self._accuse(
                REMOVED_FOREIGN, revision, revision.name, foreign, "deprived by claimctl of"
            )
        unrecorded = [each.name for each in self.removals.expansions.unrecorded(revision, world)]
        if unrecorded:
            what = "given to pods, without a record, in the place of"
            self._accuse(UNRECORDED, revision, revision.name, unrecorded, what)
        before, after = _before(revision), as_claim(revision)
        if before is None or after is None:
            return
        reservations = world.reservations_of((revision.namespace, revision.name))
        lists_no_pods = any(one.status.dialect == "native" for one in reservations)
        rests = bool(reservations) and any(
            each.driver in self.one_pod_drivers for each in before.devices
        )
        if _emptied(before, after) and not lists_no_pods and not rests:
            self._accuse(EMPTIED, revision, revision.name, ["-"], "left allocated to nobody by")
        key = (revision.namespace, revision.name)
        to_finish = key in self.unfinished or key in self.fenced
        if _unprotected(before, after) and not to_finish:
            self._accuse(TOOK_FINALIZER, revision, revision.name, ["-"], "unprotected by")

    def _judge_additions(self, revision: Revision, world: World) -> None:
        """What claimctl lists ahead stands beside a hold, and is not listed again when removed."""
        if revision.type == "DELETED":
            return
        for rule, found, what in (
            (LISTED_AGAIN, self.removals.listed_again(revision, world), "listed again for"),
            (
                LISTED_WITHOUT_HOLD,
                self.removals.listed_without_hold(revision, world),
                "without a hold when claimctl listed",
            ),
            (LISTED_UNFIT, self.removals.listed_unfit(revision, world), "not to be listed for"),
        ):
            if found:
                self._accuse(rule, revision, revision.name, [each.name for each in found], what)

    def _notice_effect(self, revision: Revision) -> None:
        """Promise 7: each write of claimctl changes the object."""
        if revision.previous is None or revision.type == "DELETED":
            return
        if _content(revision.previous) == _content(revision.data):
            self._accuse(
                WROTE_NOTHING, revision, revision.name, [revision.plural], "written in vain as"
            )

    def _note_devices(self, key: Key, claim: ResourceClaim | None) -> None:
        allocation = claim.status.allocation if claim else None
        if allocation is None:
            return
        device = "+".join(f"{each.pool}/{each.device}" for each in allocation.devices.results or ())
        known = self.devices.get(key, ())
        if known[-1:] != (device,):
            self.devices[key] = (*known, device)

    def _note_finalizer(self, revision: Revision, *, ours: bool) -> None:
        """Note which deallocated claims still have the finalizer.

        The component that deallocates removes the finalizer. A new allocation needs it again.
        """
        key, claim = (revision.namespace, revision.name), as_claim(revision)
        kept = claim is not None and CLAIM_FINALIZER in claim.metadata.finalizers
        if claim is not None and claim.status.allocation is not None:
            self._note_fence(key, claim, ours=ours)
        elif not kept:
            self.fenced.pop(key, None)
        if not kept or (claim is not None and claim.status.allocation is not None):
            self.unfinished.pop(key, None)
        elif ours and _deallocates(revision):
            self.unfinished[key] = None

    def _note_fence(self, key: Key, claim: ResourceClaim, *, ours: bool) -> None:
        if any(each.resource != "finishedpods" for each in claim.status.reserved_for):
            self.fenced.pop(key, None)
        elif ours:
            self.fenced[key] = None

    def _notice_pod(self, revision: Revision, world: World) -> None:
        pod = as_pod(revision)
        if pod is not None and pod.spec.node_name and not _bound_before(revision):
            self._judge_binding(revision, world, pod)
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

    def _judge_binding(self, revision: Revision, world: World, pod: Pod) -> None:
        """No pod may be bound to a claim that claimctl has deallocated; hence the settle time.

        The claim may have been allocated anew for another node: then the pod has none of its
        devices either. A pod that has ended before is bound all the same, and never starts.
        """
        if pod.status.phase in TERMINAL:
            return
        for name in sorted(claims_of(pod)):
            key = (revision.namespace, name)
            claim = world.claims.get(key)
            allocation = claim.status.allocation if claim is not None else None
            if allocation is None and self.deallocations.get(key) in self.users:
                self._accuse(STRANDED, revision, name, [revision.name], "deallocated before it got")
            waited = pod.metadata.uid in self.waiting.get(key, ())
            if waited and allocation is not None and not _reaches(allocation, pod.spec.node_name):
                what = "given other devices before it got"
                self._accuse(STRANDED, revision, name, [revision.name], what)

    def _notice_reservation(self, revision: Revision) -> None:
        reservation = decode(revision.data, ClaimReservation)
        key = (revision.namespace, reservation.spec.resource_claim_name)
        release = reservation.status.release
        reasons = [condition.reason for condition in reservation.status.conditions]
        for reason in (*reasons, release.reason if release else ""):
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


def _may_be_in_a_cycle(pod: Pod) -> bool:
    """Whether a scheduler may be binding the pod. While a claim is being allocated for the first
    pod of a PodGroup, the scheduler of 1.36.2 may bind another one to a wrong node by itself
    (kubernetes/kubernetes#140087); so of a group, only pods with a nominated node count.
    """
    grouped = pod.spec.scheduling_group is not None
    return not pod.spec.node_name and (not grouped or bool(pod.status.nominated_node_name))


def _reaches(allocation: AllocationResult, node: str) -> bool:
    """Whether the devices can be used on the node; true if their selector does not name nodes."""
    terms = (allocation.node_selector or NodeSelector()).node_selector_terms or ()
    named = [
        each.values or ()
        for term in terms
        for each in term.match_fields or ()
        if (each.key, each.operator) == ("metadata.name", "In")
    ]
    return len(named) < len(terms) or not terms or any(node in values for values in named)


def _before(revision: Revision) -> ResourceClaim | None:
    return None if revision.previous is None else decode(revision.previous, ResourceClaim)


def _emptied(before: ResourceClaim, after: ResourceClaim) -> bool:
    """Whether the write emptied the list of an allocated claim, where that is no fence.

    An empty list is the fence of a release if the scheduler lists no pods: the allocation admits
    any pod, or the list had a PodGroup. The caller checks for the dialect ``native``.
    """
    fences = (
        before.status.allocation is not None and before.status.allocation.reserved_for_any_pod
    ) or any(each.resource == "podgroups" for each in before.status.reserved_for)
    emptied = bool(before.status.reserved_for) and not after.status.reserved_for
    return emptied and after.status.allocation is not None and not fences


def _unprotected(before: ResourceClaim, after: ResourceClaim) -> bool:
    return (
        CLAIM_FINALIZER in before.metadata.finalizers
        and CLAIM_FINALIZER not in after.metadata.finalizers
    )


def _content(data: bytes) -> dict[str, Any]:
    """The object without the metadata fields that change with every write."""
    found: dict[str, Any] = msgspec.json.decode(data)
    meta = {
        key: value
        for key, value in found["metadata"].items()
        if key not in ("resourceVersion", "managedFields")
    }
    return {**found, "metadata": meta}


def _deallocates(revision: Revision) -> bool:
    """Whether the claim lost its allocation, or was deleted while it was allocated."""
    if revision.previous is None:
        return False
    before = decode(revision.previous, ResourceClaim)
    after = as_claim(revision)
    return before.status.allocation is not None and (
        after is None or after.status.allocation is None
    )


def _bound_before(revision: Revision) -> bool:
    return revision.previous is not None and bool(decode(revision.previous, Pod).spec.node_name)


def _ran_before(revision: Revision) -> bool:
    return revision.previous is not None and runs(decode(revision.previous, Pod))
