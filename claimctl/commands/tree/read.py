"""Reads what a tree is made of from an API server, and writes nothing."""

from __future__ import annotations

from claimctl.commands.claims.claim_view import views
from claimctl.commands.tree.graph import Graph, build
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import CLAIMRESERVATIONS, PODS, REPLICASETS, RESOURCECLAIMS


async def read(client: Client, namespace: str) -> Graph:
    """The graph of one namespace.

    Raises:
        KubeError: claims or pods cannot be read.
    """
    claims = (await client.list(RESOURCECLAIMS, namespace, partial=True)).items
    pods = (await client.list(PODS, namespace, partial=True)).items
    made = (await client.list_if_served(CLAIMRESERVATIONS, namespace)).items
    return build(views(claims, pods, made), pods, await _sets(client, namespace))


async def _sets(client: Client, namespace: str) -> list[ObjectMeta]:
    """The ReplicaSets' metadata; none if the caller may not list them. Pods then name them."""
    try:
        listing = await client.list(REPLICASETS, namespace, partial=True)
    except Forbidden:
        return []
    return [replica_set.metadata for replica_set in listing.items]
