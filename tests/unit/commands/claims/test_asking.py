"""Annotations that ask for a hold of a claim, and what becomes of them."""

from __future__ import annotations

from typing import Any

from claimctl.commands.claims.advice import SEE_WHETHER, advice
from claimctl.commands.claims.explanation import Explanation, explain
from tests.support.claim_server import NAMESPACE, Server
from tests.support.explained import claim_lines

Json = dict[str, Any]


async def explained(server: Server) -> Explanation:
    return await explain(server.client, NAMESPACE, "slice", server.clock.now())


async def test_an_annotation_without_a_reservation_is_told() -> None:
    server = Server.started()
    server.deployment(annotations={"claimctl.io/reserve": "*"})
    server.claim("slice", server.pod("a"))
    told = await explained(server)
    assert [one.line for one in told.asking] == [
        "Deployment train asks for a hold of it, but there is no ClaimReservation yet "
        "(claimctl.io/reserve)",
    ]
    assert f"  {told.asking[0].line}" in claim_lines(told)
    assert advice(told) == (SEE_WHETHER,)


async def test_an_annotation_that_no_claim_of_the_pods_matches_is_told() -> None:
    """The claim is one that a pod has for itself, by resourceClaimTemplateName."""
    server = Server.started()
    pod_spec = {
        "containers": [{"name": "main", "image": "x"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    labels, asks = {"app": "own"}, {"claimctl.io/reserve": "*"}
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    made: dict[str, str] = {}
    for plural, owner in (("deployments", None), ("replicasets", "Deployment")):
        meta: Json = {"name": "own", "namespace": NAMESPACE, "annotations": asks}
        if owner is not None:
            meta["ownerReferences"] = [owned_by("apps/v1", owner, "own", made["deployments"])]
        spec = {"selector": {"matchLabels": labels}, "template": template}
        created = server.admin.create(plural, {"metadata": meta, "spec": spec})
        made[plural] = created["metadata"]["uid"]
    reference = server.pod("own-x", claim="own-x-gpu")
    by_set = [owned_by("apps/v1", "ReplicaSet", "own", made["replicasets"])]
    owners = {"metadata": {"ownerReferences": by_set}}
    server.admin.patch("pods", NAMESPACE, "own-x", owners)
    server.claim("own-x-gpu", reference)
    by_pod = [owned_by("v1", "Pod", "own-x", reference["uid"])]
    server.admin.patch(
        "resourceclaims", NAMESPACE, "own-x-gpu", {"metadata": {"ownerReferences": by_pod}}
    )
    told = await explain(server.client, NAMESPACE, "own-x-gpu", server.clock.now())
    (one,) = told.asking
    assert one.line.startswith('Deployment own: claimctl.io/reserve: "*" matches no claim')


def owned_by(version: str, kind: str, name: str, uid: str) -> Json:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": uid, "controller": True}
