"""The place of a schedule on real servers: its namespace, which shares the cluster with others."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field

from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.storage.store import Revision

from claimctl.wire.base import Object
from labs.torture.place import Patience, TorturePlace, tried
from labs.torture_real.cluster import SharedCluster
from labs.torture_real.controllers import SLOW_BINDING_SECONDS

PATIENCE = Patience(
    pods=30.0,
    release=SLOW_BINDING_SECONDS + 60.0,
    still=12.0,
    quiet=15.0,
    watched=10.0,
    rounds=10,
)
GONE = 90.0
"""Seconds within which the namespace goes."""


@dataclass
class RealPlace(TorturePlace):
    """Objects and history are those that etcd shows."""

    cluster: SharedCluster
    kubelets: Kubelets
    _lost: set[str] = field(default_factory=set)

    def now(self) -> float:
        return self.cluster.now()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def objects(self, plural: str) -> list[Object]:
        return self.cluster.sight.objects(plural, self.namespace)

    @property
    def revision(self) -> int:
        return self.cluster.sight.number

    def written(self, since: int = 0) -> list[Revision]:
        return [
            revision
            for revision in self.cluster.history.revisions
            if revision.number > since and revision.namespace == self.namespace
        ]

    async def calm(self) -> None:
        """Bring lost nodes back. The servers run already."""
        for node in sorted(self._lost):
            await tried(self.restore(node, rebooted=False))

    @property
    def lost(self) -> Collection[str]:
        return self._lost

    def lose(self, node: str) -> None:
        self.kubelets.lose(node)
        self._lost.add(node)

    async def restore(self, node: str, *, rebooted: bool) -> None:
        await self.kubelets.recover(node, rebooted=rebooted)
        self._lost.discard(node)

    def refused(self, pod: str) -> str:
        return self.kubelets.refused.get(f"{self.namespace}/{pod}", "")

    async def leave(self) -> list[str]:
        """Delete the namespace; returns what is left of it."""
        await tried(self.client.delete(("v1", "Namespace"), "", self.namespace))
        sight = self.cluster.sight
        if await self.until(lambda: not sight.find("namespaces", "", self.namespace), GONE):
            return []
        left = [
            f"{plural}/{body['metadata']['name']}"
            for plural in ("pods", "resourceclaims", "podgroups", "claimreservations")
            for body in self.objects(plural)
        ]
        return [f"the namespace stays, with {left or 'nothing in it'}"]
