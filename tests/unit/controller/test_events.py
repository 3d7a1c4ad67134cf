"""Which events follow from a status that changes."""

from __future__ import annotations

import pytest

from claimctl.controller.events import Announcement, announcements
from claimctl.reservation.reasons import Reason
from claimctl.reservation.status.conditions import LONGEST_MESSAGE
from claimctl.reservation.status.desired import Refusal, refused_status
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import ClaimReservationStatus
from tests.support.builders import NOW, after, reservation

Told = tuple[str, str, str]


def status(*conditions: Told) -> ClaimReservationStatus:
    return ClaimReservationStatus(
        conditions=tuple(
            Condition(type=type_, status=value, reason=reason, message="why")
            for type_, value, reason in conditions
        )
    )


RESERVED = ("Reserved", "True", "Reserved")
HELD = ("Released", "False", "Held")
IDLE = ("Released", "True", "Idle")
FORBIDDEN = Refusal(Reason.FORBIDDEN, "no")


@pytest.mark.parametrize(
    ("old", "new", "reasons"),
    [
        pytest.param([], [RESERVED, HELD], ["Reserved"], id="a new hold is told, its rest is not"),
        pytest.param([RESERVED], [RESERVED], [], id="what stays is not told again"),
        pytest.param([HELD], [IDLE], ["Idle"], id="a release is told with its reason"),
        pytest.param(
            [], [("Reserved", "False", "NotAllocated")], [], id="the beginning of things is no news"
        ),
        pytest.param(
            [],
            [("Ready", "False", "ClaimNotFound"), ("Reserved", "False", "ClaimNotFound")],
            ["ClaimNotFound"],
            id="one reason is one event",
        ),
        pytest.param(
            [("Ready", "True", "Ready")],
            [("Ready", "False", "Forbidden")],
            ["Forbidden"],
            id="what is forbidden is told",
        ),
        pytest.param(
            [("Ready", "True", "Ready")],
            [("Ready", "False", "Invalid")],
            ["Invalid"],
            id="what is not valid is told",
        ),
        pytest.param(
            [("Ready", "False", "Forbidden")],
            [("Ready", "True", "Ready")],
            [],
            id="that all is well again is not",
        ),
    ],
)
def test_changes_that_are_told(old: list[Told], new: list[Told], reasons: list[str]) -> None:
    assert [told.reason for told in announcements(status(*old), status(*new))] == reasons


def test_trouble_is_a_warning_and_the_rest_is_not() -> None:
    told = announcements(status(HELD), status(("Consistent", "False", "StrandedPod"), IDLE))
    assert told == (
        Announcement("Warning", "StrandedPod", "why", "Repair"),
        Announcement("Normal", "Idle", "why", "Release"),
    )


def test_a_refusal_takes_the_place_of_ready_and_is_written_once() -> None:
    wanted = status(("Ready", "True", "Ready"), RESERVED)
    first = refused_status(reservation(), wanted, FORBIDDEN, NOW)
    assert first.conditions == (
        Condition(
            type="Ready",
            status="False",
            reason="Forbidden",
            message="no",
            observed_generation=1,
            last_transition_time=NOW,
        ),
        *status(RESERVED).conditions,
    )
    again = refused_status(reservation(status=first), wanted, FORBIDDEN, after(60))
    assert again == first


def test_a_refusal_of_any_length_is_a_message_that_the_schema_takes() -> None:
    refusal = Refusal(Reason.INVALID, "x" * 100_000)
    (ready,) = refused_status(reservation(), status(), refusal, NOW).conditions
    assert (ready.reason, len(ready.message)) == ("Invalid", LONGEST_MESSAGE)
    assert ready.message.endswith("x...")
