"""Which claims a way back concerns, and how it ends."""

from __future__ import annotations

import pytest

from claimctl.commands.downgrade.following import PlanResult
from claimctl.commands.downgrade.report import document
from claimctl.commands.downgrade.restore_work import concerned, restored_code
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import DowngradedClaim, DowngradePlanStatus

TRAIN = (Reference(api_group="apps", resource="deployments", name="train", uid="d-1"),)


@pytest.mark.parametrize(
    ("state", "left", "phase", "code", "count"),
    [
        pytest.param("Restored", (), "Restored", 0, 1, id="all has returned"),
        pytest.param("NotRestored", TRAIN, "PartlyRestored", 3, 1, id="something has not"),
        pytest.param("Failed", TRAIN, "PartlyRestored", 1, 1, id="a request failed"),
        pytest.param("Failed", (), "Restored", 0, 0, id="only the downgrade had failed"),
        pytest.param("Refused", (), "Restored", 0, 0, id="nothing was replaced"),
    ],
)
def test_the_end_of_a_way_back(
    state: str, left: tuple[Reference, ...], phase: str, code: int, count: int
) -> None:
    record = DowngradedClaim(namespace="ml", name="slice", state=state, replaced_references=left)
    status = DowngradePlanStatus(phase=phase, claims=(record,))
    report = document(PlanResult(status, "controller"), concerned(status))
    assert (restored_code(report), len(report.claims)) == (code, count)
