"""The parts of a decision: needs that have to be answered first, or one write, and blockers.

A new need gets a case in ``controller.live_reads``, and a new write one in ``controller.writer``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from claimctl.reservation.facts.reasons import Reason, ReleaseStep
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import RELEASE_ANNOTATION, ClaimReservation, ClaimReservationStatus


@dataclass(frozen=True, slots=True)
class ConfirmPods:
    """Ask the API server whether these listed pods are gone (live GET, by name and UID)."""

    references: tuple[Reference, ...]


@dataclass(frozen=True, slots=True)
class ConfirmWorkload:
    """Ask the API server whether this incarnation of a workload is gone."""

    reference: Reference


@dataclass(frozen=True, slots=True)
class ListChildren:
    """List the objects that this workload has made and that may make pods, live.

    The workload is over: gone, or ended by the rule of its kind.
    """

    reference: Reference
    orphans: bool = False
    """Whether objects without a controller may be its children: it is gone, or being deleted."""


@dataclass(frozen=True, slots=True)
class ListLivePods:
    """Make a quorum LIST of the namespace's pods, after the claim's present version was read."""

    claim_version: str
    vanished: bool = True
    """Whether pods matter that vanished just before. A LIST does not show them; only the pod cache
    does, once it has reached the LIST's version."""


Need = ConfirmPods | ConfirmWorkload | ListChildren | ListLivePods


@dataclass(frozen=True, slots=True)
class WriteList:
    """One status write under ``resource_version``: set the list, and deallocate if wanted."""

    resource_version: str
    reserved_for: tuple[Reference, ...]
    deallocate: bool = False
    reason: str = ""
    fence: bool = False
    """Whether the write is a fence: no workload reference stays that lets pods in, and the claim
    stays allocated."""
    present: tuple[Reference, ...] = ()
    """If not empty: the list that the write was decided on. When the server stores the write, it
    compares the list, the UID, and whether the claim is being deleted; not the version."""


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
    """Delete a claim that claimctl made: for an earlier incarnation of the workload, or for an
    ordinal that will not use it again."""

    uid: str
    resource_version: str


@dataclass(frozen=True, slots=True)
class WriteStatus:
    reservation: ClaimReservation
    status: ClaimReservationStatus
    last: bool = False
    """Whether nothing is left to do after this write until something else changes."""


@dataclass(frozen=True, slots=True)
class ClearReleaseRequest:
    """Remove the request for a release from a reservation, because it was met or has failed."""

    reservation: ClaimReservation
    annotation: str = RELEASE_ANNOTATION


@dataclass(frozen=True, slots=True)
class CreateReservation:
    """Create the reservation of a sticky claim that a pod names."""

    reservation: ClaimReservation


@dataclass(frozen=True, slots=True)
class ChangeReservation:
    """Change the settings and the owner of a sticky claim's reservation to those of ``wanted``."""

    reservation: ClaimReservation
    wanted: ClaimReservation


@dataclass(frozen=True, slots=True)
class DeleteReservation:
    """Delete the reservation of a sticky claim that is gone and that nobody will use again."""

    reservation: ClaimReservation


@dataclass(frozen=True, slots=True)
class SetFinalizer:
    """Add claimctl's finalizer to a reservation, or remove it."""

    reservation: ClaimReservation
    present: bool


@dataclass(frozen=True, slots=True)
class ReadClaim:
    """Read the claim live (GET), for this write only.

    It is no ``Need``: it is asked for once the write is decided (``reads_before``), or when another
    client wrote first.
    """

    before: Write


ReservationWrite = (
    WriteStatus
    | SetFinalizer
    | ClearReleaseRequest
    | CreateReservation
    | ChangeReservation
    | DeleteReservation
)
"""The writes whose object is a ClaimReservation; that of all others is the claim."""
Write = WriteList | RemoveClaimFinalizer | CreateClaim | DeleteClaim | ReservationWrite


@dataclass(frozen=True, slots=True)
class Blocker:
    """Why a claim may not be released now, for ``claimctl explain`` and conditions."""

    reason: Reason
    message: str
    after: float | None = None
    """Seconds until time alone may end the blocker."""
    private: bool = False
    """Whether only this process has the blocker; another controller may go on with the release."""


@dataclass(frozen=True, slots=True)
class Step:
    """The next step of a release. If no field is set, there is nothing to do."""

    needs: tuple[Need, ...] = ()
    write: Write | None = None
    blockers: tuple[Blocker, ...] = ()

    @property
    def acts(self) -> bool:
        """Whether the step reads or writes something."""
        return bool(self.needs) or self.write is not None


@dataclass(slots=True)
class Decision:
    """At most one write. If there are ``needs``, decide again with their answers.

    ``decide`` begins with an empty decision and fills it step by step. Nobody else changes it.
    """

    needs: tuple[Need, ...] = ()
    write: Write | None = None
    waits: list[float | None] = field(default_factory=list)
    """Seconds after each of which to decide again even if nothing changes; None is no time."""
    releasing: Reason | None = None
    blockers: tuple[Blocker, ...] = ()
    """The blockers of the release, from the caches or from a live LIST."""
    step: ReleaseStep | None = None
    """The step of the release to record; None if none is under way, or if a blocker stops other
    controllers, too."""
    statuses: Mapping[str, ClaimReservationStatus] = field(default_factory=dict)
    """The status that each reservation should have, by name."""

    @property
    def decided(self) -> bool:
        """Whether there is a write, or a need to be answered first."""
        return self.write is not None or bool(self.needs)

    @property
    def after(self) -> float | None:
        """Seconds after which to decide again at the latest; None if only a change matters."""
        return min((seconds for seconds in self.waits if seconds is not None), default=None)
