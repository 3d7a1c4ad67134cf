"""``claimctl upgrade status``: what it prints without an upgrade, and when ``-w`` ends."""

from __future__ import annotations

import asyncio
import json

import pytest

from claimctl.cli.errors import CommandFailed
from claimctl.cli.formats import Output
from claimctl.cli.session import Session
from claimctl.commands.downgrade.status_work import PAUSE_SECONDS
from claimctl.commands.downgrade.upgrade_work import show_status
from claimctl.wire.reservations import DOWNGRADE_PLAN_NAME
from tests.support.claim_server import NAMESPACE, Server


def session(server: Server) -> Session:
    return Session(server.client, server.clock, NAMESPACE, server.spoiling)


async def test_without_an_upgrade_programs_get_a_document(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = session(Server.started())
    assert await show_status(asked, Output.JSON, watch=False) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["kind"], shown["step"], shown["clear"]) == ("DowngradeStatus", "NotBegun", True)
    assert shown["command"] == "claimctl upgrade prepare --to 1.37 --dry-run"
    assert await show_status(asked, Output.TABLE, watch=True) == 0
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"{shown['todo']}\n")
    assert await show_status(session(Server.started(crds=False)), Output.TABLE, watch=False) == 0
    assert capsys.readouterr().err == err


async def test_a_watch_prints_what_changes_and_ends_with_the_plan(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server.started()
    await server.plan(upgradeTo="1.37")
    watch = asyncio.ensure_future(show_status(session(server), Output.TABLE, watch=True))
    await asyncio.sleep(2.5 * PAUSE_SECONDS)
    first = capsys.readouterr().err.splitlines()
    assert [line.partition("next step")[2] for line in first] == [
        " (Restore): run `claimctl upgrade restore` until it exits 0"
    ]
    server.admin.delete("downgradeplans", "", DOWNGRADE_PLAN_NAME)
    assert await watch == 0
    assert capsys.readouterr().err == "The upgrade is over: its plan is deleted.\n"


async def test_a_downgrade_is_no_upgrade() -> None:
    server = Server.started()
    await server.plan()
    with pytest.raises(CommandFailed, match="claimctl downgrade status"):
        await show_status(session(server), Output.JSON, watch=False)
