"""Asking for a release: once per reservation, whoever writes them meanwhile."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from claimctl.cli.errors import CommandFailed
from claimctl.cli.formats import Output
from claimctl.cli.session import Session
from claimctl.commands.claims import get_work, release_work
from claimctl.commands.claims.explanation import Explanation, explain, explain_with_controller
from claimctl.commands.claims.get_work import gather
from claimctl.commands.claims.release_request import ReleaseWanted
from claimctl.wire.reservations import RELEASE_ANNOTATION
from tests.support.claim_server import NAMESPACE, Server
from tests.support.diagnosing import elected


def marks(server: Server, name: str = "one") -> dict[str, Any]:
    found: dict[str, Any] = server.admin.get("claimreservations", NAMESPACE, name)["metadata"]
    return found.get("annotations") or {}


async def explained(server: Server) -> Explanation:
    return await explain(server.client, NAMESPACE, "slice", server.clock.now())


async def test_every_reservation_of_the_claim_is_asked_with_the_claims_uid() -> None:
    server = Server.started()
    server.claim()
    server.reservation("one")
    server.reservation("two")
    explanation = await explained(server)
    await release_work.ask(server.client, explanation)
    wanted = {RELEASE_ANNOTATION: explanation.view.claim.metadata.uid}
    assert (marks(server, "one"), marks(server, "two")) == (wanted, wanted)


async def test_asking_twice_writes_once() -> None:
    server = Server.started()
    server.claim()
    server.reservation("one")
    await release_work.ask(server.client, await explained(server))
    before = server.handler.api.store.revision
    await release_work.ask(server.client, await explained(server))
    assert server.handler.api.store.revision == before


async def told(server: Server) -> tuple[str, Explanation]:
    found = await explain_with_controller(server.client, NAMESPACE, "slice", server.clock)
    return "\n".join(release_work.lines(found, dry_run=False)), found


def idle(server: Server) -> None:
    reference = server.deployment(replicas=0)
    server.claim("slice", reference)
    status = server.held_status(reference) | {"observedGeneration": 1}
    server.reservation(status=status, retentionPolicy="Persistent")


@pytest.mark.parametrize(
    ("renewed_before", "promise"),
    [
        (0.0, "nothing blocks it: the controller frees its devices now"),
        (60.0, "it waits until a controller acts again:\n  NoControllerActing: the Lease "),
        (None, "nothing blocks it: a controller frees its devices when it acts (no Lease "),
    ],
)
async def test_nothing_is_promised_that_no_controller_would_do(
    renewed_before: float | None, promise: str
) -> None:
    server = Server.started()
    idle(server)
    if renewed_before is not None:
        elected(server, renewed_before=renewed_before)
    text, found = await told(server)
    assert promise in text
    assert bool(found.troubles) == (renewed_before == 60.0)


async def test_a_request_is_shown_until_it_is_withdrawn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server.started()
    server.claim("slice", server.deployment())
    server.reservation("one")
    wanted = ReleaseWanted("slice", False, None, Output.TABLE, cancel=True)
    with pytest.raises(CommandFailed, match="no release of claim ml/slice is asked for"):
        await release_work.withdraw(server.client, await explained(server), wanted)
    await release_work.ask(server.client, await explained(server))
    (view,) = await gather(server.client, server.clock.now(), get_work.ClaimsWanted(NAMESPACE))
    assert (view.state, view.shown_state) == ("Held", "Held (ReleaseRequested)")
    trial = replace(wanted, dry_run=True)
    assert await release_work.withdraw(server.client, await explained(server), trial) == 0
    assert RELEASE_ANNOTATION in marks(server)
    assert await release_work.withdraw(server.client, await explained(server), wanted) == 0
    assert marks(server) == {}
    assert capsys.readouterr().out.splitlines() == [
        "the request to release claim ml/slice would be withdrawn (dry run)",
        "the request to release claim ml/slice is withdrawn",
    ]


async def test_a_claim_that_is_released_anyway_gets_no_request_that_lies_in_wait(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server.started()
    reference = server.deployment()
    server.claim("slice", reference)
    server.pod("a")
    server.reservation("one", status=server.held_status(reference) | {"observedGeneration": 1})
    server.withdraw("one")
    seen = {"status": {"observedGeneration": 2, "consumers": 1}}
    server.admin.patch("claimreservations", NAMESPACE, "one", seen, "status")
    session = Session(server.client, server.clock, NAMESPACE, server.spoiling)
    wanted = ReleaseWanted("slice", False, None, Output.TABLE)
    assert await release_work.release(session, wanted) == 0
    assert marks(server) == {}
    text = capsys.readouterr().out
    assert text.startswith(
        "claim ml/slice is being released already (Withdrawn): nothing to ask for\n"
    )
    assert text.endswith("the release goes on (Withdrawn)\n")


async def test_who_withdraws_a_request_learns_that_the_release_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server.started()
    idle(server)
    ended = {"spec": {"retentionPolicy": "WhileRunning", "idleTimeoutSeconds": 0}}
    server.admin.patch("claimreservations", NAMESPACE, "train", ended)
    since = {"status": {"idleSince": "2026-01-01T00:00:00Z"}}
    server.admin.patch("claimreservations", NAMESPACE, "train", since, "status")
    await release_work.ask(server.client, await explained(server))
    wanted = ReleaseWanted("slice", False, None, Output.TABLE, cancel=True)
    assert await release_work.withdraw(server.client, await explained(server), wanted) == 0
    assert capsys.readouterr().out == (
        "the request to release claim ml/slice is withdrawn; the claim is released all the same "
        "(Idle)\n"
    )


async def test_who_stops_waiting_learns_how_to_withdraw_the_request(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server.started()
    server.claim("slice", server.deployment())
    server.reservation("one")
    session = Session(server.client, server.clock, NAMESPACE, server.spoiling)
    explanation = await explained(server)
    waiting = asyncio.create_task(release_work.until_free(session, explanation, 0.0))
    await server.clock.sleep(1)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert capsys.readouterr().err.endswith(
        "the request stays; withdraw it with `claimctl release --cancel slice -n ml`\n"
    )
