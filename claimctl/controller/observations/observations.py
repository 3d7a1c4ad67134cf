"""Everything that this process remembers beyond its caches.

The informers note every change here, whether this process leads or not, and the reconcilers what
they reconcile and write. Decisions read the observations through snapshots, which are copies.

What is remembered of one thing has a class and a file of its own in this folder. Here it becomes an
attribute of ``Observations``, and the methods tell it of the changes that concern it.
"""

from __future__ import annotations

from collections.abc import Iterable

from cachetools import TTLCache

from claimctl.controller.keys import ClaimKey, GroupKey, WorkloadKey
from claimctl.controller.observations.boots import BootIds
from claimctl.controller.observations.claims import Memories
from claimctl.controller.observations.drivers import DriversSeen
from claimctl.controller.observations.ghosts import GhostLedger
from claimctl.controller.observations.group_names import GroupNames
from claimctl.controller.observations.kubelets import Kubelets
from claimctl.controller.observations.openings import PodArrivals
from claimctl.controller.observations.own_writes import OwnWrites
from claimctl.controller.observations.reservations import ReservationsSeen
from claimctl.controller.observations.slices import SlicesOnNodes
from claimctl.kube.informer import Change
from claimctl.reservation.facts.decision import (
    ReservationWrite,
    Write,
    WriteList,
    WriteStatus,
)
from claimctl.reservation.facts.pods import claim_names, is_done, is_finished, may_use
from claimctl.reservation.facts.references import groups_in, pods_in
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.reserved_for.consistency import is_left_by_kcm
from claimctl.telemetry.face import LateLogger
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import ObjectMeta, reaches
from claimctl.wire.nodes import Node
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS
from claimctl.wire.seams import Clock

log = LateLogger(__name__)

ABSENT_SECONDS = 10.0
"""For how long a workload that a live read did not find counts as absent."""

REMEMBERED_WORKLOADS = 10_000
"""The number of workloads whose absence is remembered."""


