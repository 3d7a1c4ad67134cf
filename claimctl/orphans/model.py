"""What is known of a claim that may be left over, and what can be said of it.

Everything is read live: nobody watched before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from claimctl.reservation.decision import Blocker, RemoveClaimFinalizer, WriteList
from claimctl.reservation.reasons import Reason
from claimctl.reservation.snapshot import LiveList
from claimctl.wire.claims import ResourceClaim

GRACE_SECONDS = 300.0
"""How long a pod that vanished may still be running; as in a ClaimReservation without a word."""


class Cause(StrEnum):
    """What makes a claim a leftover."""

    DELETED_BUT_ALLOCATED = "DeletedButAllocated"
    """Being deleted, and none of those it is reserved for is left."""
    ALLOCATED_TO_NOBODY = "AllocatedToNobody"
    """Allocated with an empty list: KCM never deallocates that."""
    DANGLING_REFERENCE = "DanglingReference"
    """Held for a workload or group that is gone, or is another object by now."""
    ORPHANED_HOLD = "OrphanedHold"
    """Held by claimctl itself, for no ClaimReservation that is left."""
    ORPHANED_TOMBSTONES = "OrphanedTombstones"
    """Reserved for nothing but claimctl's marks of finished pods."""
    DEAD_PODS = "DeadPods"
    """Reserved for nothing but pods that are gone or done; KCM should have freed it."""
    UNKNOWN_REFERENCE = "UnknownReference"
    """Reserved for something that no API of the cluster knows, and used by nobody."""
    UNFINISHED_RELEASE = "UnfinishedRelease"
    """Deallocated as a leftover by claimctl, which ended before it took the finalizer off."""
    FINALIZER_LEFT = "FinalizerLeft"
    """Being deleted and not allocated; somebody else left the finalizer."""


class OwnerState(StrEnum):
    """What a live read said of an object that a list names."""

    GONE = "Gone"
    REPLACED = "Replaced"
    """Its name belongs to an object with another UID."""
    ALIVE = "Alive"
    RESERVING = "Reserving"
    """Alive, and it asks claimctl to reserve this claim: a ClaimReservation is to come."""
    UNKNOWN_KIND = "UnknownKind"
    """No API of the cluster serves such objects."""
    UNTOLD = "Untold"
    """The question failed."""


@dataclass(frozen=True, slots=True)
class Answer:
    fate: OwnerState
    note: str = ""
    """Why the question failed."""


UNASKED = Answer(OwnerState.UNTOLD, "nobody asked")


@dataclass(frozen=True, slots=True)
class ScannedClaim:
    """One claim as it was read live; everything else was read after it."""

    claim: ResourceClaim
    live: LiveList
    now: datetime
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """By UID, of the references that ``questions`` named."""
    reserved: bool = False
    """Whether a ClaimReservation names the claim: then it is the controller's."""


@dataclass(frozen=True, slots=True)
class WatchTimes:
    """How long this process has watched, on its own monotonic clock, and how long it has to."""

    settle_seconds: float = 5.0
    grace_seconds: float = GRACE_SECONDS
    binding_seconds: float = 60.0
    slow_binding_seconds: float = 600.0
    """As in ``Rules``: how long a scheduler may still bind a pod to a claim that is deleted."""
    version_age: float = 0.0
    """From the first sight of the claim's version until the pods were listed."""
    quiet_age: float = 0.0
    """Since a LIST of pods that began when this version had settled showed no consumer."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """A claim left over. Without ``against`` and ``wait`` its next write may be made."""

    cause: Cause
    message: str
    against: tuple[Blocker, ...] = ()
    """What does not end by itself."""
    wait: Blocker | None = None
    """What ends by the passing of time."""
    write: WriteList | RemoveClaimFinalizer | None = None

    @property
    def failed(self) -> bool:
        """Whether something could not be found out because a request failed."""
        return any(one.reason is Reason.CANNOT_TELL for one in self.against)
