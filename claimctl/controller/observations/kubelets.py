"""Signs of life of kubelets: renewals of their Leases, and reports after a start.

No clock of a node is compared with ours. A renewal counts as made when a read showed the Lease
without it at the latest, so it is never taken for younger than it is. A start is taken for younger
than it is: a kubelet reports its whole status as soon as it starts, and a report counts as a start
when the cache of nodes shows it. (A kubelet reports every five minutes, too, and after changes.)

A kubelet renews its Lease also while its container runtime is down. Then it ends no container, and
its Node is not Ready: no renewal until then counts.

A kubelet that was cut off hears only afterwards which pods are gone, and a pause of less than 50 s
changes nothing in the Node. So the end of a pause in the renewals counts as a start, too.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime

from cachetools import LRUCache

from claimctl.reservation.facts.memory import SignsOfLife
from claimctl.wire.coordination import Lease, renewed_at
from claimctl.wire.meta import precedes
from claimctl.wire.nodes import Node
from claimctl.wire.seams import Clock

REMEMBERED_NODES = 10_000
PAUSE_SECONDS = 20.0
"""A kubelet that renews after a longer time was away: it renews every 10 s, by default. A kubelet
with a longer Lease renews more slowly: four times in the duration of the Lease."""


@dataclass(slots=True)
class _Report:
    """The last whole status of a node."""

    at: datetime | None
    version: str
    """The version of the Node that brought it."""
    seen: float
    unready: bool = False


@dataclass(slots=True)
class _Renewals:
    """The Lease of a node."""

    at: datetime
    read: float
    """When the last read began that showed this renewal as the last one."""
    changed: float
    """When a read first showed this renewal."""
    back: float | None = None
    """When a read first showed the last renewal that came after a pause."""
    seen: deque[float] = field(default_factory=lambda: deque(maxlen=2))


class Kubelets:
    """What is known of the kubelet of each node."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._reports: LRUCache[str, _Report] = LRUCache(REMEMBERED_NODES)
        self._leases: LRUCache[str, _Renewals] = LRUCache(REMEMBERED_NODES)
        self._missing: LRUCache[str, float] = LRUCache(REMEMBERED_NODES)
        """When a node was first found to have no Lease, or none that may be read."""

    def observe(self, node: Node) -> None:
        """Note a version of a Node from the cache."""
        name, report = node.metadata.name, node.status.last_report
        known = self._reports.get(name)
        if known is None or known.at != report:
            version, now = node.metadata.resource_version, self._clock.monotonic()
            known = self._reports[name] = _Report(report, version, now)
        known.unready = node.status.is_unready
        if known.unready:
            self.unknown(name)

    def unknown(self, node_name: str) -> None:
        """Note that it is unknown whether the kubelet worked: no renewal until now counts."""
        if (lease := self._leases.get(node_name)) is not None:
            lease.seen.clear()

    def read_lease(self, node_name: str, lease: Lease | None, began: float) -> None:
        """Note an answer of the API server about a node's Lease.

        Args:
            lease: None if the node has no Lease, or if it may not be read.
            began: when the read began.
        """
        if lease is None:
            self._leases.pop(node_name, None)
            self._missing.setdefault(node_name, self._clock.monotonic())
            return
        self._missing.pop(node_name, None)
        at, known, now = renewed_at(lease), self._leases.get(node_name), self._clock.monotonic()
        if known is None or at < known.at:
            # for the first time, or etcd was restored from a backup
            self._leases[node_name] = _Renewals(at, began, now)
            return
        if at > known.at:
            report = self._reports.get(node_name)
            if report is None or not report.unready:
                known.seen.append(known.read)
            # the pause may have begun before the first read
            pause = max(now - known.changed, (at - known.at).total_seconds())
            if pause > max(PAUSE_SECONDS, (lease.spec.lease_duration_seconds or 0) / 2):
                known.back = now
            known.at, known.changed = at, now
        known.read = began

    def last_renewal(self, node_name: str) -> float | None:
        """The monotonic time of the last renewal that reads have shown; None if there is none."""
        known = self._leases.get(node_name)
        return known.seen[-1] if known is not None and known.seen else None

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
        report = self._reports.get(node_name)
        start_age: float | None = now - known_since
        if report is not None and not precedes(report.version, vanished_at):
            start_age = now - max(report.seen, known_since)
        elif report is not None and report.at is not None:
            start_age = None
        if lease.back is not None and lease.back > known_since:
            start_age = min(now - lease.back, now - known_since if start_age is None else start_age)
        return SignsOfLife(tuple(now - at for at in lease.seen), start_age)
