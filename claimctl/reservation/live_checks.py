"""What has to be read live before certain writes, beyond what a decision is made from."""

from __future__ import annotations

from claimctl.reservation.decision import (
    ListReservations,
    Precaution,
    ReadClaim,
    SetFinalizer,
    Write,
    WriteList,
)
from claimctl.reservation.reserved_for.ownership import unanswered
from claimctl.reservation.snapshot import Snapshot


def reads_before(snapshot: Snapshot, write: Write | None) -> tuple[Precaution, ...]:
    """What has to be read before the write; nothing once it was.

    Before a reservation goes for good: another controller may have held the claim since our cache
    saw it, and a hold that no reservation names is nobody's to release. Before the last hold or
    the allocation is taken out: a hold may be there for a reservation that our cache lacks.
    """
    evidence = snapshot.evidence
    if isinstance(write, SetFinalizer) and not write.present:
        return (ReadClaim(write),) if evidence.claim_read_for is None else ()
    if isinstance(write, WriteList) and (write.deallocate or write.fence):
        known = [held.reservation for held in snapshot.reservations]
        in_doubt = snapshot.claim is not None and unanswered(snapshot.claim, known)
        return (ListReservations(),) if in_doubt and evidence.held_for_another is None else ()
    return ()


def serves(asked: Write, write: Write | None) -> bool:
    """Whether a claim that was read live for one write is good for the one decided on it.

    Everything else waits for the watch. A list may have to be written differently now.
    """
    return isinstance(write, WriteList) if isinstance(asked, WriteList) else write == asked
