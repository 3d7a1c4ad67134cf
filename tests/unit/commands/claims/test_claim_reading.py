"""What one look at a claim takes from its namespace."""

from __future__ import annotations

import pytest
from kube_in_process.storage.requests import Fault

from claimctl.cli.kinds import KindReader
from claimctl.commands.claims.claim_reading import ClaimReading, read_claim, with_devices
from claimctl.kube.errors import NotFound
from claimctl.reservation.facts.snapshot import Snapshot
from tests.support.builders import NOW
from tests.support.claim_server import NAMESPACE, Server


async def reading_of(server: Server, name: str = "slice") -> ClaimReading:
    return await read_claim(server.client, KindReader(server.client), NAMESPACE, name)


def seen(reading: ClaimReading) -> Snapshot:
    return with_devices(
        Snapshot(now=NOW, namespace=NAMESPACE, name="slice", claim=reading.claim), reading
    )


async def test_pods_and_reservations_of_other_claims_are_none_of_it() -> None:
    server = Server.holding()
    server.claim("other")
    server.reservation("other", claim="other")
    mine, stranger = server.pod("a"), server.pod("b", claim="other")
    reading = await reading_of(server)
    assert [pod.metadata.name for pod in reading.pods] == ["a"]
    assert [made.metadata.name for made in reading.reservations] == ["train"]
    assert {claim.metadata.name for claim in reading.claims} == {"slice", "other"}
    # a listed pod that does not name the claim exists all the same
    assert reading.uids == {mine["uid"], stranger["uid"]}


async def test_a_pod_that_cannot_be_read_counts_if_it_may_use_the_claim() -> None:
    server = Server.started()
    server.claim()
    server.claim("other")
    server.spoil("pods", "bad")
    server.spoil("pods", "else")
    bad, stranger = server.pod("bad"), server.pod("else", claim="other")
    reading = await reading_of(server)
    assert [unread.name for unread in reading.unreadable] == ["bad"]
    assert reading.uids == {bad["uid"], stranger["uid"]}
    scanned = reading.scanned(NOW)
    assert (scanned.live.unreadable, scanned.reserved) == (reading.unreadable, True)


async def test_a_reservation_that_cannot_be_read_is_no_pod() -> None:
    server = Server.with_unreadable("claimreservations", "train")
    server.claim()
    server.reservation()
    scanned = (await reading_of(server)).scanned(NOW)
    assert (scanned.live.unreadable, scanned.reserved) == ((), True)


async def test_a_claim_with_neither_devices_nor_pods_needs_no_nodes() -> None:
    server = Server.started()
    server.admin.create("nodes", {"metadata": {"name": "n1"}})
    meta = {"name": "slice", "namespace": NAMESPACE}
    server.admin.create("resourceclaims", {"metadata": meta, "spec": {"devices": {}}})
    assert not seen(await reading_of(server)).nodes
    server.pod("a", node="")
    assert seen(await reading_of(server)).nodes.keys() == {"n1"}


async def test_who_may_list_neither_slices_nor_claims_is_shown_none() -> None:
    server = Server.holding()
    server.handler.fault = lambda point: (
        Fault(status=403, reason="Forbidden")
        if point.verb == "list" and point.plural in ("resourceslices", "resourceclaims")
        else None
    )
    reading = await reading_of(server)
    assert reading.claims == ()
    assert seen(reading).slices == ()


async def test_a_claim_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(NotFound):
        await reading_of(Server.started())
