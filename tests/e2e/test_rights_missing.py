"""If a right is missing, the controller names it, at the start or where it needs it."""

from __future__ import annotations

import pytest

from claimctl.wire.resources import DEPLOYMENTS, RESOURCECLAIMS
from tests.e2e import manifests
from tests.e2e.harness import CONTROLLER_USER, HOLD_134, HOLD_136, Stage
from tests.e2e.rights import Permission, as_account, grant, permissions, strict
from tests.e2e.scenes import hold_for_deployment

pytestmark = pytest.mark.cluster(strict(HOLD_136))

FILE = "controller.yaml"
GIVEN = permissions(FILE)


def all_but(*missing: str) -> list[Permission]:
    return [each for each in GIVEN if f"{each.verb} {each.resource}" not in missing]


@pytest.mark.parametrize(
    ("missing", "told"),
    [
        ("patch resourceclaims/status", 'cannot patch resource "resourceclaims/status"'),
        ("patch resourceclaims/binding", "status.allocation or status.reservedFor requires"),
    ],
)
async def test_a_list_that_may_not_be_written_is_reported(
    stage: Stage, missing: str, told: str
) -> None:
    await grant(stage, all_but(missing), FILE)
    await stage.started(transport=await as_account(stage))
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(reserve="*"))
    await stage.until_condition("Ready", "False", "Forbidden")
    (reservation,) = await stage.reservations()
    message = next(c.message for c in reservation.status.conditions if c.type == "Ready")
    assert CONTROLLER_USER in message
    assert told in message


@pytest.mark.cluster(strict(HOLD_134))
async def test_a_server_that_knows_no_binding_right_asks_for_none(stage: Stage) -> None:
    await grant(stage, all_but("patch resourceclaims/binding"), FILE)
    await stage.started(transport=await as_account(stage))
    await hold_for_deployment(stage)


async def test_an_annotation_that_may_not_be_followed_is_reported_on_the_workload(
    stage: Stage,
) -> None:
    await grant(stage, all_but("create claimreservations"), FILE)
    await stage.started(transport=await as_account(stage))
    await stage.create(RESOURCECLAIMS, manifests.claim())
    await stage.create(DEPLOYMENTS, manifests.deployment(reserve="*"))
    await stage.until_event("Forbidden")
