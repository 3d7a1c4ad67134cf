"""The claim of a record as it is now, and a list that is written only over what was read."""

from __future__ import annotations

import pytest

from claimctl.downgrade.claims import read_claim, write_list
from claimctl.kube.errors import Conflict
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import DowngradedClaim
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.claim_server import NAMESPACE, Server

TRAIN = Reference(api_group="apps", resource="deployments", name="train", uid="d-1")


def record(uid: str) -> DowngradedClaim:
    return DowngradedClaim(
        namespace=NAMESPACE, name="slice", uid=uid, replaced_references=(TRAIN,), state="Pending"
    )


async def stored(server: Server) -> ResourceClaim:
    return await server.client.get(RESOURCECLAIMS, "slice", NAMESPACE)


async def test_the_claim_with_the_recorded_uid_is_returned() -> None:
    server = Server.started()
    server.claim()
    claim = await stored(server)
    assert await read_claim(server.client, record(claim.metadata.uid)) == claim


@pytest.mark.parametrize("exists", [False, True], ids=["gone", "another with the name"])
async def test_a_claim_that_is_gone_ends_its_record(exists: bool) -> None:
    server = Server.started()
    if exists:
        server.claim()
    found = await read_claim(server.client, record("old"))
    assert isinstance(found, DowngradedClaim)
    assert (found.state, found.replaced_references) == ("Unchanged", ())


async def test_a_claim_that_cannot_be_read_keeps_its_references_on_record() -> None:
    server = Server.started()
    server.claim()
    uid = (await stored(server)).metadata.uid
    server.spoil("resourceclaims", "slice")
    found = await read_claim(server.client, record(uid))
    assert isinstance(found, DowngradedClaim)
    assert (found.state, found.replaced_references) == ("Failed", (TRAIN,))


async def test_a_list_is_written_if_the_claim_is_as_read() -> None:
    server = Server.started()
    server.claim()
    claim = await stored(server)
    await write_list(server.client, claim, (Reference(resource="pods", name="a", uid="a"),))
    assert server.listed() == ["pods/a"]
    with pytest.raises(Conflict):
        await write_list(server.client, claim, ())
    assert server.listed() == ["pods/a"]


async def test_an_answer_that_cannot_be_read_is_no_failure() -> None:
    server = Server.started()
    server.claim()
    claim = await stored(server)
    server.spoil("resourceclaims", "slice")
    await write_list(server.client, claim, (Reference(resource="pods", name="a", uid="a"),))
    assert server.listed() == ["pods/a"]
