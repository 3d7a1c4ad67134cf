"""Owners of owners, read one at a time."""

from __future__ import annotations

from claimctl.controller.caches.chains import Chains, Climber, PodKey
from claimctl.controller.keys import WorkloadKey
from claimctl.wire.meta import OwnerReference
from tests.e2e.kinds import DEFINITIONS, GANGS, definition
from tests.support.claim_server import Server

KEY = WorkloadKey("acme.example", "Gang", "ml", "inner")


class Noting(Chains):
    """Chains that only note what is known."""

    def __init__(self) -> None:
        self.known: dict[str, OwnerReference | None] = {}

    def remember(self, uid: str, owner: OwnerReference | None) -> None:
        self.known[uid] = owner


def reference(uid: str) -> OwnerReference:
    return OwnerReference(api_version="acme.example/v1", kind="Gang", name="inner", uid=uid)


async def climbed(climber: Climber, uid: str) -> OwnerReference | None:
    """What is above the object, read for two pods at once; another one had asked before."""
    told, chains = list[PodKey](), climber.chains
    climber.resolved = told.extend
    assert not await climber.read(KEY)
    climber.ask(KEY, reference("u-other"), ("stranger", "ml"))
    climber.ask(KEY, reference(uid), ("pod-a", "ml"))
    climber.ask(KEY, reference(uid), ("pod-b", "ml"))
    assert await climber.read(KEY)
    assert not await climber.read(KEY)
    assert sorted(told) == [("pod-a", "ml"), ("pod-b", "ml"), ("stranger", "ml")]
    assert isinstance(chains, Noting)
    return chains.known[uid]


async def test_the_owner_of_an_owner() -> None:
    server, chains = Server.started("ml"), Noting()
    climber = Climber(server.client, chains)
    assert await climbed(climber, "u") is None
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
