"""Client, informer, leases and events against the embedded server's core, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from random import Random
from typing import TypeVar

import pytest
from kube_in_process.api_server import handler_of
from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.runtime.local import ApiFor
from kube_in_process.storage.requests import Actor, Fault, FaultPoint

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import AlreadyExists, Conflict, Invalid, NotFound, Unreachable
from claimctl.kube.events import EventRecorder
from claimctl.kube.informer import Change, Informer
from claimctl.kube.leases import LeaderElection, LeaderElectionSettings
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.coordination import ObjectReference
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import EVENTS, LEASES, RESOURCECLAIMS

T = TypeVar("T")
EPOCH = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


class EmbeddedCore:
    """The core of an embedded cluster with no component at work, and a client of it."""

    def __init__(self) -> None:
        self.clock = LoopClock(EPOCH)
        self.api = Cluster(ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD), self.clock).api
        self.handler = handler_of(self.api)
        self.client = Client(self.handler, self.clock, rng=Random(1))
        self.other = ApiFor(self.api, Actor("other"))
        self.other.create("namespaces", {"metadata": {"name": "ns"}})

    def claim(self, name: str) -> None:
        self.other.create("resourceclaims", {"metadata": {"name": name, "namespace": "ns"}})

    def label(self, name: str, value: str) -> None:
        self.other.patch("resourceclaims", "ns", name, {"metadata": {"labels": {"l": value}}})


@pytest.fixture
@asynccontextmanager
async def server() -> AsyncIterator[EmbeddedCore]:
    yield EmbeddedCore()  # noqa: PT022 - it has to be made on the loop of the test


async def test_an_object_is_created_read_listed_changed_and_deleted(server: EmbeddedCore) -> None:
    client = server.client
    made = await client.create(RESOURCECLAIMS, {"metadata": {"name": "c"}}, "ns")
    with pytest.raises(AlreadyExists):
        await client.create(RESOURCECLAIMS, {"metadata": {"name": "c"}}, "ns")
    version = made.metadata.resource_version
    patch = {"metadata": {"labels": {"a": "b"}}}
    changed = await client.merge_patch(
        RESOURCECLAIMS, ObjectMeta(name="c", namespace="ns", resource_version=version), patch
    )
    assert changed.metadata.labels == {"a": "b"}
    with pytest.raises(Conflict):
        await client.merge_patch(
            RESOURCECLAIMS, ObjectMeta(name="c", namespace="ns", resource_version=version), patch
        )
    assert await client.get(RESOURCECLAIMS, "c", "ns") == changed
    found = await client.list(RESOURCECLAIMS, label_selector="a=b")
    assert [item.metadata.uid for item in found.items] == [changed.metadata.uid]
    with pytest.raises(Conflict):
        await client.delete(RESOURCECLAIMS, "c", "ns", uid="another")
    await client.delete(RESOURCECLAIMS, "c", "ns", uid=changed.metadata.uid)
    with pytest.raises(NotFound):
        await client.get(RESOURCECLAIMS, "c", "ns")


async def test_a_dry_run_answers_as_if_and_changes_nothing(server: EmbeddedCore) -> None:
    body = {"metadata": {"name": "c"}}
    await server.client.create(RESOURCECLAIMS, body, "ns", dry_run=True)
    assert (await server.client.list(RESOURCECLAIMS)).items == ()


async def test_a_refusal_says_why(server: EmbeddedCore) -> None:
    with pytest.raises(Invalid, match=r"^POST /apis/resource.k8s.io/.*: 422 Invalid: .*name"):
        await server.client.create(RESOURCECLAIMS, {"metadata": {"name": "A_B"}}, "ns")


async def test_a_connection_that_breaks_without_a_socket_is_unreachable(
    server: EmbeddedCore,
) -> None:
    server.handler.fault = lambda point: Fault(drop=True)
    with pytest.raises(Unreachable, match="connection lost") as caught:
        await server.client.create(RESOURCECLAIMS, {"metadata": {"name": "c"}}, "ns")
    assert caught.value.delivered


async def followed(
    server: EmbeddedCore, act: Callable[[], Awaitable[None]]
) -> tuple[list[tuple[str, bool, bool]], Informer[ResourceClaim]]:
    """What an informer tells while ``act`` runs: name, whether it is there, whether by a list."""
    told: list[tuple[str, bool, bool]] = []

    def hear(change: Change[ResourceClaim]) -> None:
        told.append((change.name, change.new is not None, change.relist))

    informer = Informer(server.client, RESOURCECLAIMS, server.clock, rng=Random(2))
    informer.subscribe(hear)
    task = asyncio.create_task(informer.run())
    await informer.wait_synced()
    await act()
    task.cancel()
    return told, informer


async def test_an_informer_follows_creation_change_and_deletion(server: EmbeddedCore) -> None:
    server.claim("a")

    async def act() -> None:
        await asyncio.sleep(1)
        server.claim("b")
        server.label("a", "x")
        server.other.delete("resourceclaims", "ns", "a")
        await asyncio.sleep(1)

    told, informer = await followed(server, act)
    assert told == [
        ("a", True, True),
        ("b", True, False),
        ("a", True, False),
        ("a", False, False),
    ]
    assert [claim.metadata.name for claim in informer.items()] == ["b"]


async def test_an_informer_lists_more_than_a_page(server: EmbeddedCore) -> None:
    for number in range(1201):
        server.claim(f"c{number:04}")

    async def act() -> None:
        return None

    told, informer = await followed(server, act)
    assert len(told) == len(informer) == 1201


async def test_an_informer_comes_through_a_compaction_without_missing_anything(
    server: EmbeddedCore,
) -> None:
    server.claim("a")
    server.claim("b")
    down = True

    def fault(point: FaultPoint) -> Fault | None:
        return Fault(drop=True) if down and point.verb == "watch" else None

    async def act() -> None:
        nonlocal down
        server.handler.fault = fault
        await asyncio.sleep(5)
        server.other.delete("resourceclaims", "ns", "a")
        server.claim("c")
        server.api.store.compact()
        down = False
        await asyncio.sleep(60)
        server.label("c", "y")
        await asyncio.sleep(1)

    server.handler.fault = fault
    told, informer = await followed(server, act)
    assert told == [
        ("a", True, True),
        ("b", True, True),
        ("c", True, True),
        ("a", False, True),
        ("c", True, False),
    ]
    assert [claim.metadata.name for claim in informer.items()] == ["b", "c"]


def states(claims: Iterable[ResourceClaim]) -> list[tuple[str, str, str, dict[str, str] | None]]:
    return sorted(
        (
            claim.metadata.name,
            claim.metadata.uid,
            claim.metadata.resource_version,
            claim.metadata.labels,
        )
        for claim in claims
    )


@pytest.mark.parametrize("seed", range(5))
async def test_whatever_breaks_the_copy_ends_equal_to_the_server(
    server: EmbeddedCore, seed: int
) -> None:
    rng = Random(seed)
    names = [f"c{number}" for number in range(8)]
    quiet = False

    def fault(point: FaultPoint) -> Fault | None:
        if quiet or rng.random() < 0.4:
            return None
        return rng.choice(
            [Fault(drop=True), Fault(status=500), Fault(cut_after=2), Fault(delay=3.0)]
        )

    async def act() -> None:
        nonlocal quiet
        for _ in range(200):
            name = rng.choice(names)
            if server.other.find("resourceclaims", "ns", name) is None:
                server.claim(name)
            elif rng.random() < 0.4:
                server.other.delete("resourceclaims", "ns", name)
            else:
                server.label(name, str(rng.random()))
            if rng.random() < 0.05:
                server.api.store.compact()
            await asyncio.sleep(rng.choice([0, 0.1, 5]))
        quiet = True
        await asyncio.sleep(120)

    server.handler.fault = fault
    _, informer = await followed(server, act)
    quiet = True
    found = await server.client.list(RESOURCECLAIMS)
    assert states(informer.items()) == states(found.items)
    assert len(found.items) > 1


async def test_two_candidates_hand_over_a_real_lease(server: EmbeddedCore) -> None:
    settings = LeaderElectionSettings("l", "ns")
    led: list[str] = []

    def candidate(name: str) -> asyncio.Task[None]:
        async def lead() -> None:
            led.append(name)
            await asyncio.Event().wait()

        election = LeaderElection(server.client, server.clock, settings, name, rng=Random(name))
        return asyncio.create_task(election.run(lead))

    first = candidate("a")
    await asyncio.sleep(1)
    second = candidate("b")
    await asyncio.sleep(60)
    first.cancel()
    await asyncio.sleep(5)
    second.cancel()
    await asyncio.sleep(1)
    lease = await server.client.get(LEASES, "l", "ns")
    assert lease.spec.holder_identity == ""
    assert lease.spec.lease_transitions == 1
    assert led == ["a", "b"]


async def test_events_pass_the_servers_checks_and_repeats_are_counted_in_one(
    server: EmbeddedCore,
) -> None:
    recorder = EventRecorder(server.client, server.clock, "claimctl.io/controller", "pod-1")
    regarding = ObjectReference(kind="ResourceClaim", namespace="ns", name="c", uid="u")
    task = asyncio.create_task(recorder.run())
    for _ in range(3):
        recorder.record(regarding, type="Normal", reason="Reserved", note="held", action="Reserve")
        await asyncio.sleep(1)
    task.cancel()
    await recorder.drain()
    (event,) = (await server.client.list(EVENTS, "ns")).items
    assert (event.reason, event.note, event.regarding) == ("Reserved", "held", regarding)
    assert event.series is not None
    assert event.series.count == 3
