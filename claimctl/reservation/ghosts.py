"""Which vanished pods a reservation's status tells of, so that two controllers agree on it.

Each controller counts by itself, on its own clock, how long a pod that vanished may still be
running; what is on record never makes that shorter. So one that knows more than the record does
not write it down again after somebody has found it over and taken it out.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from claimctl.reservation.release.blockers import present_ghosts, recorded_ghosts
from claimctl.reservation.snapshot import Snapshot
from claimctl.wire.reservations import ForceDeletedPod

UNSEEN_POD_SECONDS = 5.0
"""Until then a listed pod that nobody saw is taken for one that the pod cache has yet to show."""
MOST = 1000
"""How many nodes, and how many vanished pods, a status tells of: etcd takes objects of 1.5 MB."""
_LONGEST_NAME, _LONGEST_ID = 253, 128


def told_ghosts(
    snapshot: Snapshot, recorded: tuple[ForceDeletedPod, ...]
) -> tuple[ForceDeletedPod, ...]:
    """Those on record that still count here, and those that are news; by UID.

    What does not fit is left out, the news first: every controller counts all that it knows of,
    and one that starts waits for the grace whatever is on record.
    """
    known = {ghost.uid: ghost for ghost in recorded}
    told = sorted(_told(snapshot, known), key=lambda ghost: (ghost.uid not in known, ghost.uid))
    return tuple(sorted(told[:MOST], key=lambda ghost: ghost.uid))


def _fits(ghost: ForceDeletedPod) -> bool:
    """Whether the schema takes it: who wrote a list may have written anything into it."""
    ids = (ghost.uid, ghost.boot_id)
    return len(ghost.name) <= _LONGEST_NAME and all(len(each) <= _LONGEST_ID for each in ids)


def _told(snapshot: Snapshot, recorded: dict[str, ForceDeletedPod]) -> Iterator[ForceDeletedPod]:
    elsewhere = recorded_ghosts(snapshot)
    for mine in sorted(present_ghosts(snapshot), key=lambda ghost: ghost.uid):
        known = recorded.get(mine.uid) or elsewhere.get(mine.uid)
        if known is not None:
            yield agreed(known, mine)
        elif mine.uid not in snapshot.memory.told_ghosts and _is_news(snapshot, mine):
            yield mine


def _is_news(snapshot: Snapshot, ghost: ForceDeletedPod) -> bool:
    age = snapshot.memory.ghost_age.get(ghost.uid, 0.0)
    return _fits(ghost) and (bool(ghost.node_name) or age >= UNSEEN_POD_SECONDS)


def agreed(recorded: ForceDeletedPod, mine: ForceDeletedPod) -> ForceDeletedPod:
    """What stands on record, where another one has seen the same pod vanish.

    The time stays as whoever was first has written it. A node is added when it becomes known. Two
    boot IDs that differ prove nothing, and that stays so: without one no boot ends the ghost.
    """
    if not recorded.node_name:
        return replace(mine, since=recorded.since)
    if mine.boot_id and mine.boot_id != recorded.boot_id:
        return replace(recorded, boot_id="")
    return recorded
