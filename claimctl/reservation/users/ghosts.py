"""The ghosts in a reservation's status, so that two controllers agree on them.

Each controller measures a ghost's grace by its own clock; the record never shortens it. If another
controller has removed a ghost from the record because its grace is over, this controller does not
add the ghost again.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.users.blockers import present_ghosts, recorded_ghosts
from claimctl.wire.reservations import ForceDeletedPod

UNSEEN_POD_SECONDS = 5.0
"""For so many seconds, a listed pod that was never seen is expected to appear in the pod cache."""
MOST = 1000
"""The most nodes and the most ghosts in a status: etcd stores objects of up to 1.5 MB."""
_LONGEST_NAME, _LONGEST_ID = 253, 128


def ghosts_to_record(
    snapshot: Snapshot, recorded: tuple[ForceDeletedPod, ...]
) -> tuple[ForceDeletedPod, ...]:
    """The ghosts to record, sorted by UID: recorded ones that still count here, and new ones.

    If there are more than ``MOST``, new ones are left out first. This is safe: each controller
    counts all ghosts that it knows, the leader notes no checkpoint while one is left out, and a
    controller that starts without a checkpoint waits for the grace.
    """
    known = {ghost.uid: ghost for ghost in recorded}
    candidates = sorted(
        _candidates(snapshot, known), key=lambda ghost: (ghost.uid not in known, ghost.uid)
    )
    return tuple(sorted(candidates[:MOST], key=lambda ghost: ghost.uid))


def _fits(ghost: ForceDeletedPod) -> bool:
    """Whether the CRD's schema accepts the ghost. A client may have listed any name and UID."""
    ids = (ghost.uid, ghost.boot_id)
    return len(ghost.name) <= _LONGEST_NAME and all(len(each) <= _LONGEST_ID for each in ids)


def _candidates(
    snapshot: Snapshot, recorded: dict[str, ForceDeletedPod]
) -> Iterator[ForceDeletedPod]:
    elsewhere = recorded_ghosts(snapshot)
    for seen in sorted(present_ghosts(snapshot), key=lambda ghost: ghost.uid):
        known = recorded.get(seen.uid) or elsewhere.get(seen.uid)
        if known is not None:
            yield agreed(known, seen)
        elif seen.uid not in snapshot.memory.once_recorded_ghosts and _may_be_added(snapshot, seen):
            yield seen


def _may_be_added(snapshot: Snapshot, ghost: ForceDeletedPod) -> bool:
    age = snapshot.memory.ghost_age.get(ghost.uid, 0.0)
    return _fits(ghost) and (bool(ghost.node_name) or age >= UNSEEN_POD_SECONDS)


def agreed(recorded: ForceDeletedPod, seen: ForceDeletedPod) -> ForceDeletedPod:
    """Merge the recorded ghost with this controller's observation of the same ghost.

    The recorded time stays. The node is added when it becomes known. If the boot IDs differ, the
    boot ID is removed for good; then no reboot ends the ghost.
    """
    if not recorded.node_name:
        return replace(seen, since=recorded.since)
    if seen.boot_id and seen.boot_id != recorded.boot_id:
        return replace(recorded, boot_id="")
    return recorded
