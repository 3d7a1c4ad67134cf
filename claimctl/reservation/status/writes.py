"""Completing a decision with the statuses that reservations should have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from claimctl.reservation.assessment import Assessment
from claimctl.reservation.decision import Blocker, Decision, WriteStatus
from claimctl.reservation.reasons import Reason
from claimctl.reservation.snapshot import Snapshot
from claimctl.reservation.status.desired import desired_status
from claimctl.reservation.status.refusals import Refusal, refused_status
from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus
from claimctl.wire.resources import CLAIMRESERVATIONS
from claimctl.wire.unreadable import Unreadable


def tell(found: Assessment) -> Assessment:
    """Add the statuses; where nothing else is to be written, the first that differs is.

    What is only news (counts, nodes, messages) waits until ``status_seconds`` have passed since
    the last status write, so that writes do not grow with the number of pods. What somebody else
    keeps overwriting, who sees things differently, waits for longer.
    """
    wanted = {each.held.name: desired_status(found, each) for each in found.retentions}
    found = replace(found, statuses=wanted)
    if found.decided:
        return found
    for retention in found.retentions:
        reservation, status = retention.held.reservation, wanted[retention.held.name]
        if reservation.status == status:
            continue
        age = found.snapshot.memory.status_age.get(retention.held.name)
        left = 0.0 if age is None else _pause(found.snapshot, reservation, status) - age
        if left <= 0:
            return replace(found, write=WriteStatus(reservation, status))
        found = found.sooner(left)
    return found


def leave_alone(snapshot: Snapshot, unread: Sequence[Unreadable]) -> Decision:
    """Nothing but to say so, in what can be read: all else that a status records stays."""
    refusal = Refusal(Reason.UNREADABLE, "; ".join(each.told() for each in unread[:3]))
    blockers = tuple(Blocker(Reason.UNREADABLE, each.told()) for each in unread)
    names = {each.name for each in unread if each.resource.plural == CLAIMRESERVATIONS.plural}
    decision = Decision(blockers=blockers)
    for held in snapshot.reservations:
        status = held.reservation.status
        wanted = refused_status(held.reservation, status, refusal, snapshot.now)
        if held.name not in names and wanted != status and decision.write is None:
            decision = replace(decision, write=WriteStatus(held.reservation, wanted))
    return decision


CONTESTED_SECONDS = 30.0
"""Least time between two writes of a status that somebody else keeps overwriting."""


def _pause(
    snapshot: Snapshot, reservation: ClaimReservation, wanted: ClaimReservationStatus
) -> float:
    """Least seconds between two status writes; what the protocol needs waits for nothing."""
    if not _same_protocol(reservation.status, wanted):
        return 0.0
    repeated = snapshot.memory.repeated_statuses.get(reservation.metadata.name, 0)
    if repeated >= snapshot.rules.fight_limit:
        return CONTESTED_SECONDS
    same = _essence(reservation.status) == _essence(wanted)
    return snapshot.rules.status_seconds if same else 0.0


def _same_protocol(current: ClaimReservationStatus, wanted: ClaimReservationStatus) -> bool:
    return (
        current.release == wanted.release
        and current.reserved_for == wanted.reserved_for
        and current.pod_group_name == wanted.pod_group_name
        and current.force_deleted_pods == wanted.force_deleted_pods
    )


def _essence(status: ClaimReservationStatus) -> list[tuple[str, str, str]]:
    return [(c.type, c.status, c.reason) for c in status.conditions]
