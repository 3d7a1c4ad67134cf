"""The checkpoint in the Lease: a version up to which the leader has put everything on record.

A controller that starts does not know which pods vanished before. The leader does. So with its
renewals of the Lease, it notes a version R that its caches have reached, and the claims that R does
not cover. It covers a claim if a status of R or before names each of its ghosts that still counts,
and the leader has missed nothing of it. Nor does it cover a namespace with an object that cannot be
read, or whose reservations were deleted after R: nobody looks at their claims any more.

A controller that starts lists reservations, pods and claims as they were at R and watches from
there on, and a release waits for no grace. If the API server does not have R any more (etcd
compacts after five minutes), it lists as they are now, and the grace counts as after any start.

If etcd is restored from a backup, the Lease comes back with its checkpoint, and pods may run whose
objects are lost. Nothing in the Lease shows that. But API servers are stopped for a restore, and an
API server refuses to watch claims from a version that is older than its own start. So the
checkpoint counts only if it accepts that watch (``Memories.claims_listed``).

The Lease's UID stands beside R: a Lease that was restored into another cluster has another one.
What is not covered follows R.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from claimctl.controller.caches.informers import Caches, reserved_key
from claimctl.controller.keys import ClaimKey
from claimctl.controller.snapshots import CacheView, Knowledge
from claimctl.kube.informer import Informer
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.users.ghosts import all_on_record, merge_ghosts
from claimctl.wire.coordination import Lease
from claimctl.wire.meta import reaches
from claimctl.wire.reservations import ClaimReservation

ANNOTATION = "claimctl.io/checkpoint"
INTERVAL_SECONDS = 10.0
"""Least time between two checkpoints. Each looks at every reserved claim."""
_UNASKED = WorkloadState(WorkloadPhase.UNSEEN)


MOST_NAMED = 64
"""The most claims that are named as not covered. Beyond that, namespaces are named instead."""
MOST_NAMESPACES = 256
"""The most namespaces that are named. If there are more, no checkpoint is noted."""
_FORM = re.compile(r"([0-9]{1,20})(?: except ([a-z0-9.,/-]+))?")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A version of the cluster, and what it does not cover.

    Attributes:
        version: the version; '' if there is no checkpoint.
        uncovered: namespaces, and claims as ``namespace/name``.
    """

    version: str = ""
    uncovered: frozenset[str] = frozenset()

    def covers(self, key: ClaimKey) -> bool:
        return self.uncovered.isdisjoint((key.namespace, str(key)))

    def __str__(self) -> str:
        left_out = ",".join(sorted(self.uncovered))
        return f"{self.version} except {left_out}" if left_out else self.version


def read(lease: Lease) -> Checkpoint:
    """The checkpoint in the Lease. It has no version if the Lease has none, if it was noted in
    another Lease, or if it has another form."""
    uid, _, text = (lease.metadata.annotation(ANNOTATION) or "").partition("/")
    form = _FORM.fullmatch(text)
    if not uid or uid != lease.metadata.uid or form is None:
        return Checkpoint()
    return Checkpoint(form[1], frozenset((form[2] or "").split(",")) - {""})


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
        version, memories = reached(self._know.caches), self._know.observations.claims
        least = memories.least_checkpoint
        if version in ("", self._last) or (least and not reaches(version, least)):
            return {}
        namespaces = unread_namespaces(self._know.caches) | memories.not_covered_by(version)
        claims = [
            key
            for key, snapshot, recorded in self._snapshots(version)
            if not all_on_record(snapshot, recorded)
        ]
        uncovered = named(claims, namespaces)
        if uncovered is None:
            return {}
        self._last, self._at = version, now
        return {ANNOTATION: f"{lease.metadata.uid}/{Checkpoint(version, uncovered)}"}

    def _snapshots(self, version: str) -> Iterator[tuple[ClaimKey, Snapshot, frozenset[str]]]:
        """Yield each reserved and allocated claim, with what concerns its vanished pods, and the
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
            present = {ghost.pod.uid: ghost.pod for ghost in ghosts}
            recorded = frozenset(
                ghost.uid
                for reservation in reservations
                if reaches(version, reservation.metadata.resource_version)
                for ghost in reservation.status.force_deleted_pods
                # the record tells as much as this process knows
                if merge_ghosts(ghost, present.get(ghost.uid, ghost)) == ghost
            )
            snapshot = Snapshot(
                now=self._know.clock.now(),
                namespace=key.namespace,
                name=key.name,
                claim=claim,
                reservations=tuple(Held(reservation, _UNASKED) for reservation in reservations),
                ghosts=ghosts,
                nodes=self._nodes,
                rules=self._know.rules,
                memory=seen.claims.memory(claim),
            )
            yield key, snapshot, recorded


def named(claims: Iterable[ClaimKey], namespaces: Iterable[str]) -> frozenset[str] | None:
    """What a checkpoint does not cover, as it is noted; None if that is too much to be named.

    Where too many claims would be named, the namespaces that have most of them are named instead.
    """
    whole, by_namespace = set(namespaces), defaultdict[str, list[str]](list)
    for key in claims:
        if key.namespace not in whole:
            by_namespace[key.namespace].append(str(key))
    count = sum(map(len, by_namespace.values()))
    for namespace, names in sorted(by_namespace.items(), key=lambda item: -len(item[1])):
        if count > MOST_NAMED:
            whole.add(namespace)
            count -= len(names)
            names.clear()
    if "" in whole or len(whole) > MOST_NAMESPACES:
        return None
    return frozenset(whole.union(*by_namespace.values()))


def reached(caches: Caches) -> str:
    """The version that the caches of reservations, pods and claims have reached; '' if unknown."""
    versions = [informer.version for informer in begun_at(caches)]
    return min(versions, key=int) if all(version.isdecimal() for version in versions) else ""


def unread_namespaces(caches: Caches) -> set[str]:
    """The namespaces with an object that cannot be read; '' stands for one that is unknown."""
    return {item.namespace for informer in begun_at(caches) for item in informer.unread()}


def begun_at(caches: Caches) -> tuple[Informer[Any], ...]:
    """The caches that begin at a checkpoint, and whose version it is."""
    return caches.reservations, caches.pods, caches.claims
