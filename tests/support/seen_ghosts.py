"""What this process knows of ghosts, in the words of tests."""

from __future__ import annotations

from claimctl.reservation.facts.memory import SeenGhost, SignsOfLife
from claimctl.wire.reservations import ForceDeletedPod

Seen = tuple[SeenGhost, ...]


def pods_of(ghosts: Seen) -> tuple[ForceDeletedPod, ...]:
    return tuple(ghost.pod for ghost in ghosts)


def uids_of(ghosts: Seen) -> list[str]:
    return [ghost.pod.uid for ghost in ghosts]


def ages_of(ghosts: Seen) -> dict[str, float]:
    return {ghost.pod.uid: ghost.age for ghost in ghosts}


def recorded_of(ghosts: Seen) -> list[str]:
    """The UIDs of those that were once on record."""
    return [ghost.pod.uid for ghost in ghosts if ghost.once_recorded]


def signs_of(ghosts: Seen) -> SignsOfLife:
    """The signs of life for the only one."""
    (ghost,) = ghosts
    assert ghost.signs is not None
    return ghost.signs
