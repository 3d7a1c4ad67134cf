"""Owners of owners, read one at a time."""

from __future__ import annotations

from typing import Any

from claimctl.controller.climbing import Climber
from claimctl.controller.keys import WorkloadKey
from claimctl.wire.meta import OwnerReference
from tests.e2e.kinds import DEFINITIONS, GANGS, definition
from tests.support.claim_server import Server

KEY = WorkloadKey("acme.example", "Gang", "ml", "inner")


class Noting:
    """Chains that only note what is known."""

    def __init__(self) -> None:
        self.known: dict[str, OwnerReference | None] = {}

    def remember(self, uid: str, owner: OwnerReference | None) -> None:
        self.known[uid] = owner


def reference(uid: str) -> OwnerReference:
    return OwnerReference(api_version="acme.example/v1", kind="Gang", name="inner", uid=uid)


async def climbed(server: Server, uid: str) -> tuple[OwnerReference | None, list[Any]]:
    chains: Any = Noting()
    climber, told = Climber(server.client, chains), list[Any]()
    climber.resolved = lambda namespace, owner: told.append((namespace, owner.uid))
    assert not await climber.read(KEY)
    climber.ask(KEY, reference(uid))
    assert await climber.read(KEY)
    assert not await climber.read(KEY)
    return chains.known[uid], told


async def test_the_owner_of_an_owner() -> None:
    server = Server.started("ml")
    assert await climbed(server, "u") == (None, [("ml", "u")])
    await server.client.create(DEFINITIONS, definition(GANGS))
    assert (await climbed(server, "u"))[0] is None
    above = {"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": "u-x", "controller": True}
    body = {
        "apiVersion": "acme.example/v1",
        "kind": "Gang",
        "metadata": {"name": "inner", "ownerReferences": [above]},
    }
    made = await server.client.create(GANGS, body, "ml")
    owner, told = await climbed(server, made.metadata.uid)
    assert owner is not None
    assert (owner.uid, told) == ("u-x", [("ml", made.metadata.uid)])
    assert (await climbed(server, "u-earlier"))[0] is None
