"""The writes of an uninstall, also to claims that no patch can change."""

from __future__ import annotations

import pytest

from claimctl.commands.orphans.model import ScannedClaim
from claimctl.commands.uninstall.model import AnnotatedWorkload, Removed, Scan
from claimctl.commands.uninstall.writes import UninstallWriter
from claimctl.reservation.facts.snapshot import LiveList
from claimctl.wire.claims import UNCHANGEABLE
from claimctl.wire.resources import CLAIMRESERVATIONS, DEPLOYMENTS, PODS, RESOURCECLAIMS
from tests.support.builders import NOW
from tests.support.claim_server import NAMESPACE, TRAIN, Server

OWNER = {
    "apiVersion": "claimctl.io/v1alpha1",
    "kind": "ClaimReservation",
    "name": "gone",
    "uid": "uid-gone",
}


@pytest.mark.parametrize(
    ("annotations", "what"),
    [
        ({"claimctl.io/reserve": "*"}, "annotation claimctl.io/reserve=*"),
        (
            {"claimctl.io/reserve": "*", "claimctl.io/idle-timeout": "5m"},
            "annotations claimctl.io/idle-timeout=5m, claimctl.io/reserve=*",
        ),
    ],
)
async def test_the_annotations_that_go_are_named_as_one_or_several(
    annotations: dict[str, str], what: str
) -> None:
    made = Server.started()
    made.deployment(annotations={"team": "ml", **annotations})
    train = await made.client.get(DEPLOYMENTS, "train", NAMESPACE)
    writer = UninstallWriter(made.client, lambda _: None)
    await writer.remove_annotations(AnnotatedWorkload(DEPLOYMENTS, train.metadata))
    left = await made.client.get(DEPLOYMENTS, "train", NAMESPACE)
    assert left.metadata.annotations == {"team": "ml"}
    assert writer.removed == [Removed("Deployment", NAMESPACE, "train", what)]


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


async def test_the_hold_goes_also_where_nobody_can_give_the_claim_to_its_pods() -> None:
    made = Server.started()
    made.reservation("gone", resourceClaimTemplateName="big", sticky={"ordinal": 0})
    reservation = await made.client.get(CLAIMRESERVATIONS, "gone", NAMESPACE)
    owner = {**OWNER, "uid": reservation.metadata.uid, "controller": True}
    made.unchangeable(TRAIN, ownerReferences=[owner])
    made.pod("a")
    pod = await made.client.get(PODS, "a", NAMESPACE)
    claim = await made.client.get(RESOURCECLAIMS, "slice", NAMESPACE)
    scanned = ScannedClaim(claim, LiveList("", (pod,), frozenset()), NOW)
    writer = UninstallWriter(made.client, lambda _: None)
    await writer.withdraw(Scan(NOW, claims=(scanned,)), reservation)
    assert writer.refused == {(NAMESPACE, "slice"): UNCHANGEABLE}
    assert [it.what for it in writer.removed] == [
        "of claim slice; its claim goes with the pods that name it: a"
    ]
