"""Until when a release waits, and by whose clock."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from claimctl.commands.claims.explanation import Explanation
from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.reasons import ConditionType, Reason, ReleaseStep
from claimctl.text import duration
from claimctl.wire.meta import find_condition


def until(explanation: Explanation, blocker: Blocker) -> datetime | None:
    """When time will have ended the blocker, by the clock of the controller that wrote the status.

    None if no status has a time. Then the controller counts from what it saw first, and that is
    not known.
    """
    if blocker.after is None or not _on_record(explanation, blocker):
        return None
    return explanation.assessment.snapshot.now + timedelta(seconds=blocker.after)


def _on_record(explanation: Explanation, blocker: Blocker) -> bool:
    if blocker.reason is Reason.FORCE_DELETED_PODS:
        return True
    releases = (reservation.status.release for reservation in explanation.view.reservations)
    fenced = any(release is not None and release.step == ReleaseStep.FENCED for release in releases)
    return blocker.reason is Reason.PODS_MAY_BE_BOUND and fenced


def release_wait(explanation: Explanation, blocker: Blocker) -> str:
    """Until when the release waits, as text; '' if time does not end the blocker."""
    if blocker.after is None:
        return ""
    if (end := until(explanation, blocker)) is not None:
        bound = blocker.reason is Reason.PODS_MAY_BE_BOUND
        anew = ", and later if a controller has started since" if bound else ""
        left = f"{duration(blocker.after)} left"
        return f"until {end:%Y-%m-%dT%H:%M:%SZ} by the controller's clock, {left}{anew}"
    if blocker.reason is Reason.PODS_MAY_BE_BOUND:
        return (
            f"at most {blocker.after:.0f} s from the controller's first sight of the claim closed "
            "to them, by its own clock; explain cannot know when that was"
        )
    return ""


def controllers_word(explanation: Explanation) -> Iterator[str]:
    """What the controller itself reports about a release that waits.

    It may wait for what no object shows: for pods that may have vanished while it did not watch.
    """
    for retention in explanation.assessment.retentions:
        reservation = retention.held.reservation
        said = find_condition(reservation.status.conditions, ConditionType.RELEASED)
        if explanation.release is None or said is None or said.status != "False":
            continue
        if said.reason != Reason.HELD:
            where = f"the controller reports in ClaimReservation {reservation.metadata.name}"
            yield f"{where} ({said.reason}): {said.message}"