class Observations:
    """All observations. The methods note what happens in the cluster, and what is written."""

    def __init__(self, clock: Clock, one_pod_drivers: frozenset[str] = frozenset()) -> None:
        self.boots = BootIds()
        self.kubelets = Kubelets(clock)
        self.slices = SlicesOnNodes(clock)
        self.ghosts = GhostLedger(clock, self.boots, self.kubelets, slices=self.slices)
        self.claims = Memories(clock)
        self.reservations = ReservationsSeen(clock)
        self.arrivals = PodArrivals(clock)
        self.drivers = DriversSeen(clock, one_pod_drivers)
        self.own_writes = OwnWrites(clock)
        self.group_names = GroupNames(clock)
        self.gone_workloads: TTLCache[WorkloadKey, None] = TTLCache(
            REMEMBERED_WORKLOADS, ABSENT_SECONDS, clock.monotonic
        )
        """Workloads that a GET did not find a moment ago, so that one GET serves several decisions.
        After that time, a late cache may not show a new workload of that name."""
        self.kcm_left_dead_references = False
        """Whether kube-controller-manager was seen to leave dead pods beside other references.
        claimctl then does not wait for it again, until the dialect is detected again."""
        self.kcm_listed_finished_pod = False
        """Whether kube-controller-manager was seen to list a finished pod again: it may be older
        than the API server."""

    def cluster_changed(self) -> None:
        """Note that the dialect was detected again: the cluster may have another version now."""
        self.kcm_left_dead_references = self.kcm_listed_finished_pod = False

    def claim_changed(self, change: Change[ResourceClaim]) -> None:
        self.claims.openings.observe(change)
        for name in groups_in(change.old.status.reserved_for if change.old is not None else ()):
            self.group_names.used(GroupKey(change.namespace, name))
        if change.new is not None:
            created = change.old is None and not change.relist
            self.claims.see(change.new, just_allocated=just_allocated(change), created=created)
            if change.relist:
                self.claims.missed(change.new)
        elif change.old is not None:
            key = ClaimKey(change.namespace, change.name)
            self.claims.forget(key)
            self.reservations.claim_gone(key)
            self.ghosts.forget(key, change.old.metadata.resource_version)

    def list_changed(self, change: Change[ResourceClaim], pods: Iterable[Pod]) -> None:
        """Note what a new list of a claim says about kube-controller-manager; ``pods`` are the
        cached pods that name the claim."""
        added = () if self.kcm_listed_finished_pod else _pods_added(change)
        if added and not added.isdisjoint(pod.metadata.uid for pod in pods if is_finished(pod)):
            self.kcm_listed_finished_pod = True

    def pods_listed(self, before: str, version: str) -> None:
        """Note a LIST of all pods (see ``Memories.pods_listed``)."""
        self.claims.pods_listed(before, version)
        if before and not reaches(version, before):
            self.ghosts.history_lost()
        self.ghosts.pods_listed(before, version)

    def claims_listed(self, before: str, version: str, reserved: Iterable[ClaimKey] = ()) -> None:
        """Note a LIST of all claims (see ``Memories.claims_listed``)."""
        self.claims.claims_listed(before, version, reserved)
        if before and not reaches(version, before):
            self.ghosts.history_lost()

    def pod_changed(self, change: Change[Pod]) -> None:
        self.ghosts.observe(change.old, change.new, relist=change.relist)
        self.arrivals.observe(change)
        if same_to_claims(change):
            return
        for pod in (change.old, change.new):
            if pod is not None and not is_done(pod) and may_use(pod):
                for name in claim_names(pod):
                    self.reservations.used(ClaimKey(change.namespace, name))

    def pod_beside(self, key: ClaimKey, claim: ResourceClaim, pod: Pod) -> None:
        """Note how a pod of the claim starts, or does not."""
        self.drivers.observe(claim, pod, alone=not self.ghosts.any_of(key))

    def workload_changed(self, key: WorkloadKey) -> None:
        """Note a change of a workload: what a live read told about it before does not count."""
        self.gone_workloads.pop(key, None)

    def group_changed(self, change: Change[PodGroup]) -> None:
        if change.new is None:
            self.group_names.used(GroupKey(change.namespace, change.name))

    def reservation_changed(self, change: Change[ClaimReservation]) -> None:
        if change.new is not None:
            self.reservations.see(change.old, change.new)
        elif change.old is not None:
            key = ClaimKey(change.namespace, change.old.spec.resource_claim_name)
            self.claims.reservation_gone(key, change.old.metadata.resource_version)
            self.reservations.gone(change.old)

    def node_changed(self, change: Change[Node]) -> bool:
        """Note a node; return whether it has been rebooted since it was last seen."""
        if change.new is None:
            return False
        self.kubelets.observe(change.new)
        self.ghosts.node_changed(change.new)
        if not self.boots.observe(change.new):
            return False
        self.ghosts.node_booted(change.new, relist=change.relist)
        return True

    def wrote(
        self, snapshot: Snapshot, write: Write, written: ObjectMeta | None, *, hurried: bool = False
    ) -> None:
        """Note a write of this process, so that no decision uses an older state.

        Args:
            written: the metadata of the object in the answer; None if it was deleted.
            hurried: whether the next step waits for nothing but the watch event of this write.
        """
        key = ClaimKey(snapshot.namespace, snapshot.name)
        if written is not None:
            last = isinstance(write, WriteStatus) and write.last
            resource = CLAIMRESERVATIONS if isinstance(write, ReservationWrite) else RESOURCECLAIMS
            self.own_writes.wrote(resource, written, hurried=hurried, last=last)
        match write:
            case WriteList(deallocate=True) if written is not None:
                self.claims.deallocated(written)
            case WriteList(fence=True):
                self.claims.fenced(key)
            case WriteList():
                if is_left_by_kcm(snapshot, write):
                    self.kcm_left_dead_references = True
                    left = "kube-controller-manager leaves dead references"
                    log.info(f"{left}: claimctl removes them")
                self.claims.wrote_list(key, write.reserved_for)
            case WriteStatus():
                self.reservations.wrote_status(write.reservation, write.status)
                if write.last:
                    self.reservations.statuses_due(key, ())


def _pods_added(change: Change[ResourceClaim]) -> frozenset[str]:
    """UIDs of the pods that this version of the claim lists and the one before did not."""
    if change.old is None or change.new is None or change.relist:
        return frozenset()
    before, after = change.old.status.reserved_for, change.new.status.reserved_for
    return pods_in(after) - {entry.uid for entry in before}


def just_allocated(change: Change[ResourceClaim]) -> bool:
    """Whether the write of this version allocated the claim, as shown by a watch event."""
    old, new = change.old, change.new
    has = new is not None and new.status.allocation is not None
    return has and not change.relist and (old is None or old.status.allocation is None)


def same_to_claims(change: Change[Pod]) -> bool:
    """Whether the change of a pod does not matter to its claims (a probe, a label)."""
    old, new = change.old, change.new
    return (
        old is not None
        and new is not None
        and old.metadata.deleting == new.metadata.deleting
        and old.spec == new.spec
        and old.status == new.status
    )
