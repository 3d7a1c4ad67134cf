"""Pods that vanished and may still be running, and pods that may have vanished unseen.

A ghost counts as running for the grace. Each controller measures the grace by its own clock. The
ghosts in the statuses let two controllers agree on them; the record never shortens a grace. If
another controller has removed a ghost from the record because its grace is over, this controller
does not add the ghost again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.wire.reservations import ForceDeletedPod

UNSEEN_POD_SECONDS = 5.0
"""For so many seconds, a listed pod that was never seen is expected to appear in the pod cache."""
MOST = 1000
"""The most nodes and the most ghosts in a status: etcd stores objects of up to 1.5 MB."""
_LONGEST_NAME, _LONGEST_ID = 253, 128


def grace(reservations: Iterable[Held]) -> float:
    """The grace of a ghost in seconds: the longest that a reservation asks for."""
    return max(
        (float(held.reservation.spec.force_deleted_pod_grace_seconds) for held in reservations),
        default=0.0,
    )


def longer_grace(snapshot: Snapshot, held: Held) -> Blocker | None:
    """A blocker while a withdrawn reservation's grace, longer than all others, still counts.

    A pod may vanish under the longest grace just before the reservation with that grace is
    withdrawn.
    """
    others = [other for other in snapshot.reservations if other.name != held.name]
    if not others or not snapshot.allocated or grace((held,)) <= grace(others):
        return None
    blockers = (*ghost_blockers(snapshot), *unseen_history(snapshot))
    return max(blockers, key=lambda blocker: blocker.after or 0.0, default=None)


def present_ghosts(snapshot: Snapshot) -> dict[str, tuple[ForceDeletedPod, float]]:
    """By UID: the ghosts whose grace is not over, with the seconds that are left of it."""
    longest = grace(snapshot.reservations) if snapshot.ghosts else 0.0
    ages = snapshot.memory.ghost_age
    left = {ghost.uid: (ghost, longest - ages.get(ghost.uid, 0.0)) for ghost in snapshot.ghosts}
    return {uid: (ghost, seconds) for uid, (ghost, seconds) in left.items() if seconds > 0}


def ghost_blockers(snapshot: Snapshot) -> Iterator[Blocker]:
    """A blocker for each ghost whose grace is not over."""
    on_record = recorded_ghosts(snapshot)
    for ghost, left in present_ghosts(snapshot).values():
        where = f"pod {ghost.name} vanished while running on {ghost.node_name or 'a node'}"
        text = f"{where}; it counts as running until forceDeletedPodGraceSeconds have passed"
        over_elsewhere = ghost.uid in snapshot.memory.once_recorded_ghosts
        private = over_elsewhere and ghost.uid not in on_record
        yield Blocker(Reason.FORCE_DELETED_PODS, text, left, private)


def unseen_history(snapshot: Snapshot) -> Iterator[Blocker]:
    """A blocker while pods that vanished before this process watched may still be running."""
    age = snapshot.memory.blind_age
    if age is not None and snapshot.one_by_one:
        age = max(age, snapshot.memory.unnoticed_age)
    left = grace(snapshot.reservations) - age if age is not None else 0.0
    if left > 0:
        seconds = f"{grace(snapshot.reservations):g} s"
        text = f"pods may have vanished while the controller did not watch; it waits {seconds}"
        yield Blocker(Reason.HISTORY_UNKNOWN, text, left, private=True)


def all_on_record(snapshot: Snapshot, recorded: frozenset[str]) -> bool:
    """Whether the statuses tell a controller that starts now all that this process has seen.

    Args:
        recorded: UIDs of the ghosts in the statuses.
    """
    missed = next(unseen_history(snapshot), None)
    return missed is None and present_ghosts(snapshot).keys() <= recorded


def recorded_ghosts(snapshot: Snapshot) -> dict[str, ForceDeletedPod]:
    """The ghosts in the statuses of the claim's reservations, by UID."""
    return {
        ghost.uid: ghost
        for held in snapshot.reservations
        for ghost in held.reservation.status.force_deleted_pods
    }


def ghosts_to_record(
    snapshot: Snapshot, recorded: tuple[ForceDeletedPod, ...]
) -> tuple[ForceDeletedPod, ...]:
    """The ghosts to record, sorted by UID: recorded ones that still count here, and new ones.

    If there are more than ``MOST``, new ones are left out first. This is safe: each controller
    counts all ghosts that it knows, the leader notes no checkpoint while one is left out, and a
    controller that starts without a checkpoint waits for the grace.
    """
    here, elsewhere = {ghost.uid: ghost for ghost in recorded}, recorded_ghosts(snapshot)
    memory, ghosts = snapshot.memory, []
    for uid, (seen, _) in sorted(present_ghosts(snapshot).items()):
        known = here.get(uid) or elsewhere.get(uid)
        if known is not None:
            ghosts.append(merge_ghosts(known, seen))
        elif uid not in memory.once_recorded_ghosts:
            # the CRD's schema must accept it: a client may have listed any name and UID
            fits = len(seen.name) <= _LONGEST_NAME
            fits &= all(len(text) <= _LONGEST_ID for text in (seen.uid, seen.boot_id))
            if fits and (seen.node_name or memory.ghost_age.get(uid, 0.0) >= UNSEEN_POD_SECONDS):
                ghosts.append(seen)
    ghosts.sort(key=lambda ghost: (ghost.uid not in here, ghost.uid))
    return tuple(sorted(ghosts[:MOST], key=lambda ghost: ghost.uid))


def merge_ghosts(recorded: ForceDeletedPod, seen: ForceDeletedPod) -> ForceDeletedPod:
    """Merge the recorded ghost with this controller's observation of the same ghost.

    The recorded time stays. The node is added when it becomes known. If the boot IDs differ, the
    boot ID is removed for good; then no reboot ends the ghost.
    """
    if not recorded.node_name:
        return replace(seen, since=recorded.since)
    if seen.boot_id and seen.boot_id != recorded.boot_id:
        return replace(recorded, boot_id="")
    return recorded
