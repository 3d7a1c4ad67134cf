"""Watching nodes for signs of life while ghosts wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.node_leases import NO_LEASE_LOOK_SECONDS, NodeLeases
from claimctl.controller.observations.observations import Observations
from claimctl.kube.informer import Change
from claimctl.reservation.facts.memory import SignsOfLife
from claimctl.wire.coordination import micro_time
from claimctl.wire.nodes import NODE_LEASES, OUT_OF_SERVICE, Taint
from claimctl.wire.pods import Pod
from claimctl.wire.resources import NODES
from tests.support.builders import CLAIM, NAMESPACE, after, node, running
from tests.support.claim_server import Server

KEY = ClaimKey(NAMESPACE, CLAIM)


class Watched:
    """A node with a Lease, its observer, and the claims that are reconciled again."""

    def __init__(self) -> None:
        self.server = Server.started(NAMESPACE, NODE_LEASES)
        self.seen = Observations(self.server.clock)
        self.changed: list[ClaimKey] = []
        self.leases = NodeLeases(
            self.server.client, self.server.clock, self.seen, self.changed.append
        )
        self.seen.kubelets.observe(node(version="1", report=-100))
        self.server.admin.create("nodes", {"metadata": {"name": "node-0"}})
        self.report(ready="True", at=-100)

    def report(self, *, ready: str, at: float) -> None:
        """Let the kubelet report its status; the cache of nodes does not show it."""
        ready_condition = {
            "type": "Ready",
            "status": ready,
            "lastHeartbeatTime": after(at).strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        self.server.admin.patch(
            "nodes", "", "node-0", {"status": {"conditions": [ready_condition]}}, "status"
        )

    def lease(self, at: float) -> None:
        body = {"spec": {"holderIdentity": "node-0", "renewTime": micro_time(after(at))}}
        if at:
            self.server.admin.patch("leases", NODE_LEASES, "node-0", body)
        else:
            meta = {"name": "node-0", "namespace": NODE_LEASES}
            self.server.admin.create("leases", {"metadata": meta, **body})

    def vanish(self) -> None:
        self.seen.ghosts.observe(running("a"), None)

    async def renew(self, seconds: int) -> None:
        """Let the kubelet renew the Lease every 10 s."""
        for _ in range(0, seconds, 10):
            now = (self.server.clock.now() - after(0)).total_seconds()
            self.lease(now + 0.5)
            await self.server.clock.sleep(10)


@asynccontextmanager
async def watched(*, lease: bool = True) -> AsyncIterator[Watched]:
    made = Watched()
    if lease:
        made.lease(0)
    task = asyncio.create_task(made.leases.run())
    try:
        yield made
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_ghost_on_a_node_that_lives_ends_within_35_seconds_and_its_grace() -> None:
    async with watched() as on:
        on.seen.ghosts.observe(_deleted_at("5"), None)
        await on.renew(40)
        assert on.changed == []
        await on.renew(30)
        assert set(on.changed) == {KEY}
        ((_, signs),) = on.seen.ghosts.of(KEY).signs
        assert signs.ended
        assert on.seen.ghosts.nodes_to_watch() == frozenset()


@pytest.mark.parametrize(("ready", "at"), [("False", -100), ("True", 20)])
async def test_a_late_cache_of_nodes_hides_neither_a_start_nor_that_the_runtime_is_down(
    ready: str, at: float
) -> None:
    async with watched() as on:
        on.seen.ghosts.observe(_deleted_at("5"), None)
        on.report(ready=ready, at=at)
        await on.renew(80)
        ((_, signs),) = on.seen.ghosts.of(KEY).signs
        assert not signs.ended


async def test_a_ghost_on_a_silent_node_stays_and_is_told_once() -> None:
    async with watched() as on:
        on.seen.ghosts.observe(_deleted_at("5"), None)
        await on.server.clock.sleep(3600)
        assert on.changed == [KEY]
        ((_, signs),) = on.seen.ghosts.of(KEY).signs
        assert not signs.ended
        assert on.seen.ghosts.nodes_to_watch() == {"node-0"}


async def test_a_node_without_a_lease_gives_no_signs() -> None:
    async with watched(lease=False) as on:
        on.vanish()
        await on.server.clock.sleep(NO_LEASE_LOOK_SECONDS)
        ((_, signs),) = on.seen.ghosts.of(KEY).signs
        assert signs == SignsOfLife(missing_age=NO_LEASE_LOOK_SECONDS)
        assert on.changed == []


async def test_a_node_that_an_administrator_tainted_as_out_of_service_runs_nothing() -> None:
    async with watched() as on:
        on.vanish()
        await on.server.clock.sleep(3)
        off = node(taints=(Taint(key=OUT_OF_SERVICE, effect="NoExecute"),))
        on.seen.node_changed(Change(NODES, "", "node-0", None, off, relist=False))
        ((_, signs),) = on.seen.ghosts.of(KEY).signs
        assert signs.ended


def _deleted_at(version: str) -> Pod:
    pod = running("a")
    return replace(pod, metadata=replace(pod.metadata, resource_version=version))
