"""The claim of a record as it is now, and a list that is written only over what was read."""

from __future__ import annotations

import pytest

from claimctl.downgrade.plan_run import PlanRun, write_list
from claimctl.kube.errors import Conflict
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import DowngradedClaim, DowngradePlan, DowngradePlanStatus
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.claim_server import NAMESPACE, Server

TRAIN = Reference(api_group="apps", resource="deployments", name="train", uid="d-1")


def record(uid: str) -> DowngradedClaim:
    return DowngradedClaim(
        namespace=NAMESPACE, name="slice", uid=uid, replaced_references=(TRAIN,), state="Pending"
    )


async def stored(server: Server) -> ResourceClaim:
    return await server.client.get(RESOURCECLAIMS, "slice", NAMESPACE)


async def read(server: Server, uid: str) -> tuple[dict[str, ResourceClaim], DowngradedClaim]:
    """The claim of a record as it is now, and the record after that."""
    plan = DowngradePlan(status=DowngradePlanStatus(claims=(record(uid),)))
    run = PlanRun(server.client, plan, server.clock, writes=False)
    return await run.read([uid]), run.records[uid]


async def test_the_claim_with_the_recorded_uid_is_returned() -> None:
    server = Server.started()
    server.claim()
    claim = await stored(server)
    claims, _ = await read(server, claim.metadata.uid)
    assert claims == {claim.metadata.uid: claim}


@pytest.mark.parametrize("exists", [False, True], ids=["gone", "another with the name"])
async def test_a_claim_that_is_gone_ends_its_record(exists: bool) -> None:
    server = Server.started()
    if exists:
        server.claim()
    claims, found = await read(server, "old")
    assert claims == {}
    assert (found.state, found.replaced_references) == ("Unchanged", ())


async def test_a_claim_that_cannot_be_read_keeps_its_references_on_record() -> None:
    server = Server.started()
    server.claim()
    uid = (await stored(server)).metadata.uid
    server.spoil("resourceclaims", "slice")
    claims, found = await read(server, uid)
    assert claims == {}
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
