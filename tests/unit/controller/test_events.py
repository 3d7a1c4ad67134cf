"""Which events follow from a status that changes."""

from __future__ import annotations

from typing import cast

import pytest

from claimctl.controller.events import Announcement, announce, announcements
from claimctl.kube.events import EventRecorder
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.coordination import ObjectReference
from tests.support.builders import CLAIM, NAMESPACE, NOW, claim, reservation
from tests.support.claim_cases import status_with

Told = tuple[str, str, str]


RESERVED = ("Reserved", "True", "Reserved")
HELD = ("Released", "False", "Held")
IDLE = ("Released", "True", "Idle")


@pytest.mark.parametrize(
    ("old", "new", "reasons"),
    [
        pytest.param([], [RESERVED, HELD], ["Reserved"], id="a new hold is told, its rest is not"),
        pytest.param([RESERVED], [RESERVED], [], id="what stays is not told again"),
        pytest.param(
            [RESERVED, HELD],
            [("Reserved", "False", "Releasing"), ("Released", "False", "ConsumersLeft")],
            [],
            id="what goes on is in the conditions",
        ),
        pytest.param(
            [("Consistent", "False", "StrandedPod")],
            [("Consistent", "True", "Consistent")],
            ["Consistent"],
            id="that a list is in order again is told",
        ),
        pytest.param([HELD], [IDLE], ["Idle"], id="a release is told with its reason"),
        pytest.param(
            [("Reserved", "True", "Reserved")],
            [("Reserved", "True", "PodGroupPending")],
            [],
            id="another reason for what is true already is no news",
        ),
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
    assert [told.reason for told in announcements(status_with(*old), status_with(*new))] == reasons


def test_trouble_is_a_warning_and_the_rest_is_not() -> None:
    told = announcements(
        status_with(HELD), status_with(("Consistent", "False", "StrandedPod"), IDLE)
    )
    assert told == (
        Announcement("Warning", "StrandedPod", "why", "Repair"),
        Announcement("Normal", "Idle", "why", "Release"),
    )


@pytest.mark.parametrize(
    ("old", "new", "deleting", "subjects"),
    [
        pytest.param([], [RESERVED, HELD], False, ["Deployment"], id="a hold"),
        pytest.param([HELD], [IDLE], False, ["ClaimReservation"], id="the end of a release"),
        pytest.param([HELD], [IDLE], True, ["ResourceClaim"], id="the end of the reservation"),
        pytest.param(
            [],
            [("Consistent", "False", "StrandedPod")],
            False,
            ["ResourceClaim", "Deployment", "ClaimReservation"],
            id="a problem",
        ),
    ],
)
def test_objects_on_which_something_is_told(
    old: list[Told], new: list[Told], deleting: bool, subjects: list[str]
) -> None:
    told: list[str] = []

    class RecordedNotes:
        def record(
            self,
            regarding: ObjectReference,
            *,
            note: str,
            related: ObjectReference | None = None,
            **_: str,
        ) -> None:
            told.append(regarding.kind)
            leads_to = related or regarding
            assert (leads_to.kind, leads_to.name) == ("ClaimReservation", made.metadata.name)
            assert note.startswith(f"ClaimReservation {made.metadata.name}: ") is bool(related)

    active = WorkloadState(WorkloadPhase.ACTIVE, uid="uid-train", wants=1)
    made = reservation(status=status_with(*old), deleting=deleting)
    on = Snapshot(NOW, NAMESPACE, CLAIM, claim(), (Held(made, active),))
    announce(cast(EventRecorder, RecordedNotes()), on, made, status_with(*new))
    assert told == subjects
