"""Renews the Leases of nodes for a cluster's node lifecycle controller.

The cluster of a kubeconfig has that controller, and it takes a node without a fresh Lease for lost.
The control planes that the tests start do not have it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime

from kube_in_process.real.client import Version

from claimctl.kube.errors import KubeError
from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient

_LEASE: Version = ("coordination.k8s.io/v1", "Lease")
_NAMESPACE = "kube-node-lease"
_SECONDS = 10.0


async def beat(client: DocumentClient, present: Callable[[], Iterable[str]]) -> None:
    """Renew the Leases of nodes until cancelled.

    Args:
        present: returns the nodes whose Leases to renew.
    """
    made: set[str] = set()
    try:
        while True:
            for node in present():
                with suppress(KubeError, OSError):
                    await _renew(client, node, new=node not in made)
                    made.add(node)
            await asyncio.sleep(_SECONDS)
    finally:
        for node in made:
            with suppress(KubeError, OSError):
                await client.delete(_LEASE, _NAMESPACE, node)


async def _renew(client: DocumentClient, node: str, *, new: bool) -> None:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec: Object = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": now}
    if not new:
        await client.patch(_LEASE, _NAMESPACE, node, {"spec": spec})
        return
    meta = {"name": node, "namespace": _NAMESPACE}
    body = {"apiVersion": _LEASE[0], "kind": _LEASE[1], "metadata": meta, "spec": spec}
    await client.create(body)
