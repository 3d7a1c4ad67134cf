"""Which events follow from a change of a reservation's conditions: a pure function."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from claimctl.reservation.reasons import ConditionType, Reason
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import ClaimReservationStatus

WARNINGS = frozenset(
    {
        Reason.CLAIM_NOT_FOUND,
        Reason.WORKLOAD_NOT_FOUND,
        Reason.WORKLOAD_KIND_UNSUPPORTED,
        Reason.CLAIM_NOT_NAMED_BY_POD_TEMPLATE,
        Reason.CLAIM_NOT_CREATED_FOR_WORKLOAD,
        Reason.ALREADY_RESERVED_FOR,
        Reason.TEMPLATE_NOT_FOUND,
        Reason.TEMPLATE_INVALID,
        Reason.HOLD_YIELDED,
        Reason.NO_SCHEDULING_GROUP,
        Reason.POD_TEMPLATE_IMMUTABLE,
        Reason.TEMPLATE_INJECTION_OFF,
        Reason.CLAIM_NOT_IN_POD_GROUP,
        Reason.TOO_MANY_CLAIMS_FOR_POD_GROUP,
        Reason.MORE_PODS_THAN_PLACES,
        Reason.SCHEDULER_IGNORES_GROUPS,
        Reason.KUBELETS_REFUSE,
        Reason.OLD_KUBELETS,
        Reason.FINISHED_PODS_LEFT,
        Reason.FORCE_DELETED_PODS,
        Reason.UNKNOWN_REFERENCES,
        Reason.NEARLY_FULL,
        Reason.FULL,
        Reason.STRANDED_POD,
        Reason.FIGHTING_WRITER,
        Reason.DANGLING_REFERENCES,
        Reason.FORBIDDEN,
        Reason.INVALID,
        Reason.INVALID_ANNOTATION,
        Reason.UNREADABLE,
    }
)
"""Reasons that ask somebody to look; all others are the normal course of things."""

_ACTIONS: dict[str, str] = {
    ConditionType.RESERVED: "Reserve",
    ConditionType.CONSISTENT: "Repair",
    ConditionType.RELEASED: "Release",
    ConditionType.READY: "Reconcile",
}


@dataclass(frozen=True, slots=True)
class Announcement:
    """An event to be recorded on the claim and on the workload."""

    type: str
    reason: str
    note: str
    action: str


def announcements(
    old: ClaimReservationStatus, new: ClaimReservationStatus
) -> tuple[Announcement, ...]:
    """What to tell when a reservation's status goes from ``old`` to ``new``.

    One event per reason, however many conditions carry it. ``Ready`` sums up the others, so it
    speaks only where no other condition can: when the API server forbids what has to be done.
    """
    told = {announcement.reason: announcement for announcement in _changed(old, new)}
    return tuple(told.values())


def _changed(old: ClaimReservationStatus, new: ClaimReservationStatus) -> Iterator[Announcement]:
    before = {condition.type: (condition.status, condition.reason) for condition in old.conditions}
    for condition in new.conditions:
        if before.get(condition.type) != (condition.status, condition.reason) and _worth(
            condition, known=condition.type in before
        ):
            yield _announcement(condition)


def _worth(condition: Condition, *, known: bool) -> bool:
    if condition.reason in WARNINGS:
        return True
    if condition.type == ConditionType.READY:
        return False
    return known or (condition.status == "True" and condition.type != ConditionType.CONSISTENT)


def _announcement(condition: Condition) -> Announcement:
    return Announcement(
        type="Warning" if condition.reason in WARNINGS else "Normal",
        reason=condition.reason,
        note=condition.message or f"{condition.type} is {condition.status}",
        action=_ACTIONS.get(condition.type, "Reconcile"),
    )
