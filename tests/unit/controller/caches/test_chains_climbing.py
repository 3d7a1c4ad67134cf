"""Owners of owners, read one at a time."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from claimctl.controller.caches.chains import Chains, Climber, OwnerKey, PodKey
from claimctl.controller.caches.informers import Caches
from claimctl.controller.keys import WorkloadKey
from claimctl.wire.meta import OwnerReference
from tests.e2e.harness import DEFINITIONS
from tests.e2e.kinds import GANGS, definition
from tests.support.claim_server import Server

KEY = WorkloadKey("acme.example", "Gang", "ml", "inner")
PODS = {("pod-a", "ml"), ("pod-b", "ml"), ("stranger", "ml")}


class NotingChains(Chains):
    """Chains that only note what is known."""

    def __init__(self) -> None:
        self.known: dict[str, OwnerReference | None] = {}
        self.pods = set(PODS)

    def remember(self, owner: OwnerKey, above: OwnerReference | None) -> None:
        assert owner[:4] == ("ml", *KEY[:2], "inner")
        self.known[owner.uid] = above

    def shows(self, pod: PodKey) -> bool:
        return pod in self.pods


def reference(uid: str, name: str = "inner") -> OwnerReference:
    return OwnerReference(api_version="acme.example/v1", kind="Gang", name=name, uid=uid)


async def climbed(climber: Climber, uid: str) -> OwnerReference | None:
    """What is above the object, read for two pods at once; another one had asked before."""
    told, chains = list[PodKey](), climber.chains
    climber.resolved = told.extend
    assert await climber.read(KEY) is None
    climber.ask(KEY, reference("u-other"), ("stranger", "ml"))
    climber.ask(KEY, reference(uid), ("pod-a", "ml"))
    climber.ask(KEY, reference(uid), ("pod-b", "ml"))
    while (seconds := await climber.read(KEY)) is not None:
        assert told == []
        await asyncio.sleep(seconds)
    assert set(told) == PODS
    assert isinstance(chains, NotingChains)
    return chains.known[uid]


async def test_the_owner_of_an_owner() -> None:
    server, chains = Server.started("ml"), NotingChains()
    climber = Climber(server.client, chains)
    assert await climbed(climber, "u") is None
    await asyncio.sleep(1)
    # the kind is served from now on
    await server.client.create(DEFINITIONS, definition(GANGS))
    above = {"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": "u-x", "controller": True}
    body = {
        "apiVersion": "acme.example/v1",
        "kind": "Gang",
        "metadata": {"name": "inner", "ownerReferences": [above]},
    }
    made = await server.client.create(GANGS, body, "ml")
    owner = await climbed(climber, made.metadata.uid)
    assert owner is not None
    assert owner.uid == "u-x"
    assert await climbed(climber, "u-earlier") is None


def counting(server: Server, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of all requests from now on."""
    paths: list[str] = []

    async def send(method: str, path: str, *rest: Any, **more: Any) -> Any:
        paths.append(path)
        return await whole(method, path, *rest, **more)

    whole = server.spoiling.send
    monkeypatch.setattr(server.spoiling, "send", send)
    return paths


async def test_owners_that_are_not_there_cost_few_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that no object can have costs none, and is no error that is told again and again."""
    server, chains = Server.started("ml"), NotingChains()
    await server.client.create(DEFINITIONS, definition(GANGS))
    climber, paths = Climber(server.client, chains), counting(server, monkeypatch)
    names = [f"a/b{number}" for number in range(100)] + [f"gone-{number}" for number in range(100)]
    keys = [WorkloadKey("acme.example", "Gang", "ml", name) for name in names]

    def remember(owner: OwnerKey, above: OwnerReference | None) -> None:
        chains.known[owner.uid] = above

    monkeypatch.setattr(chains, "remember", remember)
    for key in keys:
        climber.ask(key, reference(f"u-{key.name}", key.name), ("pod-a", "ml"))
        if (seconds := await climber.read(key)) is not None:
            await asyncio.sleep(seconds)
            assert await climber.read(key) is None
    assert chains.known == {f"u-{name}": None for name in names}
    objects = [path for path in paths if "/namespaces/" in path]
    assert not any("/b" in path.rpartition("gangs")[2] for path in objects)
    assert len(objects) <= 400
    assert len(paths) - len(objects) <= 2 * 200


async def test_nothing_is_read_for_pods_that_are_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    server, chains = Server.started("ml"), NotingChains()
    climber, paths = Climber(server.client, chains), counting(server, monkeypatch)
    climber.ask(KEY, reference("u"), ("pod-a", "ml"))
    chains.pods.clear()
    assert await climber.read(KEY) is None
    chains.pods.update(PODS)
    assert await climber.read(KEY) is None
    assert (chains.known, paths) == ({}, [])


@pytest.mark.parametrize("name", ["gone", "a/b"])
async def test_an_owner_of_a_kind_that_is_in_every_cluster_is_read_to_an_end(name: str) -> None:
    server, chains = Server.started("ml"), Chains(cast(Caches, SimpleNamespace(pods=Anything())))
    climber, key = Climber(server.client, chains), WorkloadKey("apps", "ReplicaSet", "ml", name)
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=name, uid="u")
    await asyncio.sleep(60)
    climber.ask(key, owner, ("pod-a", "ml"))
    if (seconds := await climber.read(key)) is not None:
        await asyncio.sleep(seconds)
        assert await climber.read(key) is None
    climber.resolved = lambda pods: pytest.fail(f"asked for twice: {pods}")
    assert await climber.read(key) is None


class Anything:
    """A cache that has an object of every name."""

    def get(self, name: str, namespace: str) -> str:
        return name
