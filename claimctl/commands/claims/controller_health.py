"""Signs that no controller acts on a claim, or that its writes fail.

The Lease shows whether a controller is elected (``election``). An elected controller may be
throttled, or lack rights. This shows in objects that the controller should have written by now and
has not. ``troubles`` collects the signs by one function for each way to look. A new sign is a
member of ``Sign``, which one of these functions yields, with an advice of its own in ``ADVICE`` or
the general one. ``Trouble.lasting`` names those that may be a short delay.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from enum import StrEnum

import msgspec

from claimctl.cli.documents import Part
from claimctl.commands.claims.election import Election, State
from claimctl.controller.preflight import GRANT
from claimctl.reservation.assessment.assess import Assessment
from claimctl.reservation.assessment.retention import Action, RetentionDecision
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.references import is_pod
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.text import duration
from claimctl.wire.meta import find_condition

LATE_SECONDS = 20.0
"""A younger pod need not be counted yet: a write that changes nothing but numbers waits for half of
this."""
STALLED_SECONDS = 60.0
"""A release without blockers has stalled after this time: each step takes the settle time at
most."""


class Sign(StrEnum):
    """A sign that the controller does not act, or that its writes fail."""

    NOT_ACTING = "NoControllerActing"
    REFUSED = "WritesRefused"
    INVALID = "WritesInvalid"
    STATUS_BEHIND = "StatusBehind"
    RELEASE_STALLED = "ReleaseStalled"
    HOLD_MISSING = "HoldMissing"


_REFUSALS: dict[str, Sign] = {Reason.FORBIDDEN: Sign.REFUSED, Reason.INVALID: Sign.INVALID}
"""The reasons in a status that tell of a write that the API server refused."""
_NOT_LISTED = frozenset(
    {Reason.HOLD_YIELDED, Reason.FULL, Reason.FROZEN, Reason.WORKLOAD_RECREATED}
)
"""The reasons in a status for which a hold is not in the list."""


class Trouble(Part, frozen=True, kw_only=False):
    """A sign with what to tell about it."""

    sign: Sign = msgspec.field(name="reason")
    message: str
    reservation: str

    @property
    def lasting(self) -> bool:
        """Whether one observation proves the trouble. Other signs may be a short delay."""
        return self.sign not in (Sign.STATUS_BEHIND, Sign.HOLD_MISSING)


ADVICE = {
    Sign.NOT_ACTING: (
        "Look at the controller's pods and logs (kubectl -n claimctl-system get pods): it does not "
        "run, or cannot write its Lease. Until it does, claims stay as they are."
    ),
    Sign.REFUSED: (
        f"Grant the missing rights, then the controller goes on by itself: {GRANT}; "
        "`claimctl doctor --as system:serviceaccount:claimctl-system:claimctl-controller` lists "
        "them."
    ),
    Sign.INVALID: (
        "Correct what the API server refuses, as said above; the controller tries again by itself."
    ),
}
_BEHIND = (
    "The controller's writes do not get through, or it does not run: `claimctl doctor` says "
    "whether it lacks rights; else look at its log (429 is throttling) and at the metric "
    'claimctl_reconcile_duration_seconds{outcome="error"}. Then it goes on by itself; until then '
    "claims stay as they are."
)


def advice(troubles: Iterable[Trouble]) -> tuple[str, ...]:
    """What to do about the troubles, each advice once. The general one, for a status that is
    behind, appears only if no other sign says why."""
    signs = dict.fromkeys(trouble.sign for trouble in troubles)
    known = tuple(ADVICE[sign] for sign in signs if sign in ADVICE)
    return known or ((_BEHIND,) if signs else ())


def troubles(election: Election, assessment: Assessment) -> tuple[Trouble, ...]:
    """All signs that no controller acts on the claim, or that its writes fail. A claim with parts
    that cannot be read is left alone, so only the Lease is judged then."""
    retentions = () if assessment.snapshot.unreadable_parts else assessment.retentions
    not_acting = election.state is State.NOT_ACTING
    seen = [Trouble(Sign.NOT_ACTING, election.message, "")] if not_acting else []
    for retention in retentions:
        name = retention.held.name
        signs = (
            *_status_signs(assessment, retention),
            *_missing_hold(assessment, retention),
            *_stalled_release(assessment, retention),
        )
        seen += [Trouble(sign, f"ClaimReservation {name} {text}", name) for sign, text in signs]
    return tuple(seen)


def _status_signs(
    assessment: Assessment, retention: RetentionDecision
) -> Iterator[tuple[Sign, str]]:
    """The signs in the status of a ClaimReservation: a refused write, or an outdated status."""
    meta, status = retention.held.reservation.metadata, retention.held.reservation.status
    ready = find_condition(status.conditions, ConditionType.READY)
    if ready is not None and ready.status == "False" and ready.reason in _REFUSALS:
        yield _REFUSALS[ready.reason], f"cannot be served ({ready.reason}): {ready.message}"
    seen = status.observed_generation or "none"
    if status.observed_generation != meta.generation:
        text = f"has a status for generation {seen}, but a spec of generation {meta.generation}"
        yield Sign.STATUS_BEHIND, text
    elif _is_count_overdue(assessment.snapshot, status.consumers):
        count = assessment.snapshot.consumers.count
        yield Sign.STATUS_BEHIND, f"reports {status.consumers} consumers, but there are {count}"


def _is_count_overdue(snapshot: Snapshot, reported: int) -> bool:
    """Whether the controller should have written another number of consumers by now.

    It writes at once that none is left. Where nothing else changes, it writes that there are more
    only a bit later. That there are fewer is no sign.
    """
    using = snapshot.consumers
    if snapshot.unreadable:
        return False
    if using.count == 0:
        return bool(reported)
    counted_before = snapshot.now - timedelta(seconds=LATE_SECONDS)
    times = (pod.metadata.creation_timestamp for pod in using.alive.values())
    young = sum(created is not None and created > counted_before for created in times)
    return using.count - young > reported


def _missing_hold(
    assessment: Assessment, retention: RetentionDecision
) -> Iterator[tuple[Sign, str]]:
    """The sign that a hold is not in the list, for no reason that the status gives."""
    reserved = find_condition(retention.held.reservation.status.conditions, ConditionType.RESERVED)
    explained = reserved is not None and reserved.reason in _NOT_LISTED
    is_hold = retention.action is Action.HOLD and retention.reference is not None
    if assessment.snapshot.allocated and is_hold and not retention.is_listed and not explained:
        yield Sign.HOLD_MISSING, "holds the claim, but its workload is not listed"


def _stalled_release(
    assessment: Assessment, retention: RetentionDecision
) -> Iterator[tuple[Sign, str]]:
    """The sign that a release has not begun, or goes on too slowly, although nothing blocks it."""
    is_release = retention.action is Action.RELEASE and assessment.reason is not None
    if not assessment.snapshot.allocated or not is_release:
        return
    if assessment.blockers or _waits(assessment, retention):
        return
    progress = retention.held.reservation.status.release
    if progress is None:
        text = f"releases the claim ({retention.reason}), but no release has begun"
        yield Sign.STATUS_BEHIND, text
    elif progress.since is not None:
        age = (assessment.snapshot.now - progress.since).total_seconds()
        if age > STALLED_SECONDS:
            text = f"has not finished its release (step {progress.step}) after {duration(age)}"
            yield Sign.RELEASE_STALLED, text


def _waits(assessment: Assessment, retention: RetentionDecision) -> bool:
    """Whether the release waits for others: kube-controller-manager has to remove the listed pods,
    or the controller has not seen the history of the claim's pods."""
    released = find_condition(retention.held.reservation.status.conditions, ConditionType.RELEASED)
    if released is not None and released.reason == Reason.HISTORY_UNKNOWN:
        return True
    return bool(assessment.snapshot.references) and all(map(is_pod, assessment.snapshot.references))
