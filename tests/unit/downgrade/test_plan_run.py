"""The records of a run: what is stored of them and when, and never by a preview."""

from __future__ import annotations

import asyncio

import pytest

from claimctl.downgrade.plan_run import REPORT_SECONDS, PlanRun, store
from claimctl.downgrade.records import PlanPhase
from claimctl.kube.errors import Conflict
from claimctl.wire.reservations import DowngradedClaim, DowngradePlan, DowngradePlanStatus
from tests.support.claim_server import NAMESPACE, Server


async def test_progress_is_stored_in_the_present_phase_and_not_more_than_once_a_second() -> None:
    server = Server.started()
    plan = await server.plan()
    run = PlanRun(server.client, plan, server.clock)
    await run.report(PlanPhase.RESTORING)
    run.records["c"] = DowngradedClaim(namespace=NAMESPACE, name="slice", uid="c", state="Pending")
    await run.report_progress()
    assert len(server.reports) == 1
    await asyncio.sleep(REPORT_SECONDS)
    await run.report_progress()
    assert [each.phase for each in server.reports] == [PlanPhase.RESTORING, PlanPhase.RESTORING]


async def test_a_preview_stores_nothing() -> None:
    server = Server.started()
    before = server.handler.api.store.revision
    run = PlanRun(server.client, DowngradePlan(), server.clock, writes=False)
    await run.report(PlanPhase.RESTORED)
    assert (run.status.phase, server.handler.api.store.revision) == (PlanPhase.RESTORED, before)


async def test_each_status_is_written_once_and_a_field_that_becomes_empty_is_emptied() -> None:
    server = Server.started()
    plan = await server.plan()
    record = DowngradedClaim(namespace=NAMESPACE, name="slice", uid="c-1", state="Pending")
    frozen = DowngradePlanStatus(observed_generation=1, phase="Frozen", total=1, claims=(record,))
    written = await store(server.client, plan, frozen)
    assert await store(server.client, written, frozen) is written
    await store(server.client, written, DowngradePlanStatus())
    assert (await server.read_plan()).status == DowngradePlanStatus()
    assert len(server.reports) == 1


async def test_the_status_of_another_client_is_not_written_over() -> None:
    server = Server.started()
    plan = await server.plan()
    same = DowngradePlanStatus(phase="Frozen")
    await store(server.client, plan, same)
    with pytest.raises(Conflict):
        await store(server.client, plan, same)
