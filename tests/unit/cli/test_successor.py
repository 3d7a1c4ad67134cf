"""The controller inside the command is started once, and its errors reach the command."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from claimctl.cli.errors import CommandFailed
from claimctl.cli.successor import Successor
from claimctl.controller.manager import Manager
from claimctl.controller.preflight import NotReady
from claimctl.controller.settings import Settings
from claimctl.kube.leases import LeadershipLost, NoNamespace
from claimctl.wire.resources import LEASES
from tests.support.claim_server import Server


class FakeManager:
    """A controller that runs until it is stopped, or ends with an error at once."""

    def __init__(self, settings: Settings, error: Exception | None = None) -> None:
        self.settings = settings
        self.leading = error is None
        self.error = error
        self.stopped = False

    async def run(self, stop: asyncio.Event) -> None:
        if self.error is not None:
            raise self.error
        await stop.wait()
        self.stopped = True


def successor(made: list[FakeManager], *errors: Exception | None) -> Successor:
    """On a server without a controller; the n-th one ends with the n-th error."""
    server, left = Server.started("claimctl-system"), list(errors)

    def make(settings: Settings) -> Manager:
        made.append(FakeManager(settings, left.pop(0) if left else None))
        return cast("Manager", made[-1])

    settings = Settings.checked(identity="successor")
    return Successor(server.client, server.clock, settings, make, lambda _: None)


async def test_it_is_started_once_and_stopped_in_order() -> None:
    made: list[FakeManager] = []
    tried = successor(made)
    assert (tried.running, tried.leading) == (False, False)
    await tried.ensure()
    await tried.ensure()
    assert (len(made), tried.running, tried.leading) == (1, True, True)
    assert made[0].settings.leader_elect
    await tried.close()
    assert (made[0].stopped, tried.running, tried.leading) == (True, False, False)
    await tried.close()


async def test_another_one_is_started_after_the_lease_was_lost() -> None:
    made: list[FakeManager] = []
    tried = successor(made, LeadershipLost("taken over"))
    await tried.ensure()
    await asyncio.sleep(0)
    await tried.ensure()
    assert (len(made), tried.leading) == (2, True)
    await tried.close()


async def test_another_one_without_a_lease_is_started_where_the_lease_has_no_namespace() -> None:
    made: list[FakeManager] = []
    tried = successor(made, NoNamespace("there is no namespace claimctl-system for the Lease"))
    await tried.ensure()
    await asyncio.sleep(0)
    await tried.ensure()
    assert [it.settings.leader_elect for it in made] == [True, False]
    await tried.close()


async def test_a_controller_that_cannot_start_ends_the_command() -> None:
    tried = successor([], NotReady("not permitted: list nodes"))
    await tried.ensure()
    await asyncio.sleep(0)
    with pytest.raises(CommandFailed, match="cannot do its work: not permitted: list nodes"):
        await tried.ensure()
    await tried.close()


async def test_none_is_started_beside_a_controller_that_renews_its_lease() -> None:
    made: list[FakeManager] = []
    server = Server.started("claimctl-system")
    lease = {
        "metadata": {"name": "claimctl-controller", "namespace": "claimctl-system"},
        "spec": {
            "holderIdentity": "one",
            "leaseDurationSeconds": 15,
            "renewTime": server.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        },
    }
    await server.client.create(LEASES, lease, "claimctl-system")
    settings = Settings.checked(identity="successor")

    def make(settings: Settings) -> Manager:
        made.append(FakeManager(settings))
        return cast("Manager", made[-1])

    tried = Successor(server.client, server.clock, settings, make, lambda _: None)
    await tried.ensure()
    assert (made, tried.running, await tried.tended()) == ([], False, True)
    await server.clock.sleep(60)
    await tried.ensure()
    assert len(made) == 1
    await tried.close()


async def test_without_the_namespace_of_the_lease_it_needs_none() -> None:
    made: list[FakeManager] = []
    server = Server.started("default")

    def make(settings: Settings) -> Manager:
        made.append(FakeManager(settings))
        return cast("Manager", made[-1])

    settings = Settings.checked(identity="successor")
    tried = Successor(server.client, server.clock, settings, make, lambda _: None)
    await tried.ensure()
    assert not made[0].settings.leader_elect
    await tried.close()
