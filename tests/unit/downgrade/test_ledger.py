"""The status of a plan: what is written, and what a conflict means."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kube_in_process.storage.requests import Fault
from msgspec.structs import replace

from claimctl.downgrade.ledger import Overtaken, PlanLedger, PlanWithdrawn
from claimctl.wire.reservations import (
    DOWNGRADE_PLAN_NAME,
    DowngradedClaim,
    DowngradePlan,
    DowngradePlanStatus,
)
from tests.support.claim_server import NAMESPACE, Server

RECORD = DowngradedClaim(namespace=NAMESPACE, name="slice", uid="c-1", state="Pending")
FROZEN = DowngradePlanStatus(observed_generation=1, phase="Frozen", total=1, claims=(RECORD,))


async def started() -> tuple[Server, PlanLedger]:
    server = Server.started()
    return server, server.ledger(await server.plan())


def label(server: Server) -> None:
    """Write the plan as another client."""
    change = {"metadata": {"labels": {"seen": "yes"}}}
    server.admin.patch("downgradeplans", "", DOWNGRADE_PLAN_NAME, change)


def delete(server: Server) -> None:
    server.admin.delete("downgradeplans", "", DOWNGRADE_PLAN_NAME)


def create_anew(server: Server) -> None:
    delete(server)
    server.admin.create("downgradeplans", {"metadata": {"name": DOWNGRADE_PLAN_NAME}})


def delete_with_finalizer(server: Server) -> None:
    kept = {"metadata": {"finalizers": ["example.com/keeps"]}}
    server.admin.patch("downgradeplans", "", DOWNGRADE_PLAN_NAME, kept)
    delete(server)


async def test_each_status_is_written_once_and_each_store_is_reported() -> None:
    server, ledger = await started()
    for status in (FROZEN, FROZEN, replace(FROZEN, phase="Expanding")):
        await ledger.store(status)
    assert [each.phase for each in server.reports] == ["Frozen", "Frozen", "Expanding"]
    assert ledger.plan == await server.read_plan()
    history = server.handler.api.store.history()
    written = [each for each in history if each.plural == "downgradeplans"]
    assert len(written) == 3, "the plan itself, and two statuses"


async def test_a_field_that_becomes_empty_is_emptied_on_the_server() -> None:
    server, ledger = await started()
    await ledger.store(FROZEN)
    await ledger.store(DowngradePlanStatus())
    assert (await server.read_plan()).status == DowngradePlanStatus()


async def test_a_write_of_another_client_ends_the_run_and_hands_its_plan_over() -> None:
    server, ledger = await started()
    label(server)
    with pytest.raises(Overtaken) as raised:
        await ledger.store(FROZEN)
    assert raised.value.plan == await server.read_plan()
    assert server.reports == []


async def test_a_conflict_counts_although_the_other_client_wrote_the_same_status() -> None:
    server, ledger = await started()
    await server.ledger(await server.read_plan()).store(FROZEN)
    with pytest.raises(Overtaken) as raised:
        await ledger.store(FROZEN)
    assert raised.value.plan.status == FROZEN


@pytest.mark.parametrize(
    "withdraw",
    [
        pytest.param(delete, id="deleted"),
        pytest.param(create_anew, id="another plan of the name"),
        pytest.param(delete_with_finalizer, id="being deleted"),
    ],
)
async def test_a_plan_that_is_gone_is_not_written(withdraw: Callable[[Server], None]) -> None:
    server, ledger = await started()
    withdraw(server)
    with pytest.raises(PlanWithdrawn, match=f"plan {DOWNGRADE_PLAN_NAME} was deleted"):
        await ledger.store(FROZEN)
    assert server.reports == []


async def test_a_plan_that_is_deleted_after_a_conflict_is_gone() -> None:
    server, ledger = await started()
    label(server)

    def vanish(number: int) -> Fault | None:
        delete(server)
        return None

    server.upon("get", "downgradeplans", vanish)
    with pytest.raises(PlanWithdrawn):
        await ledger.store(FROZEN)


def test_an_overtaken_run_names_the_plan() -> None:
    plan = DowngradePlan()
    assert Overtaken(plan).plan is plan
    assert str(Overtaken(plan)) == f"plan {plan.metadata.name} was written by another client"
