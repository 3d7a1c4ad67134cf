"""Reads what a tree is made of from an API server, and writes nothing."""

from __future__ import annotations

from claimctl.commands.claims.claim_view import views
from claimctl.commands.tree.graph import Graph, build
from claimctl.kube.client import Client
from claimctl.wire.resources import CLAIMRESERVATIONS, PODS, REPLICASETS, RESOURCECLAIMS


async def read(client: Client, namespace: str) -> Graph:
    """The graph of one namespace.

    Raises:
        KubeError: claims or pods cannot be read.
    """
    claims = (await client.list(RESOURCECLAIMS, namespace, partial=True)).items
    pods = (await client.list(PODS, namespace, partial=True)).items
    made = (await client.list_if_served(CLAIMRESERVATIONS, namespace)).items
    # without the right to list ReplicaSets, pods name them
    sets = (await client.list_if_allowed(REPLICASETS, namespace)).items
    return build(views(claims, pods, made), pods, [replica_set.metadata for replica_set in sets])
