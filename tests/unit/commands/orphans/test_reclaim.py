"""Orphans on a server are freed, or left with a note."""

from __future__ import annotations

import asyncio

import pytest

from claimctl.commands.orphans.model import WatchTimes
from claimctl.commands.orphans.reclaim import Outcome, Reclaim
from claimctl.wire.claims import UNCHANGEABLE
from tests.support.claim_server import Server


@pytest.mark.parametrize(
    ("plural", "path", "freed"),
    [
        ("pods", (), True),
        ("pods", ("spec", "resourceClaims"), False),
        ("pods", ("metadata",), False),
        ("claimreservations", ("spec", "workloadRef"), True),
        ("claimreservations", ("spec", "resourceClaimName"), False),
    ],
)
async def test_orphans_are_left_that_an_unreadable_object_may_concern(
    plural: str, path: tuple[str, ...], freed: bool
) -> None:
    """The object names another claim, where that can be read."""
    made = Server.with_unreadable(plural, "bad", *path)
    made.orphan()
    if plural == "pods":
        made.pod("bad", claim="other")
    else:
        made.reservation("bad", claim="other", workload="x")
    told: list[str] = []
    freeing = Reclaim(made.client, made.clock, "", WatchTimes(), told.append)
    outcomes = [each.outcome for each in await freeing.run()]
    assert outcomes == ([Outcome.FREED] if freed else [])


async def test_a_leftover_that_cannot_be_read_any_more_is_not_freed() -> None:
    made = Server.started()
    made.orphan()
    spoil = asyncio.get_running_loop().call_later(20, lambda: made.spoil("resourceclaims", "slice"))
    freeing = Reclaim(made.client, made.clock, "", WatchTimes(), lambda _: None)
    (found,) = await freeing.run()
    assert found.outcome is Outcome.FAILED
    assert "slice cannot be read" in found.note
    spoil.cancel()


async def test_a_leftover_that_nobody_can_change_is_named_and_tried_once() -> None:
    made = Server.started()
    made.unchangeable()
    told: list[str] = []
    freeing = Reclaim(made.client, made.clock, "", WatchTimes(), told.append)
    began = made.clock.monotonic()
    (found,) = await freeing.run()
    assert found.outcome is Outcome.FAILED
    assert UNCHANGEABLE in found.note
    assert any(UNCHANGEABLE in line for line in told)
    assert made.clock.monotonic() - began < 1
