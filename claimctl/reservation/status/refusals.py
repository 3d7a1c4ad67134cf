"""The status of a reservation for which nothing can be done, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import msgspec

from claimctl.reservation.reasons import ConditionType, Reason
from claimctl.reservation.status.conditions import shortened
from claimctl.wire.meta import Condition, find_condition
from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus


@dataclass(frozen=True, slots=True)
class Refusal:
    """``FORBIDDEN`` where a right is missing, ``INVALID`` where the server takes no such object,
    ``UNREADABLE`` where what there is cannot be read."""

    reason: Reason
    message: str


def refused_status(
    reservation: ClaimReservation, wanted: ClaimReservationStatus, refusal: Refusal, now: datetime
) -> ClaimReservationStatus:
    """``wanted`` with ``Ready=False`` and why; the same when that is told already."""
    before = find_condition(reservation.status.conditions, ConditionType.READY)
    known = before is not None and before.status == "False"
    ready = Condition(
        type=ConditionType.READY,
        status="False",
        reason=refusal.reason,
        message=shortened(refusal.message),
        observed_generation=reservation.metadata.generation,
        last_transition_time=before.last_transition_time
        if before is not None and known
        else now.replace(microsecond=0),
    )
    others = tuple(each for each in wanted.conditions if each.type != ConditionType.READY)
    return msgspec.structs.replace(wanted, conditions=(ready, *others))
