"""One ghost for many pods: a claim has a bounded number of ghosts, whoever deletes its pods.

Beyond that number, the pods that vanished from the same boot of a node count as one ghost. It
counts from the last of them on, and has the longest of their grace periods. So each of them counts
at least as long as it would alone, and other claims are not concerned.

The UID follows from the node and its boot, so that all controllers have the same ghost on record.
It is the UID of no pod: neither a pod that appears again nor a statement about one pod ends it.
"""

from __future__ import annotations

from hashlib import sha256

from msgspec.structs import replace

from claimctl.wire.reservations import NO_SIGNS_SECONDS, ForceDeletedPod

_OF_CLAIM, _OF_NAMESPACE = "several-", "others-"


def several(ghost: ForceDeletedPod, *, of_namespace: bool = False) -> ForceDeletedPod:
    """The ghost that counts for ``ghost`` and for others of the same boot of its node.

    Args:
        of_namespace: whether it counts for every claim of the namespace. No status names it.
    """
    begins = _OF_NAMESPACE if of_namespace else _OF_CLAIM
    boot = sha256(f"{ghost.node_name}/{ghost.boot_id}".encode()).hexdigest()[:32]
    return replace(ghost, uid=f"{begins}{boot}", name="several pods")


def is_several(ghost: ForceDeletedPod) -> bool:
    """Whether it counts for several pods: of one claim, or of a namespace."""
    return ghost.uid.startswith((_OF_CLAIM, _OF_NAMESPACE))


def is_of_namespace(ghost: ForceDeletedPod) -> bool:
    """Whether it counts for every claim of its namespace."""
    return ghost.uid.startswith(_OF_NAMESPACE)


def with_longer_grace(known: ForceDeletedPod, other: ForceDeletedPod) -> ForceDeletedPod:
    """``known`` with the longer one of the two grace periods."""
    if own_grace(known) >= own_grace(other):
        return known
    return replace(known, termination_grace_period_seconds=int(own_grace(other)))


def own_grace(ghost: ForceDeletedPod) -> float:
    """The pod's grace period, in seconds; a record may lack it."""
    seconds = ghost.termination_grace_period_seconds
    return NO_SIGNS_SECONDS if seconds is None else float(seconds)
