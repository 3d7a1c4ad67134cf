"""The checkpoint in the Lease: a version up to which the leader has put everything on record.

A controller that starts does not know which pods vanished before. The leader does. So with its
renewals of the Lease, it notes a version R that its caches have reached, if a status of R or before
names each ghost that still counts, and the leader has missed nothing of any reserved claim.

A controller that starts lists reservations, pods and claims as they were at R and watches from
there on, and a release waits for no grace. If the API server does not have R any more (etcd
compacts after five minutes), it lists as they are now, and the grace counts as after any start.

If etcd is restored from a backup, the Lease comes back with its checkpoint, and pods may run whose
objects are lost. Nothing in the Lease shows that. But API servers are stopped for a restore, and an
API server refuses to watch claims from a version that is older than its own start. So the
checkpoint counts only if it accepts that watch (``Memories.claims_listed``).

The Lease's UID stands beside R: a Lease that was restored into another cluster has another one.
"""

from __future__ import annotations

from collections.abc import Iterator

from claimctl.controller.caches.informers import Caches, reserved_key
from claimctl.controller.keys import ClaimKey
from claimctl.controller.snapshots import CacheView, Knowledge
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.users.ghosts import all_on_record
from claimctl.wire.coordination import Lease
from claimctl.wire.meta import reaches
from claimctl.wire.reservations import ClaimReservation

ANNOTATION = "claimctl.io/checkpoint"
INTERVAL_SECONDS = 10.0
"""Least time between two checkpoints. Each looks at every reserved claim."""
_UNASKED = WorkloadState(WorkloadPhase.UNSEEN)


def read(lease: Lease) -> str:
    """The version in the Lease; '' if there is none, or if it was noted in another Lease."""
    uid, _, version = (lease.metadata.annotation(ANNOTATION) or "").partition("/")
    good = uid == lease.metadata.uid and version.isascii() and version.isdecimal()
    return version if good else ""


class Checkpoints:
    """Makes the annotations of the Lease."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._know = knowledge
        self._nodes = CacheView(knowledge.caches.nodes)
        self._last = ""
        self._at: float | None = None

    def annotations(self, lease: Lease) -> dict[str, str]:
        """The annotation to write with a renewal; none if there is nothing new to note: the present
        checkpoint never becomes wrong."""
        now = self._know.clock.monotonic()
        if not lease.metadata.uid or (self._at is not None and now - self._at < INTERVAL_SECONDS):
            return {}
        version, least = reached(self._know.caches), self._know.observations.claims.least_checkpoint
        if version in ("", self._last) or (least and not reaches(version, least)):
            return {}
        if not all(all_on_record(*known) for known in self._snapshots(version)):
            return {}
        self._last, self._at = version, now
        return {ANNOTATION: f"{lease.metadata.uid}/{version}"}

    def _snapshots(self, version: str) -> Iterator[tuple[Snapshot, frozenset[str]]]:
        """Yield, for each reserved and allocated claim, what concerns its vanished pods, and the
        UIDs of the ghosts that a status names at ``version``."""
        caches, seen = self._know.caches, self._know.observations
        reserved: dict[ClaimKey, list[ClaimReservation]] = {}
        for reservation in caches.reservations.items():
            reserved.setdefault(reserved_key(reservation), []).append(reservation)
        for key, reservations in reserved.items():
            claim = caches.claims.get(key.name, key.namespace)
            if claim is None or claim.status.allocation is None:
                continue
            ghosts = seen.ghosts.of(key)
            recorded = frozenset(
                ghost.uid
                for reservation in reservations
                if reaches(version, reservation.metadata.resource_version)
                for ghost in reservation.status.force_deleted_pods
            )
            snapshot = Snapshot(
                now=self._know.clock.now(),
                namespace=key.namespace,
                name=key.name,
                claim=claim,
                reservations=tuple(Held(reservation, _UNASKED) for reservation in reservations),
                ghosts=ghosts.pods,
                nodes=self._nodes,
                rules=self._know.rules,
                memory=seen.claims.memory(claim, ghosts),
            )
            yield snapshot, recorded


def reached(caches: Caches) -> str:
    """The version that the caches of reservations, pods and claims have reached; '' if unknown."""
    informers = (caches.reservations, caches.pods, caches.claims)
    versions = [informer.version for informer in informers]
    unread = any(informer.unread() for informer in informers)
    known = not unread and all(version.isdecimal() for version in versions)
    return min(versions, key=int) if known else ""
