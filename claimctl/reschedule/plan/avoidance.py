"""Which nodes the pods of one owner avoid, and for how long: the memory of refusals.

The first refusal of a pod is normal: a pod that is ending may still take up its room
(kubernetes/kubernetes#106884). From the second one on, within a time, the owner's new pods avoid
the node for ten minutes. The time doubles each time that the node refuses them again, up to six
hours. The node is tried again earlier if it has changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from msgspec.structs import replace

from claimctl.reschedule.plan.refusals import refused_at
from claimctl.reschedule.shapes.devices import SchedulingSlice
from claimctl.reschedule.shapes.records import (
    RecordedAvoidance,
    RecordedAvoidedNode,
    RecordedRefusal,
)
from claimctl.reschedule.shapes.scheduling import SchedulingNode, SchedulingPod
from claimctl.wire.base import encode

ENOUGH = 2
"""So many refusals by one node make an owner avoid it."""
FIRST = timedelta(minutes=10)
LONGEST = timedelta(hours=6)
MOST_NODES = 16
MOST_REFUSALS = 16
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
    recent = [
        each
        for each in known.values()
        if each.at is not None and now - window < each.at <= now + _SKEW
    ]
    recent.sort(key=lambda each: (each.at, each.pod_uid))
    return replace(entry, refusals=tuple(recent[-MOST_REFUSALS:]))


def is_empty(entry: RecordedAvoidance) -> bool:
    """Whether there is nothing to remember of the owner."""
    return not (entry.refusals or entry.avoided or entry.nodes or entry.braked)


def in_force(entry: RecordedAvoidance, now: datetime) -> tuple[str, ...]:
    """The names of the nodes that are avoided now, sorted."""
    return tuple(
        sorted(avoided_node.node for avoided_node in entry.avoided if _lasts(avoided_node, now))
    )


def _lasts(each: RecordedAvoidedNode, now: datetime) -> bool:
    return each.until is not None and now < each.until <= now + LONGEST


def complaints(
    entries: Iterable[RecordedAvoidance], now: datetime
) -> Iterator[tuple[RecordedAvoidance, str]]:
    """The owners whose pods wait, or avoid nodes although nobody looks after that any more."""
    for entry in entries:
        due = entry.brake.next_probe if entry.brake is not None else None
        until = [one.until for one in entry.avoided if one.node in entry.nodes]
        if entry.braked:
            late = due is None or due + NEGLECTED < now
            removal = (
                "no run has removed the gate in time" if late else "runs let one through at times"
            )
            yield entry, f"nodes reject its pods, so new pods are gated, and {removal}"
        elif entry.nodes and all(one is None or one + NEGLECTED < now for one in until):
            yield (
                entry,
                f"its pods avoid {', '.join(entry.nodes)} longer than they should: no run ends it",
            )


def refusers(entry: RecordedAvoidance, now: datetime) -> tuple[str, ...]:
    """The nodes that have refused enough pods and are not avoided now, sorted."""
    before = {avoided_node.node: avoided_node for avoided_node in entry.avoided}
    counts: dict[str, int] = {}
    for refusal in entry.refusals:
        past = before.get(refusal.node)
        if (
            past is None
            or past.since is None
            or (refusal.at is not None and refusal.at > past.since)
        ):
            counts[refusal.node] = counts.get(refusal.node, 0) + 1
    closed = set(in_force(entry, now))
    return tuple(sorted(n for n, count in counts.items() if count >= ENOUGH and n not in closed))


def in_spite(entry: RecordedAvoidance) -> int:
    """How many refusals avoidances did not prevent.

    Many pods may be refused by one node before it is avoided; they count as few.
    """
    since = {avoided_node.node: avoided_node.since for avoided_node in entry.avoided}
    early: dict[str, int] = {}
    later = 0
    for refusal in entry.refusals:
        start = since.get(refusal.node)
        if start is not None and refusal.at is not None and refusal.at <= start:
            early[refusal.node] = early.get(refusal.node, 0) + 1
        else:
            later += 1
    return later + sum(min(count, ENOUGH) for count in early.values())


def avoiding(
    entry: RecordedAvoidance, node: str, seen: str, now: datetime, *, once: bool = False
) -> RecordedAvoidance:
    """The entry with one more node to avoid, from now on.

    Args:
        seen: the digest of the node.
        once: only remember that pods have left the node. Nothing keeps new pods off it.
    """
    past = next((avoided_node for avoided_node in entry.avoided if avoided_node.node == node), None)
    times = past.times if past is not None else 0
    until = now if once else now + min(FIRST * (1 << min(times, 10)), LONGEST)
    new = RecordedAvoidedNode(
        node=node, seen=seen, times=times + (not once), since=now, until=until
    )
    others = [avoided_node for avoided_node in entry.avoided if avoided_node.node != node]
    # what is in force is forgotten last
    others.sort(key=lambda each: (_lasts(each, now), each.since or now))
    return replace(entry, avoided=(*others[-(MOST_NODES - 1) :], new))


def ended(entry: RecordedAvoidance, node: str, now: datetime) -> RecordedAvoidance:
    """The entry with the avoidance of a node ended before its time."""
    avoided = tuple(
        replace(avoided_node, until=now)
        if avoided_node.node == node and _lasts(avoided_node, now)
        else avoided_node
        for avoided_node in entry.avoided
    )
    return replace(entry, avoided=avoided)


def without_outdated(
    entry: RecordedAvoidance,
    digests: dict[str, str],
    running: Sequence[SchedulingPod],
    now: datetime,
) -> RecordedAvoidance:
    """The entry without the nodes that deserve another try.

    These are nodes that are gone or have changed, nodes on which a later pod of the owner runs,
    and those whose last avoidance was over long ago.

    Args:
        digests: what each node is like now, by name.
        running: the running pods of the owner.
    """
    kept = tuple(
        avoided_node
        for avoided_node in entry.avoided
        if digests.get(avoided_node.node) == avoided_node.seen
        and avoided_node.since is not None
        and avoided_node.until is not None
        and avoided_node.since <= now + _SKEW
        and now < avoided_node.until + LONGEST
        and not any(
            _later(pod, avoided_node.since)
            for pod in running
            if pod.spec.node_name == avoided_node.node
        )
    )
    return replace(entry, avoided=kept)


def _later(pod: SchedulingPod, since: datetime) -> bool:
    created = pod.metadata.creation_timestamp
    return created is not None and created > since


def digests_of(
    nodes: Iterable[SchedulingNode], slices: Iterable[SchedulingSlice]
) -> dict[str, str]:
    """What each node is like, by name: boot, kubelet, room, labels, and its pools' generations."""
    pools: dict[str, list[tuple[str, str, int]]] = {}
    for slice_ in slices:
        pool = slice_.spec.pool
        pools.setdefault(slice_.spec.node_name or "", []).append(
            (slice_.spec.driver, pool.name, pool.generation)
        )
    return {
        node.metadata.name: _digest(node, sorted(set(pools.get(node.metadata.name, ()))))
        for node in nodes
    }


def _digest(node: SchedulingNode, pools: Sequence[tuple[str, str, int]]) -> str:
    info, meta = node.status.node_info, node.metadata
    seen = (
        meta.uid,
        info.boot_id,
        info.kubelet_version,
        sorted((key, str(amount)) for key, amount in (node.status.allocatable or {}).items()),
        sorted((meta.labels or {}).items()),
        pools,
    )
    return hashlib.sha256(encode(seen)).hexdigest()[:16]
