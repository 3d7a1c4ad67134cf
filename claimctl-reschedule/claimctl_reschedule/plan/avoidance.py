"""Which nodes the pods of one owner avoid, and for how long: the memory of refusals.

The first refusal of a pod is normal: a pod that is ending may still take up its room
(kubernetes/kubernetes#106884). From the second one on, within a time, the owner's new pods avoid
the node for ten minutes. The time doubles each time that the node refuses them again, up to six
hours. The node is tried again earlier if it has changed.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from claimctl.wire.base import encode
from claimctl_reschedule.plan.facts import created_at
from claimctl_reschedule.plan.refusals import refused_at
from claimctl_reschedule.shapes.devices import SchedulingSlice
from claimctl_reschedule.shapes.records import (
    MAX_AVOIDED,
    MAX_REFUSALS,
    RecordedAvoidance,
    RecordedAvoidedNode,
    RecordedRefusal,
)
from claimctl_reschedule.shapes.scheduling import SchedulingNode, SchedulingPod

ENOUGH = 2
"""So many refusals by one node make an owner avoid it."""
FIRST = timedelta(minutes=10)
LONGEST = timedelta(hours=6)
NEGLECTED = timedelta(hours=1)
"""A run that was due so long ago will not come."""
_SKEW = timedelta(minutes=1)
"""A time that is later than now by more than this was written before the clock was set back."""


def with_refusals(
    entry: RecordedAvoidance, refused: Iterable[SchedulingPod], now: datetime, window: timedelta
) -> RecordedAvoidance:
    """The entry with the refusals of the last ``window``, each pod once, oldest first."""
    known = {refusal.pod_uid: refusal for refusal in entry.refusals}
    for pod in refused:
        uid = pod.metadata.uid
        new = RecordedRefusal(pod_uid=uid, node=pod.spec.node_name, at=refused_at(pod))
        known.setdefault(uid, new)
    first, last = now - window, now + _SKEW
    recent = [known_ for known_ in known.values() if known_.at and first < known_.at <= last]
    recent.sort(key=lambda refusal: (refusal.at, refusal.pod_uid))
    return replace(entry, refusals=tuple(recent[-MAX_REFUSALS:]))


def is_empty(entry: RecordedAvoidance) -> bool:
    """Whether there is nothing to remember of the owner."""
    return not (entry.refusals or entry.avoided or entry.nodes or entry.braked)


def in_force(entry: RecordedAvoidance, now: datetime) -> tuple[str, ...]:
    """The names of the nodes that are avoided now, sorted."""
    return tuple(sorted(past.node for past in entry.avoided if _lasts(past, now)))


def of_node(entry: RecordedAvoidance, node: str) -> RecordedAvoidedNode | None:
    """The last avoidance of a node."""
    return next((past for past in entry.avoided if past.node == node), None)


def _lasts(past: RecordedAvoidedNode, now: datetime) -> bool:
    return past.until is not None and now < past.until <= now + LONGEST


def complaints(
    entries: Iterable[RecordedAvoidance], now: datetime
) -> Iterator[tuple[RecordedAvoidance, str]]:
    """The owners whose pods wait, or avoid nodes although nobody looks after that any more."""
    for entry in entries:
        due = entry.brake.next_probe if entry.brake is not None else None
        until = [past.until for past in entry.avoided if past.node in entry.nodes]
        if entry.braked:
            late = due is None or due + NEGLECTED < now
            runs = (
                "no run has removed the gate in time" if late else "runs let one through at times"
            )
            yield entry, f"nodes reject its pods, so new pods are gated, and {runs}"
        elif entry.nodes and all(time is None or time + NEGLECTED < now for time in until):
            names = ", ".join(entry.nodes)
            yield entry, f"its pods avoid {names} longer than they should: no run ends it"


def _early(entry: RecordedAvoidance) -> Counter[str]:
    """How many pods each node refused before it was last avoided."""
    since = {past.node: past.since for past in entry.avoided}
    return Counter(
        refusal.node
        for refusal in entry.refusals
        if (start := since.get(refusal.node)) and refusal.at and refusal.at <= start
    )


def refusers(entry: RecordedAvoidance, now: datetime) -> tuple[str, ...]:
    """The nodes that have refused enough pods and are not avoided now, sorted."""
    counts = Counter(refusal.node for refusal in entry.refusals) - _early(entry)
    closed = in_force(entry, now)
    return tuple(sorted(n for n, count in counts.items() if count >= ENOUGH and n not in closed))


def in_spite(entry: RecordedAvoidance) -> int:
    """How many refusals avoidances did not prevent. Of many by one node before it is avoided,
    ``ENOUGH`` count."""
    early = _early(entry)
    later = len(entry.refusals) - early.total()
    return later + sum(min(count, ENOUGH) for count in early.values())


def avoiding(
    entry: RecordedAvoidance, node: str, seen: str, now: datetime, *, once: bool = False
) -> RecordedAvoidance:
    """The entry with one more node to avoid from now on; ``seen`` is its digest. ``once``: only
    remember that pods have left the node, and keep no new pods off it."""
    past = of_node(entry, node)
    times = past.times if past is not None else 0
    until = now if once else now + min(FIRST * (1 << min(times, 10)), LONGEST)
    times += not once
    new = RecordedAvoidedNode(node=node, seen=seen, times=times, since=now, until=until)
    others = [past for past in entry.avoided if past.node != node]
    # what is in force is forgotten last
    others.sort(key=lambda past: (_lasts(past, now), past.since or now))
    return replace(entry, avoided=(*others[-(MAX_AVOIDED - 1) :], new))


def ended(entry: RecordedAvoidance, node: str, now: datetime) -> RecordedAvoidance:
    """The entry with the avoidance of a node ended before its time."""
    avoided = (
        replace(past, until=now) if past.node == node and _lasts(past, now) else past
        for past in entry.avoided
    )
    return replace(entry, avoided=tuple(avoided))


def without_outdated(
    entry: RecordedAvoidance,
    digests: dict[str, str],
    running: Sequence[SchedulingPod],
    now: datetime,
) -> RecordedAvoidance:
    """The entry without the nodes that deserve another try: nodes that are gone or have changed,
    nodes on which a later pod of the owner runs, and those whose last avoidance was over long ago.
    ``digests`` says what each node is like now, and ``running`` has the owner's running pods."""

    def is_valid(past: RecordedAvoidedNode) -> bool:
        if past.since is None or past.until is None or digests.get(past.node) != past.seen:
            return False
        here = [pod for pod in running if pod.spec.node_name == past.node]
        started = max(map(created_at, here), default=0.0)
        in_time = past.since <= now + _SKEW and now < past.until + LONGEST
        return in_time and started <= past.since.timestamp()

    return replace(entry, avoided=tuple(filter(is_valid, entry.avoided)))


def digests_of(
    nodes: Iterable[SchedulingNode], slices: Iterable[SchedulingSlice]
) -> dict[str, str]:
    """What each node is like, by name: boot, kubelet, room, labels, and its pools' generations."""
    pools: dict[str, set[tuple[str, str, int]]] = defaultdict(set)
    for slice_ in slices:
        pool = slice_.spec.pool
        generation = (slice_.spec.driver, pool.name, pool.generation)
        pools[slice_.spec.node_name or ""].add(generation)
    digests: dict[str, str] = {}
    for node in nodes:
        info, meta = node.status.node_info, node.metadata
        seen = (
            meta.uid,
            info.boot_id,
            info.kubelet_version,
            sorted((key, str(amount)) for key, amount in (node.status.allocatable or {}).items()),
            sorted((meta.labels or {}).items()),
            sorted(pools[meta.name]),
        )
        digests[meta.name] = hashlib.sha256(encode(seen)).hexdigest()[:16]
    return digests
