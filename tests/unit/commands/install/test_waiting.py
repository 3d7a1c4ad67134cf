"""``claimctl install --wait`` ends when a controller acts, and not when its pods are ready."""

from __future__ import annotations

import pytest

from claimctl.cli.errors import CommandFailed
from claimctl.cli.session import Session
from claimctl.commands.install.work import LEASE_SECONDS, until_one_leads
from tests.support.claim_server import NAMESPACE, Server
from tests.support.diagnosing import elected


async def seconds_until_one_leads(server: Server) -> float:
    begun = server.clock.monotonic()
    await until_one_leads(Session(server.client, server.clock, NAMESPACE, server.spoiling))
    return server.clock.monotonic() - begun


async def test_it_ends_at_once_where_a_controller_has_its_lease() -> None:
    server = Server.started()
    elected(server)
    assert await seconds_until_one_leads(server) == 0.0


async def test_it_fails_where_nobody_takes_the_lease() -> None:
    server = Server.started()
    elected(server, renewed_before=300.0)
    with pytest.raises(CommandFailed, match="pods are ready, but no controller acts: the Lease "):
        await seconds_until_one_leads(server)
    assert server.clock.monotonic() >= LEASE_SECONDS
