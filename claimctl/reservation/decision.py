"""What a decision can say: what must be found out first, or one write, and what to report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from claimctl.reservation.reasons import Reason
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus


@dataclass(frozen=True, slots=True)
class ConfirmPods:
    """Ask the API server whether these listed pods are gone (live GET, by name and UID)."""

    references: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class ConfirmWorkload:
    """Ask the API server whether this incarnation of a workload is gone."""

    reference: Reference


@dataclass(frozen=True, slots=True)
class ListLivePods:
    """Make a quorum LIST of the namespace's pods, after the claim's present version was read."""

    claim_version: str
    settled: bool = False


Need = ConfirmPods | ConfirmWorkload | ListLivePods


@dataclass(frozen=True, slots=True)
class WriteList:
    """One status write under ``resource_version``: the list, and with it maybe the allocation."""

    resource_version: str
    reserved_for: tuple[Reference, ...]
    deallocate: bool = False
    reason: str = ""
    fence: bool = False
    """Takes the last workload reference out and leaves the allocation."""


@dataclass(frozen=True, slots=True)
class RemoveClaimFinalizer:
    resource_version: str


@dataclass(frozen=True, slots=True)
class CreateClaim:
    """Create the claim from the reservation's ResourceClaimTemplate."""

    reservation: ClaimReservation
    reserved_for: Reference | None


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    """Delete a claim that claimctl made for an earlier incarnation of the workload."""

    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class WriteStatus:
    reservation: ClaimReservation
    status: ClaimReservationStatus


@dataclass(frozen=True, slots=True)
class ClearReleaseRequest:
    """Take ``claimctl.io/release`` off a reservation: what it asked for is done."""

    reservation: ClaimReservation


@dataclass(frozen=True, slots=True)
class SetFinalizer:
    """Put claimctl's finalizer on a reservation, or take it off."""

    reservation: ClaimReservation
    present: bool


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """Read the claim as it is now (live GET), for this write and no other."""

    before: Write


@dataclass(frozen=True, slots=True)
class ListReservations:
    """List the namespace's reservations: one may be younger than what the cache shows."""


Precaution = ReadClaim | ListReservations
"""What some writes need on top of what was decided from."""

Write = (
    WriteList
    | RemoveClaimFinalizer
    | CreateClaim
    | DeleteClaim
    | WriteStatus
    | SetFinalizer
    | ClearReleaseRequest
)


@dataclass(frozen=True, slots=True)
class Blocker:
    """Why a release cannot happen now, for people: ``claimctl explain`` and conditions."""

    reason: Reason
    message: str
    after: float | None = None
    """Seconds until it may be different by the passing of time alone."""
    private: bool = False
    """Only this process knows of it; another controller may be further."""


@dataclass(frozen=True, slots=True)
class Decision:
    """At most one write. With ``needs``, decide again once they are answered."""

    needs: tuple[Need, ...] = ()
    write: Write | None = None
    after: float | None = None
    """Seconds after which to look again although nothing changed."""
    releasing: Reason | None = None
    blockers: tuple[Blocker, ...] = ()
    statuses: Mapping[str, ClaimReservationStatus] = field(default_factory=dict)
    """The status each reservation should have, by name."""
