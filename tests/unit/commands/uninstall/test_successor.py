"""The controller inside the command is started once, and its errors reach the command."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from claimctl.cli.errors import CommandFailed
from claimctl.commands.uninstall.successor import Successor
from claimctl.controller.manager import Manager
from claimctl.controller.preflight import NotReady
from claimctl.kube.leases import LeadershipLost


class Fake:
    """A controller that runs until it is stopped, or ends with an error at once."""

    def __init__(self, error: Exception | None = None) -> None:
        self.leading = error is None
        self.error = error
        self.stopped = False

    async def run(self, stop: asyncio.Event) -> None:
        if self.error is not None:
            raise self.error
        await stop.wait()
        self.stopped = True


def started(tried: Successor, fake: Fake) -> Successor:
    tried.start(cast("Manager", fake))
    return tried


async def test_it_is_started_once_and_stopped_in_order() -> None:
    fake, tried = Fake(), Successor()
    assert (tried.running, tried.leading) == (False, False)
    started(tried, fake)
    await asyncio.sleep(0)
    tried.check()
    assert (tried.running, tried.leading) == (True, True)
    await tried.close()
    assert (fake.stopped, tried.running, tried.leading) == (True, False, False)
    await tried.close()


async def test_another_one_is_started_after_the_lease_was_lost() -> None:
    tried = started(Successor(), Fake(LeadershipLost("taken over")))
    await asyncio.sleep(0)
    tried.check()
    assert not tried.running
    started(tried, Fake())
    await asyncio.sleep(0)
    tried.check()
    assert tried.leading
    await tried.close()


async def test_a_controller_that_cannot_start_ends_the_command() -> None:
    tried = started(Successor(), Fake(NotReady("not permitted: list nodes")))
    await asyncio.sleep(0)
    with pytest.raises(CommandFailed, match="cannot do its work: not permitted: list nodes"):
        tried.check()
    await tried.close()
