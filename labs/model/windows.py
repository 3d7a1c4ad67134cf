"""Releases that do not wait for pods which a scheduler may still bind; one reason at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.reservation.release import protocol as release
from claimctl.reservation.users import blockers as verdict
from claimctl.wire.claims import Reference
from labs.model.dialects import Grouped, Hold, ModelDialect, Native
from labs.model.mutation import Mutation
from labs.model.scenarios import AGAIN, CORDONED, CORDONED_GROUP
from labs.model.server import Bounds

LATE = Bounds(pods=1, crashes=0, actions=1, lag=1, cache_lag=1, finish=False)
RESTARTED = replace(CORDONED, crashes=0)
REFUSED = replace(LATE, held=True, idle=True, kinds=frozenset({"refuse"}))
_users_among = verdict.users_among
_left_at_fence = release.left_at_fence


def uncounted(ignored: Reason) -> Callable[..., verdict.Users]:
    def users(snapshot: Snapshot, reason: Reason, consumers: Consumers) -> verdict.Users:
        pods = _users_among(snapshot, reason, consumers)
        return replace(pods, binding=[]) if reason is ignored else pods

    return users


def _ignoring(reason: Reason, dialect: ModelDialect, bounds: Bounds) -> Mutation:
    """The rule as it was: pending pods do not count."""
    patch = (verdict, "users_among", uncounted(reason))
    return Mutation(f"ignore pods that may be bound: {reason}", dialect, bounds, (patch,))


def _no_holds(*of: Any) -> tuple[Reference, ...]:
    """A fence that takes the hold out with the group."""
    kept = _left_at_fence(*of)
    return tuple(entry for entry in kept if entry.resource == "finishedpods")


WINDOWS = (
    *(
        _ignoring(Reason.WITHDRAWN, dialect, replace(LATE, kinds=frozenset({"withdraw"})))
        for dialect in (Native(), Grouped())
    ),
    *(
        _ignoring(Reason.CLAIM_DELETED, dialect, replace(LATE, kinds=frozenset({"delete claim"})))
        for dialect in (Native(), Grouped(), Hold())
    ),
    _ignoring(Reason.WORKLOAD_RECREATED, Native(), AGAIN),
    _ignoring(Reason.REALLOCATED, Native(), RESTARTED),
    _ignoring(Reason.REALLOCATED, Hold(ahead=True), REFUSED),
    _ignoring(Reason.REALLOCATED, Grouped(), CORDONED),
    Mutation(
        "take the hold out at a fence",
        Grouped(),
        CORDONED_GROUP,
        ((release, "left_at_fence", _no_holds),),
    ),
)
