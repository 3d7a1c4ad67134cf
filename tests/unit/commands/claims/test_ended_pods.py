"""Statements that pods which vanished have ended."""

from __future__ import annotations

import pytest

from claimctl.cli.errors import CommandFailed
from claimctl.cli.formats import Output
from claimctl.commands.claims.ended_pods import state_ended
from claimctl.commands.claims.explanation import explain
from claimctl.commands.claims.release_request import ReleaseWanted
from claimctl.wire.reservations import ENDED_PODS_ANNOTATION
from tests.support.claim_server import NAMESPACE, Server

GHOSTS = [
    {"uid": "a", "name": "pod-a", "nodeName": "node-1"},
    {"uid": "b", "name": "pod-b", "nodeName": "node-2"},
]


async def state(server: Server, wanted: ReleaseWanted) -> int:
    explanation = await explain(server.client, NAMESPACE, "slice", server.clock.now())
    return await state_ended(server.client, explanation, wanted)


async def say_off(server: Server, node: str, *, dry_run: bool = False) -> int:
    wanted = ReleaseWanted("slice", dry_run, None, Output.TABLE, node_is_off=node)
    return await state(server, wanted)


def with_ghosts() -> Server:
    server = Server.started()
    server.claim()
    server.reservation("one")
    status = {"status": {"forceDeletedPods": GHOSTS}}
    server.admin.patch("claimreservations", NAMESPACE, "one", status, "status")
    return server


async def say_ended(server: Server, pod: str) -> int:
    wanted = ReleaseWanted("slice", False, None, Output.TABLE, pod_has_ended=pod)
    return await state(server, wanted)


def stated_in(server: Server) -> list[str]:
    """The entries of the annotation."""
    meta = server.admin.get("claimreservations", NAMESPACE, "one")["metadata"]
    value = meta.get("annotations", {}).get(ENDED_PODS_ANNOTATION, "")
    return [entry for entry in value.split(",") if entry]


def statements(server: Server) -> list[str]:
    """The statements, without the versions that only the server knows."""
    return [entry.split("@")[0] for entry in stated_in(server)]


async def test_a_statement_that_a_node_is_off_names_the_pods_that_vanished_from_it() -> None:
    server = with_ghosts()
    assert await say_off(server, "node-1", dry_run=True) == 0
    assert stated_in(server) == []
    for node in ("node-1", "node-1", "node-2"):
        assert await say_off(server, node) == 0
    assert statements(server) == ["a", "b", "node/node-1", "node/node-2"]


async def test_a_statement_counts_until_now_and_no_longer() -> None:
    server = with_ghosts()
    assert await say_off(server, "node-9") == 0
    (entry,) = stated_in(server)
    revision = server.handler.api.store.revision
    assert entry == f"node/node-9@{revision - 1}", "the write of the annotation came next"


@pytest.mark.parametrize(
    ("pod", "stated"),
    [("pod-a", ["a", "pod/pod-a"]), ("a", ["a", "pod/a"]), ("*", ["a", "b", "pod/*"])],
)
async def test_a_statement_that_a_pod_has_ended_names_it_by_name_or_uid(
    pod: str, stated: list[str]
) -> None:
    server = with_ghosts()
    assert await say_ended(server, pod) == 0
    assert statements(server) == stated


async def test_no_statement_about_a_pod_that_exists() -> None:
    server = with_ghosts()
    spec = {"containers": [{"name": "main", "image": "x"}]}
    body = {"metadata": {"name": "pod-a", "namespace": NAMESPACE}, "spec": spec}
    server.admin.create("pods", body)
    with pytest.raises(CommandFailed, match="pod ml/pod-a exists: wait until it is gone"):
        await say_ended(server, "pod-a")
    assert stated_in(server) == []


async def test_no_statement_about_a_node_that_is_ready() -> None:
    server = with_ghosts()
    ready = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-03-01T12:00:00Z"}]
    server.admin.create("nodes", {"metadata": {"name": "node-1"}})
    server.admin.patch("nodes", "", "node-1", {"status": {"conditions": ready}}, "status")
    with pytest.raises(CommandFailed, match="node node-1 is ready"):
        await say_off(server, "node-1")
    assert stated_in(server) == []


async def test_no_statement_about_a_claim_that_nothing_reserves() -> None:
    server = Server.started()
    server.claim()
    with pytest.raises(CommandFailed, match="no ClaimReservation names claim ml/slice"):
        await say_ended(server, "pod-a")
