"""A change is decided on the object as it is, and anew if another client was faster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from claimctl.kube.errors import Conflict
from claimctl.live_objects import CHANGE_TRIES, Changed, change_object
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.claim_server import NAMESPACE, Server

CLAIM = "slice"

LABELLED = {"metadata": {"labels": {"asked": "yes"}}}


class Asked:
    """A change that somebody else overtakes a few times."""

    def __init__(self, server: Server, patch: Mapping[str, Any], overtaken: int = 0) -> None:
        self.server, self.patch, self.overtaken, self.seen = server, patch, overtaken, 0

    def __call__(self, found: ResourceClaim) -> Mapping[str, Any]:
        self.seen += 1
        if self.seen <= self.overtaken:
            label = {"metadata": {"labels": {"other": str(self.seen)}}}
            self.server.admin.patch("resourceclaims", NAMESPACE, CLAIM, label)
        return self.patch


async def changed(server: Server, asked: Asked, name: str = CLAIM) -> Changed:
    return await change_object(server.client, RESOURCECLAIMS, name, asked, NAMESPACE)


def started() -> Server:
    server = Server.started()
    server.claim()
    return server


async def test_it_is_written_or_needs_nothing_or_is_gone() -> None:
    server = started()
    assert await changed(server, Asked(server, {})) is Changed.SAME
    assert await changed(server, Asked(server, LABELLED), "none") is Changed.GONE
    assert await changed(server, Asked(server, LABELLED)) is Changed.WRITTEN
    claim = server.admin.get("resourceclaims", NAMESPACE, CLAIM)
    assert claim["metadata"]["labels"] == {"asked": "yes"}


async def test_it_is_decided_anew_after_each_conflict() -> None:
    server = started()
    asked = Asked(server, LABELLED, overtaken=CHANGE_TRIES - 1)
    assert await changed(server, asked) is Changed.WRITTEN
    assert asked.seen == CHANGE_TRIES


async def test_it_gives_up_at_last() -> None:
    server = started()
    with pytest.raises(Conflict):
        await changed(server, Asked(server, LABELLED, overtaken=CHANGE_TRIES))
