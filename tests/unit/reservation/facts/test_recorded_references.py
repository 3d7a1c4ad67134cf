"""Which entry of a claim's list is the one of a ClaimReservation."""

from __future__ import annotations

import pytest

from claimctl.reservation.facts.recorded_references import recorded_reference
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import ClaimReservation
from tests.support.builders import (
    claim,
    deployment_ref,
    pod_ref,
    reservation,
    written_by,
    written_by_claimctl,
)
from tests.support.claim_cases import WORKLOAD, held_status

EARLIER = deployment_ref(uid="uid-of-an-earlier-train")
NEW = reservation()
RECORDED = reservation(status=held_status())
LISTED = claim(EARLIER, WORKLOAD, pod_ref("a"))
BY_CLAIMCTL = written_by_claimctl(LISTED, [WORKLOAD.uid])


@pytest.mark.parametrize(
    ("on", "reserved", "reference"),
    [
        pytest.param(claim(), RECORDED, WORKLOAD, id="on record, and taken out of the list"),
        pytest.param(
            written_by_claimctl(LISTED, [EARLIER.uid]), RECORDED, WORKLOAD, id="the record wins"
        ),
        pytest.param(
            LISTED,
            reservation(status=held_status(claim_uid="uid-of-an-earlier-claim")),
            None,
            id="on record for an earlier claim",
        ),
        pytest.param(BY_CLAIMCTL, NEW, WORKLOAD, id="no record yet, and claimctl wrote the entry"),
        pytest.param(
            written_by("somebody", LISTED, [WORKLOAD.uid]), NEW, None, id="somebody else wrote it"
        ),
        pytest.param(
            BY_CLAIMCTL, reservation(workload="other"), None, id="the entry of another workload"
        ),
        pytest.param(
            claim(EARLIER, WORKLOAD, created_for=WORKLOAD), NEW, WORKLOAD, id="created for it"
        ),
        pytest.param(BY_CLAIMCTL, reservation(kind="Unknown"), None, id="an unknown kind"),
    ],
)
def test_the_entry_of_a_reservation(
    on: ResourceClaim, reserved: ClaimReservation, reference: Reference | None
) -> None:
    assert recorded_reference(on, reserved) == reference


def test_the_resource_of_a_kind_without_a_shipped_rule_is_given() -> None:
    reserved = reservation(kind="Unknown")
    assert recorded_reference(BY_CLAIMCTL, reserved, "deployments") == WORKLOAD
