"""Signs of life of kubelets: the renewals of their Leases, and the rhythm of these.

A kubelet renews its Lease four times in the Lease's duration, and when it starts. So a start, and
the end of a pause, break the rhythm. Reports of the Node's status tell nothing: a setting of the
kubelet says how often it makes them (``nodeStatusUpdateFrequency``).

No clock of a node is compared with ours: a rhythm is a matter of the node's clock alone. A renewal
counts as made when a read showed the Lease without it at the latest, so it is never taken for
younger than it is. A start is taken for younger than it is: it counts from the read that shows it.

A kubelet renews its Lease also while its container runtime is down. Then it ends no container, and
its Node is not Ready: no renewal until then counts, and it counts as started afterwards.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from cachetools import LRUCache

from claimctl.reservation.facts.memory import SignsOfLife
from claimctl.reservation.users.ghosts import RENEWAL_JITTER, longest_pause, silent_seconds
from claimctl.wire.coordination import Lease, renewal_seconds, renewed_at
from claimctl.wire.meta import precedes
from claimctl.wire.nodes import Node
from claimctl.wire.seams import Clock

REMEMBERED_NODES = 10_000
MISSED_SECONDS = 4.0
"""In so much time, reads may miss renewals of a kubelet that renews more often."""
_EARLY = 0.99
"""A renewal comes early by so much where the node's clock is being set right."""


@dataclass(slots=True)
class _Renewals:
    """The renewals of a node's Lease, as reads have shown them."""

    at: datetime
    """The last one, by the node's clock."""
    every: float
    """How often the kubelet renews it, in seconds."""
    read: float
    """When the last read began that showed this renewal as the last one."""
    first: str
    """The version of the Lease with the first renewal of the present rhythm; '' before that."""
    began: float
    """When a read first showed that renewal, or when the kubelet may have been started else."""
    seen: deque[float] = field(default_factory=lambda: deque(maxlen=2))
    """The last two that count: when the last read began that did not show the renewal yet."""

    def breaks(self, passed: float, unread: float) -> bool:
        """Whether a renewal may be that of a start.

        Args:
            passed: seconds since the renewal before it.
            unread: seconds since the last read that did not show it.
        """
        times = max(round(passed / self.every / RENEWAL_JITTER), 1)
        missed, pause = (times - 1) * self.every, times * self.every
        fits = pause * _EARLY <= passed <= longest_pause(pause)
        return not fits or missed > min(unread, MISSED_SECONDS)


class Kubelets:
    """What is known of the kubelet of each node."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._unready: LRUCache[str, None] = LRUCache(REMEMBERED_NODES)
        self._leases: LRUCache[str, _Renewals] = LRUCache(REMEMBERED_NODES)
        self._missing: LRUCache[str, float] = LRUCache(REMEMBERED_NODES)
        """When a node was first found to have no Lease, or none that may be read."""

    def observe(self, node: Node) -> None:
        """Note a version of a Node."""
        name = node.metadata.name
        was_unready = self._unready.pop(name, self) is None
        if node.status.is_unready:
            self._unready[name] = None
        if was_unready or node.status.is_unready:
            self.unknown(name, started=True)

    def unknown(self, node_name: str, *, started: bool = False) -> None:
        """Note that it is unknown whether the kubelet worked: no renewal until now counts.

        Args:
            started: whether it may have been started, too.
        """
        if (lease := self._leases.get(node_name)) is not None:
            lease.seen.clear()
            if started:
                lease.first, lease.began = "", self._clock.monotonic()

    def read_lease(self, node_name: str, lease: Lease | None, began: float) -> bool:
        """Note an answer of the API server about a node's Lease; return whether it was renewed.

        Args:
            lease: None if the node has no Lease, or if it may not be read.
            began: when the read began.
        """
        now = self._clock.monotonic()
        if lease is None:
            self._leases.pop(node_name, None)
            self._missing.setdefault(node_name, now)
            return False
        self._missing.pop(node_name, None)
        at, every = renewed_at(lease), renewal_seconds(lease)
        version = lease.metadata.resource_version
        known = self._leases.get(node_name)
        if known is None or at < known.at:
            # for the first time, or etcd was restored from a backup
            self._leases[node_name] = _Renewals(at, every, began, version, now)
            return True
        if is_new := at > known.at:
            if node_name not in self._unready:
                known.seen.append(known.read)
            passed = (at - known.at).total_seconds()
            if known.breaks(passed, now - known.read) or every != known.every:
                known.began, known.first = now, ""
            known.first = known.first or version
        known.at, known.every, known.read = at, every, began
        return is_new

    def last_renewal(self, node_name: str) -> float | None:
        """The monotonic time of the last renewal that reads have shown; None if there is none."""
        known = self._leases.get(node_name)
        return known.seen[-1] if known is not None and known.seen else None

    def silent_seconds(self, node_name: str) -> float:
        """How long the kubelet may be silent."""
        known = self._leases.get(node_name)
        return silent_seconds(known.every if known is not None else 0.0)

    def signs(self, node_name: str, known_since: float, vanished_at: str) -> SignsOfLife | None:
        """The signs of life of a node since a pod vanished; None before the first look at it.

        Args:
            known_since: when this process noted that the pod was gone.
            vanished_at: the version of the pod's deletion; '' if unknown.
        """
        lease, now = self._leases.get(node_name), self._clock.monotonic()
        if lease is None:
            missing = self._missing.get(node_name)
            return None if missing is None else SignsOfLife(missing_age=now - missing)
        same = precedes(lease.first, vanished_at)
        start_age = None if same else now - max(lease.began, known_since)
        renewals = tuple(now - at for at in lease.seen)
        return SignsOfLife(renewals, start_age, renewal_seconds=lease.every)
