"""The pods of claims, as a run reads them."""

from __future__ import annotations

from collections.abc import Sequence

from claimctl.downgrade.pods import PodsOfClaims, with_pods
from claimctl.kube.client import Client
from claimctl.wire.claims import ResourceClaim


async def list_pods_of(client: Client, claims: Sequence[ResourceClaim]) -> PodsOfClaims:
    """The pods of all these claims of one namespace, from one LIST."""
    chunks = [
        (listed, dict(pods.by_claim), pods) async for listed, pods in with_pods(client, claims)
    ]
    [(listed, by_claim, pods)] = chunks
    assert listed == list(claims)
    return PodsOfClaims(by_claim, pods.unreadable)
