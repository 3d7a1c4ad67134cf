"""The writes of an uninstall to claims that no patch can change."""

from __future__ import annotations

from claimctl.commands.orphans.model import ScannedClaim
from claimctl.commands.uninstall.model import Scan
from claimctl.commands.uninstall.writes import UninstallWriter
from claimctl.reservation.facts.snapshot import LiveList
from claimctl.wire.claims import UNCHANGEABLE
from claimctl.wire.resources import RESOURCECLAIMS
from tests.support.builders import NOW
from tests.support.claim_server import NAMESPACE, TRAIN, Server

OWNER = {
    "apiVersion": "claimctl.io/v1alpha1",
    "kind": "ClaimReservation",
    "name": "gone",
    "uid": "uid-gone",
}


async def test_a_claim_that_nobody_can_change_is_tried_once_and_named() -> None:
    made = Server.started()
    made.unchangeable(TRAIN, ownerReferences=[OWNER])
    claim = await made.client.get(RESOURCECLAIMS, "slice", NAMESPACE)
    scanned = ScannedClaim(claim, LiveList("", (), frozenset()), NOW)
    writer = UninstallWriter(made.client, lambda _: None)
    tried: list[int] = []
    made.upon("patch", "resourceclaims", tried.append)
    for _ in range(2):
        await writer.free_of_owner(Scan(now=NOW), scanned)
    assert tried == [1]
    assert writer.refused == {(NAMESPACE, "slice"): UNCHANGEABLE}
    assert writer.removed == []
