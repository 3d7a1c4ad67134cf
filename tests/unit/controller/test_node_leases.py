"""Watching nodes for signs of life while ghosts wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from claimctl.controller import node_leases
from claimctl.controller.keys import ClaimKey
from claimctl.controller.node_leases import (
    MOST_WATCHED,
    NO_LEASE_LOOK_SECONDS,
    READS_PER_SECOND,
    NodeLeases,
)
from claimctl.controller.observations.observations import Observations
from claimctl.kube.informer import Change
from claimctl.reservation.facts.memory import SignsOfLife
from claimctl.wire.coordination import micro_time
from claimctl.wire.nodes import NODE_LEASES, OUT_OF_SERVICE, Taint
from claimctl.wire.resources import NODES
from tests.support.builders import CLAIM, NAMESPACE, after, node, running
from tests.support.claim_server import Server
from tests.support.seen_ghosts import signs_of

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
        self.server.admin.create("nodes", {"metadata": {"name": "node-0"}})
        self.report(ready="True")

    def report(self, *, ready: str) -> None:
        """Let the kubelet report its status; the cache of nodes does not show it."""
        ready_condition = {"type": "Ready", "status": ready}
        self.server.admin.patch(
            "nodes", "", "node-0", {"status": {"conditions": [ready_condition]}}, "status"
        )

    def lease(self, at: float) -> None:
        body = {"spec": {"holderIdentity": "node-0", "renewTime": micro_time(after(at))}}
        if at:
            self.server.admin.patch("leases", NODE_LEASES, "node-0", body)
        else:
            made = {"metadata": meta("node-0", NODE_LEASES), **body}
            self.server.admin.create("leases", made)

    def vanish(self) -> None:
        """Let a pod vanish now."""
        version = self.server.admin.create("configmaps", {"metadata": meta("now", NAMESPACE)})
        self.server.admin.delete("configmaps", NAMESPACE, "now")
        pod = running("a")
        at = version["metadata"]["resourceVersion"]
        gone = replace(pod, metadata=replace(pod.metadata, resource_version=at))
        self.seen.ghosts.observe(gone, None)

    async def renew(self, *pauses: float) -> None:
        """Let the kubelet renew the Lease after each of these pauses."""
        for pause in pauses:
            await self.server.clock.sleep(pause)
            self.lease((self.server.clock.now() - after(0)).total_seconds())


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


async def test_a_ghost_on_a_node_that_lives_ends_after_its_grace_and_two_renewals() -> None:
    async with watched() as on:
        on.vanish()
        await on.renew(10, 10, 10, 10, 10)
        assert on.changed == []
        await on.renew(10)
        await on.server.clock.sleep(2)
        assert set(on.changed) == {KEY}
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert signs.ended
        assert on.seen.ghosts.signs.nodes_to_watch() == {}


async def test_a_late_cache_of_nodes_does_not_hide_that_the_runtime_is_down() -> None:
    async with watched() as on:
        on.vanish()
        on.report(ready="False")
        await on.renew(*[10] * 30)
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert not signs.ended


async def test_reports_of_the_status_do_not_prolong_the_wait() -> None:
    async with watched() as on:
        on.vanish()
        for _ in range(6):
            on.report(ready="True")
            await on.renew(10)
        await on.server.clock.sleep(2)
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert signs.ended


async def test_a_start_prolongs_the_wait_once() -> None:
    async with watched() as on:
        on.vanish()
        await on.renew(10, 3, *[10] * 11)
        assert on.changed == []
        await on.renew(10)
        await on.server.clock.sleep(2)
        assert set(on.changed) == {KEY}


async def test_a_start_that_keeps_to_the_rhythm_shows_in_the_slices() -> None:
    async with watched() as on:
        spec = {"driver": "x", "nodeName": "node-0", "pool": {"name": "p", "resourceSliceCount": 1}}
        for name in "ab":
            piece = {"metadata": {"name": name}, "spec": {**spec, "devices": []}}
            on.server.admin.create("resourceslices", piece)
        on.vanish()
        await on.renew(10, 10)
        await on.server.clock.sleep(5)
        on.server.admin.delete("resourceslices", "", "a")
        on.server.admin.create("resourceslices", {**piece, "metadata": {"name": "a"}})
        await on.renew(5)
        await on.server.clock.sleep(1)
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert signs.start_age is not None
        assert signs.start_age <= 1
        on.server.admin.create("resourceslices", {**piece, "metadata": {"name": "c"}})
        await on.renew(9)
        await on.server.clock.sleep(1)
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert signs.start_age is not None
        assert signs.start_age == 11


async def test_a_ghost_waits_until_its_driver_is_back_and_each_turn_is_told() -> None:
    async with watched() as on:
        on.seen.ghosts.signs.drivers_on = lambda key, node: frozenset({"x"})
        spec = {"driver": "x", "nodeName": "node-0", "pool": {"name": "p", "resourceSliceCount": 1}}
        piece = {"metadata": {"name": "a"}, "spec": {**spec, "devices": []}}
        on.server.admin.create("resourceslices", piece)
        on.vanish()
        await on.renew(10, 10)
        on.changed.clear()
        on.server.admin.delete("resourceslices", "", "a")
        await on.renew(*[10] * 30)
        assert on.changed == [KEY]
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert signs.away == ("x",)
        assert not signs.ended
        on.changed.clear()
        on.server.admin.create("resourceslices", piece)
        await on.renew(10, 10)
        assert on.changed == [KEY]
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert not signs.away
        await on.renew(*[10] * 8)
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert not signs.ended
        await on.renew(10, 10)
        await on.server.clock.sleep(2)
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert signs.ended


async def test_a_node_is_read_less_often_while_each_of_its_ghosts_waits_for_a_driver() -> None:
    async with watched() as on:
        on.vanish()
        await on.renew(10, 10)
        living = reads(on)
        await on.renew(10)
        assert len(living) >= 9
        on.seen.ghosts.signs.drivers_on = lambda key, node: frozenset({"x"})
        await on.renew(10)
        lacking = reads(on)
        await on.renew(*[10] * 10)
        assert 18 <= len(lacking) <= 24


async def test_a_second_node_is_looked_at_as_soon_as_a_pod_of_it_vanishes() -> None:
    """A start before the first look would need another minute."""
    async with watched() as on:
        on.vanish()
        await on.server.clock.sleep(3.5)
        other = running("b", node="node-1")
        on.seen.ghosts.observe(other, None)
        await on.server.clock.sleep(0.01)
        assert on.seen.kubelets.signs("node-1", 3.5, "") is not None


async def test_a_ghost_on_a_silent_node_stays_and_is_told_once() -> None:
    async with watched() as on:
        on.vanish()
        await on.server.clock.sleep(3600)
        assert on.changed == [KEY]
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert not signs.ended
        assert on.seen.ghosts.signs.nodes_to_watch() == {"node-0": 1}


async def test_a_node_without_a_lease_gives_no_signs() -> None:
    async with watched(lease=False) as on:
        on.vanish()
        await on.server.clock.sleep(NO_LEASE_LOOK_SECONDS)
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert signs == SignsOfLife(missing_age=NO_LEASE_LOOK_SECONDS)
        assert on.changed == []


async def test_a_node_that_an_administrator_tainted_as_out_of_service_runs_nothing() -> None:
    async with watched() as on:
        on.vanish()
        await on.server.clock.sleep(3)
        off = node(taints=(Taint(key=OUT_OF_SERVICE, effect="NoExecute"),))
        on.seen.node_changed(Change(NODES, "", "node-0", None, off, relist=False))
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert signs.ended


def crowd(on: Watched, names: list[str]) -> None:
    """Pods of another namespace vanish from these nodes."""
    for name in names:
        gone = running(name, node=name)
        gone = replace(gone, metadata=replace(gone.metadata, namespace="evil"))
        on.seen.ghosts.observe(gone, None)


def reads(on: Watched) -> list[str]:
    """Note from now on which Leases are read."""
    names: list[str] = []
    on.server.upon("get", "leases", lambda number: names.append(str(number)))
    return names


async def test_no_lease_is_read_of_a_node_that_never_was() -> None:
    async with watched() as on:
        on.seen.ghosts.signs.is_node = {"node-0"}.__contains__
        count = reads(on)
        crowd(on, [f"fake-{number}" for number in range(3000)])
        await on.server.clock.sleep(60)
        assert count == []


async def test_ghosts_of_one_namespace_on_many_nodes_delay_no_other() -> None:
    """As many reads are made in a second as are allowed, and those of the victim come first."""
    async with watched() as on:
        count = reads(on)
        crowd(on, [f"b-{number}" for number in range(2 * MOST_WATCHED)])
        await on.server.clock.sleep(3)
        assert len(count) <= 4 * READS_PER_SECOND
        on.vanish()
        await on.renew(7, 10, 10, 10, 10)
        assert on.changed.count(KEY) == 0
        await on.renew(10)
        await on.server.clock.sleep(2)
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert signs.ended


async def test_a_lease_that_is_read_slowly_delays_no_other() -> None:
    async with watched() as on:
        crowd(on, ["a-slow"])
        started = asyncio.Event()

        async def stuck(name: str) -> None:
            started.set()
            await asyncio.Event().wait()

        look = on.leases._look
        on.leases._look = (  # type: ignore[method-assign]
            lambda name: stuck(name) if name == "a-slow" else look(name)
        )
        await started.wait()
        on.vanish()
        await on.renew(*[10] * 6)
        await on.server.clock.sleep(2)
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert signs.ended


def meta(name: str, namespace: str) -> dict[str, str]:
    return {"name": name, "namespace": namespace}


SPEC = {"driver": "x", "nodeName": "node-0", "pool": {"name": "p", "resourceSliceCount": 1}}


def slice_of(name: str, **spec: str) -> dict[str, object]:
    return {"metadata": {"name": name}, "spec": {**SPEC, **spec, "devices": []}}


async def test_a_driver_that_returns_is_there_for_a_minute_more() -> None:
    """A kubelet that was started while it was away, in the rhythm of its renewals, asks it only
    once a minute."""
    async with watched() as on:
        on.seen.ghosts.signs.drivers_on = lambda key, node: frozenset({"x"})
        on.vanish()
        await on.renew(*[10] * 12)
        on.server.admin.create("resourceslices", slice_of("a"))
        await on.renew(*[10] * 9)
        await on.server.clock.sleep(2)
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert (signs.start_age, signs.returned, signs.ended) == (None, True, False)
        await on.renew(8, 10)
        await on.server.clock.sleep(2)
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert signs.ended


async def test_a_slice_that_cannot_be_read_shows_its_driver() -> None:
    async with watched() as on:
        on.seen.ghosts.signs.drivers_on = lambda key, node: frozenset({"x"})
        on.server.admin.create("resourceslices", slice_of("a"))
        on.server.spoil("resourceslices", "a", "spec", "pool")
        on.vanish()
        await on.renew(*[10] * 9)
        await on.server.clock.sleep(2)
        signs = signs_of(on.seen.ghosts.of(KEY))
        assert signs.ended


async def _renew_all(on: Watched, names: list[str]) -> None:
    await on.server.clock.sleep(10)
    spec = {"spec": {"renewTime": micro_time(on.server.clock.now())}}
    for name in names:
        on.server.admin.patch("leases", NODE_LEASES, name, spec)


@pytest.mark.parametrize("silent", [False, True])
async def test_nodes_that_can_wait_are_read_in_turn(
    silent: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that lives again is noticed, however many do not."""
    monkeypatch.setattr("claimctl.controller.node_leases.MOST_WATCHED", 4)
    names = [f"b-{number}" for number in range(8)]
    async with watched() as on:
        on.seen.ghosts.signs.drivers_on = lambda key, node: frozenset({"x"})
        for name in names:
            on.server.admin.create("nodes", {"metadata": {"name": name}})
            ready = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}}
            on.server.admin.patch("nodes", "", name, ready, "status")
            renewed = {"holderIdentity": name, "renewTime": micro_time(after(0))}
            made = {"metadata": meta(name, NODE_LEASES), "spec": renewed}
            on.server.admin.create("leases", made)
        crowd(on, names)
        for _ in range(12):
            await _renew_all(on, [] if silent else names)
        on.server.admin.create("resourceslices", slice_of("a", nodeName=names[-1]))
        for _ in range(30):
            await _renew_all(on, names[-1:] if silent else names)
        assert on.seen.ghosts.signs.nodes_to_watch().keys() == set(names[:-1])


async def test_many_nodes_that_can_wait_take_few_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_leases, "CAN_WAIT_PER_SECOND", 5.0)
    count = 20 * 5
    async with watched() as on:
        crowd(on, [f"b-{number}" for number in range(count)])
        for name in on.seen.ghosts.signs.nodes_to_watch():
            renewed = {"holderIdentity": name, "renewTime": micro_time(after(0))}
            made = {"metadata": meta(name, NODE_LEASES), "spec": renewed}
            on.server.admin.create("leases", made)
        await on.server.clock.sleep(60)
        read = reads(on)
        await on.server.clock.sleep(20)
        assert len(read) <= 21 * 5
