"""The data of ``claimctl doctor orphans``: a scanned claim, and the judgement that it is an orphan.

All data is read live.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import LiveList
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import ClaimReservation

PASSING = frozenset(
    (
        Reason.FORCE_DELETED_PODS,
        Reason.HISTORY_UNKNOWN,
        Reason.PODS_MAY_BE_BOUND,
        Reason.RELEASING,
        Reason.SETTLING,
    )
)
"""The reasons that time alone ends, also where it is not known how much time."""


class Cause(StrEnum):
    """Why a claim is an orphan."""

    DELETED_BUT_ALLOCATED = "DeletedButAllocated"
    """The claim is being deleted, and all objects in its list are gone or done."""
    ALLOCATED_TO_NOBODY = "AllocatedToNobody"
    """The claim is allocated with an empty list; kube-controller-manager (KCM) never deallocates
    such a claim."""
    DANGLING_REFERENCE = "DanglingReference"
    """The list names a workload or PodGroup that is gone, or that has another UID now."""
    ORPHANED_HOLD = "OrphanedHold"
    """By managedFields, the list has a hold of claimctl, but no ClaimReservation names the claim.
    While the object of the hold exists, nothing proves whose hold it is."""
    LISTED_AHEAD = "ListedAhead"
    """The list has pending pods that claimctl listed before the scheduler did, and claimctl does
    not hold the claim any more. Two of them keep the claim allocated as long as they wait."""
    ORPHANED_TOMBSTONES = "OrphanedTombstones"
    """The list has nothing but tombstones of claimctl."""
    DEAD_PODS = "DeadPods"
    """The list has only pods that are gone or done; KCM should have deallocated the claim."""
    UNKNOWN_REFERENCE = "UnknownReference"
    """The list names an object of a kind that the cluster does not serve; no pod uses the claim."""
    FINALIZER_LEFT = "FinalizerLeft"
    """The claim is being deleted and not allocated, and still has the finalizer; nothing shows
    that claimctl deallocated it."""


class OwnerState(StrEnum):
    """The result of a live read of an object that a claim's list names."""

    GONE = "Gone"
    REPLACED = "Replaced"
    """An object with the same name and another UID exists."""
    ALIVE = "Alive"
    RESERVING = "Reserving"
    """The object exists, and its annotation asks claimctl to reserve this claim: the controller
    will make a ClaimReservation."""
    UNKNOWN_KIND = "UnknownKind"
    """The cluster does not serve objects of this kind."""
    UNKNOWN = "Unknown"
    """The read failed, so the state is unknown."""


@dataclass(frozen=True, slots=True)
class Answer:
    state: OwnerState
    note: str = ""
    """Why the read failed."""


NOT_READ = Answer(OwnerState.UNKNOWN, "it was not read")


@dataclass(frozen=True, slots=True)
class ScannedClaim:
    """One claim that was read live, with what was read after it."""

    claim: ResourceClaim
    live: LiveList
    now: datetime
    answers: Mapping[str, Answer] = field(default_factory=dict)
    """Answers by UID, for the references that ``judge.references_to_read`` returned."""
    reserved: bool = False
    """Whether a ClaimReservation of others names the claim; the controller then looks after it."""
    adoptions: tuple[ClaimReservation, ...] = ()
    """The ClaimReservations by which a run of claimctl frees the claim (see ``adoption``)."""
    believing: bool = False
    """Whether an administrator wants managedFields to be believed."""


@dataclass(frozen=True, slots=True)
class Orphan:
    """The judgement that a claim is an orphan. Without ``blockers``, it may be freed."""

    cause: Cause
    message: str
    blockers: tuple[Blocker, ...] = ()
    entries: tuple[Reference, ...] = ()
    """The entries that nobody answers for, but those of pods and tombstones."""

    def describe(self) -> str:
        """Why the claim is an orphan, and what blocks freeing it."""
        blockers = "; ".join(f"{blocker.reason}: {blocker.message}" for blocker in self.blockers)
        return f"{self.message}; {blockers}" if blockers else self.message

    @property
    def failed(self) -> bool:
        """Whether a failed request leaves open if the claim may be freed."""
        return any(blocker.reason is Reason.CANNOT_TELL for blocker in self.blockers)
