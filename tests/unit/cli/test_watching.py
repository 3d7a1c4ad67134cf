"""``-w`` and ``--wait``: what is printed after which change, and when it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable

import pytest
from kube_in_process.storage.requests import DeleteOptions, Fault, FaultPoint

from claimctl.cli.formats import Output
from claimctl.cli.objects import CLAIM
from claimctl.cli.session import Session
from claimctl.cli.watching import AGAIN_SECONDS, changes, pause
from claimctl.commands.claims import explain_work, get_work, release_work
from claimctl.commands.claims.explanation import explain_with_controller
from claimctl.commands.claims.get_work import ClaimsWanted
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.claim_server import NAMESPACE, Server
from tests.support.diagnosing import elected

LABEL = {"metadata": {"labels": {"a": "b"}}}


def session(server: Server) -> Session:
    return Session(server.client, server.clock, NAMESPACE, server.spoiling)


async def during(watch: Awaitable[None], *acts: Callable[[], object]) -> None:
    """Let the watch run, do one thing every 10 seconds, and end it."""
    task = asyncio.ensure_future(watch)
    for act in acts:
        await asyncio.sleep(10)
        act()
    await asyncio.sleep(10)
    assert not task.done()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def freed(server: Server, name: str = "slice") -> None:
    status = {"status": {"allocation": None, "reservedFor": None}}
    server.admin.patch("resourceclaims", NAMESPACE, name, status, "status")


async def test_get_prints_all_claims_then_those_that_changed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server.started()
    server.claim("slice", server.deployment())
    server.claim("still", {"resource": "pods", "name": "p", "uid": "u"})
    watch = get_work.follow(server.client, server.clock, ClaimsWanted(NAMESPACE), Output.TABLE)
    await during(
        watch,
        lambda: freed(server),
        lambda: server.admin.patch("resourceclaims", NAMESPACE, "still", LABEL),
        lambda: server.admin.delete("resourceclaims", NAMESPACE, "slice"),
    )
    lines = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        ["NAME", "STATE"],
        ["slice", "Held"],
        ["still", "InUse"],
        ["slice", "Pending"],
        ["claim", "ml/slice"],
    ]


async def test_get_prints_documents_after_each_change(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server.started()
    server.claim("slice", server.deployment())
    watch = get_work.follow(server.client, server.clock, ClaimsWanted(NAMESPACE), Output.JSON)
    await during(watch, lambda: freed(server))
    text = capsys.readouterr().out
    first, end = json.JSONDecoder().raw_decode(text)
    second = json.loads(text[end:])
    assert [each["items"][0]["state"] for each in (first, second)] == ["Held", "Pending"]


async def test_explain_prints_again_only_if_something_is_different(
    capsys: pytest.CaptureFixture[str],
) -> None:
    server = Server.started()
    server.claim("slice", server.deployment())
    await during(
        explain_work.follow(session(server), NAMESPACE, CLAIM, "slice", Output.TABLE),
        lambda: server.admin.patch("resourceclaims", NAMESPACE, "slice", LABEL),
        lambda: freed(server),
    )
    before, after = capsys.readouterr().out.split("---\n")
    assert "State:      Held" in before
    assert "State:      Pending" in after


async def test_changes_are_seen_where_a_watch_is_forbidden() -> None:
    server = Server.started()

    def hook(point: FaultPoint) -> Fault | None:
        return Fault(status=403, reason="Forbidden") if point.verb == "watch" else None

    server.handler.fault = hook
    began, looks = server.clock.monotonic(), 0
    async with changes(server.client, server.clock, NAMESPACE, (RESOURCECLAIMS,)) as each:
        async for _ in each:
            looks += 1
            if looks == 3:
                break
    assert server.clock.monotonic() - began >= AGAIN_SECONDS


async def test_a_broken_watch_goes_on_and_counts_as_a_change() -> None:
    server = Server.started()
    server.upon("watch", "resourceclaims", lambda n: Fault(drop=True) if n == 1 else None)
    async with changes(server.client, server.clock, NAMESPACE, (RESOURCECLAIMS,)) as each:
        looks = 0
        async for _ in each:
            looks += 1
            if looks == 2:
                server.claim("slice")
            if looks == 3:
                return


async def waiting(server: Server, limit: float) -> int:
    asked = await explain_with_controller(server.client, NAMESPACE, "slice", server.clock)
    return await release_work.until_free(session(server), asked, limit)


def idle(server: Server) -> None:
    elected(server)
    reference = server.deployment(replicas=0)
    server.claim("slice", reference)
    server.pod("last")
    status = server.held_status(reference) | {"observedGeneration": 1, "consumers": 1}
    server.reservation(status=status, retentionPolicy="Persistent")


async def test_wait_ends_when_the_devices_are_free(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server.started()
    idle(server)
    task = asyncio.ensure_future(waiting(server, 300))
    await asyncio.sleep(10)
    server.admin.delete("pods", NAMESPACE, "last", DeleteOptions(grace_period_seconds=0))
    await asyncio.sleep(10)
    assert not task.done()
    freed(server)
    assert await task == 0
    out, err = capsys.readouterr()
    assert out == "claim ml/slice is released\n"
    assert err == "waits: the controller releases it\n"


async def test_wait_ends_with_findings_after_its_time(capsys: pytest.CaptureFixture[str]) -> None:
    server = Server.started()
    idle(server)
    assert await waiting(server, 60) == 3
    assert "claim ml/slice is still allocated after 60 s; the request stays" in (
        capsys.readouterr().err
    )


async def test_a_claim_that_is_gone_counts_as_released() -> None:
    server = Server.started()
    idle(server)
    task = asyncio.ensure_future(waiting(server, 300))
    await asyncio.sleep(10)
    freed(server)
    server.admin.delete("resourceclaims", NAMESPACE, "slice")
    assert await task == 0


@pytest.mark.parametrize(
    ("waited", "took", "seconds"),
    [(0.0, 0.01, 0.25), (0.25, 0.01, 0.25), (1.5, 0.01, 1.5), (600.0, 0.01, 2.0), (0.5, 7.0, 7.0)],
)
def test_a_command_looks_again_soon_at_first_and_never_more_than_half_of_the_time(
    waited: float, took: float, seconds: float
) -> None:
    assert pause(waited, took) == seconds
