"""Carrying out a plan: once, after a refused write anew, and not if it is gone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kube_in_process.storage.requests import Fault

from claimctl.downgrade.carry_out import REST_SECONDS, carry_out
from claimctl.wire.reservations import DOWNGRADE_PLAN_NAME
from tests.support.claim_server import NAMESPACE, TRAIN, Server
from tests.unit.downgrade.writers import RULES


async def used() -> Server:
    """A claim that a Deployment holds and a pod uses, and a plan."""
    server = Server.started()
    server.claim()
    server.pod("a")
    await server.plan()
    return server


async def carried_out(server: Server, *, tombstones: bool = True) -> None:
    name, clock = DOWNGRADE_PLAN_NAME, server.clock
    await carry_out(server.client, name, clock, RULES, tombstones=tombstones)


def label(server: Server) -> None:
    """Write the plan as another client."""
    change = {"metadata": {"labels": {"seen": "yes"}}}
    server.admin.patch("downgradeplans", "", DOWNGRADE_PLAN_NAME, change)


def delete(server: Server) -> None:
    server.admin.delete("downgradeplans", "", DOWNGRADE_PLAN_NAME)


def create_for_web(server: Server) -> None:
    delete(server)
    body = {"metadata": {"name": DOWNGRADE_PLAN_NAME}, "spec": {"namespaces": ["web"]}}
    server.admin.create("downgradeplans", body)


def delete_with_finalizer(server: Server) -> None:
    kept = {"metadata": {"finalizers": ["example.com/keeps"]}}
    server.admin.patch("downgradeplans", "", DOWNGRADE_PLAN_NAME, kept)
    delete(server)


async def test_a_plan_is_carried_out_once() -> None:
    server = await used()
    await carried_out(server)
    assert (server.listed(), server.reports[-1].phase) == (["pods/a"], "Prepared")
    revision = server.handler.api.store.revision
    await carried_out(server)
    assert server.handler.api.store.revision == revision


async def test_a_run_that_was_overtaken_starts_over_after_a_while() -> None:
    server = await used()

    def write(number: int) -> Fault | None:
        if number == 1:
            label(server)
        return None

    server.upon("patch", "downgradeplans", write)
    began = server.clock.monotonic()
    await carried_out(server)
    took = server.clock.monotonic() - began
    assert (server.listed(), server.reports[-1].phase) == (["pods/a"], "Prepared")
    # the wait, and the settle time of the run itself
    assert took == pytest.approx(REST_SECONDS + 2 * RULES.settle_seconds, abs=1)
    assert (await server.read_plan()).metadata.labels == {"seen": "yes"}


@pytest.mark.parametrize("withdraw", [delete, create_for_web, delete_with_finalizer])
async def test_a_plan_that_is_withdrawn_ends_the_run(withdraw: Callable[[Server], None]) -> None:
    server = await used()

    def act(number: int) -> Fault | None:
        if number == 2:
            withdraw(server)
        return None

    server.upon("patch", "downgradeplans", act)
    await carried_out(server)
    assert server.listed() == ["deployments/train"]


@pytest.mark.parametrize("first", [True, False], ids=["a controller ran before", "at first"])
async def test_no_tombstone_stays_where_nobody_stays_to_take_it_out(first: bool) -> None:
    server = Server.started()
    server.claim(shared=False)
    alive, done = server.pod("a"), server.pod("b")
    server.admin.patch("pods", NAMESPACE, "b", {"status": {"phase": "Succeeded"}}, "status")
    mark = {**done, "apiGroup": "claimctl.io", "resource": "finishedpods"}
    server.write_list(TRAIN, alive, mark)
    if first:
        await server.carry_out()
        assert server.listed() == ["pods/a", "finishedpods/b"]
        server.admin.patch(
            "downgradeplans", "", DOWNGRADE_PLAN_NAME, {"status": {"phase": ""}}, "status"
        )
    else:
        await server.plan()
    await carried_out(server, tombstones=False)
    assert (server.listed(), server.reports[-1].phase) == (["pods/a"], "Prepared")
