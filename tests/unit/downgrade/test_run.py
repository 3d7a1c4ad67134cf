"""The records of a run: stored at most once a second, and never by a preview."""

from __future__ import annotations

import asyncio

from claimctl.downgrade.records import PlanPhase
from claimctl.downgrade.run import REPORT_SECONDS, PlanRun
from claimctl.wire.reservations import DowngradedClaim, DowngradePlan, DowngradePlanStatus
from tests.support.claim_server import NAMESPACE, Server


async def test_progress_is_stored_in_the_present_phase_and_not_more_than_once_a_second() -> None:
    server = Server.started()
    plan = await server.plan()
    run = PlanRun(server.client, plan, server.clock, server.ledger(plan))
    await run.report(PlanPhase.RESTORING)
    await run.report_progress()
    assert len(server.reports) == 1
    await asyncio.sleep(REPORT_SECONDS)
    await run.report_progress()
    assert [each.phase for each in server.reports] == [PlanPhase.RESTORING, PlanPhase.RESTORING]


async def test_a_preview_stores_nothing() -> None:
    server = Server.started()
    before = server.handler.api.store.revision
    run = PlanRun(server.client, DowngradePlan(), server.clock, None)
    await run.report(PlanPhase.RESTORED)
    assert (run.status.phase, server.handler.api.store.revision) == (PlanPhase.RESTORED, before)


async def test_claims_that_are_gone_end_their_records() -> None:
    server = Server.started()
    server.claim()
    uid = server.admin.get("resourceclaims", NAMESPACE, "slice")["metadata"]["uid"]
    records = tuple(
        DowngradedClaim(namespace=NAMESPACE, name=name, uid=each, state="Expanded")
        for name, each in (("gone", "x"), ("slice", uid))
    )
    plan = DowngradePlan(status=DowngradePlanStatus(claims=records))
    run = PlanRun(server.client, plan, server.clock, None)
    assert list(await run.read(run.records)) == [uid]
    assert {each.name: each.state for each in run.records.values()} == {
        "gone": "Unchanged",
        "slice": "Expanded",
    }
