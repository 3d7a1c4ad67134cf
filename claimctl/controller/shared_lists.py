"""Quorum LISTs of a namespace's pods that releases at the same time share.

A release needs a LIST that begins after it asks for one. So a LIST that has begun serves nobody
else. All who ask within ``GATHER_SECONDS`` share the next one.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

from claimctl.kube.client import Client
from claimctl.reservation.slim_pods import slim_pod
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS
from claimctl.wire.unreadable import Unreadable

GATHER_SECONDS = 0.05
"""How long a LIST waits for others who need one, in seconds."""


@dataclass(frozen=True, slots=True)
class PodList:
    """The pods of a namespace at one version."""

    version: str
    using: tuple[Pod, ...]
    """The pods that name a claim."""
    uids: frozenset[str]
    """The UIDs of all pods that can be read."""
    unreadable: tuple[Unreadable, ...]

    @property
    def all_uids(self) -> frozenset[str]:
        """The UIDs of all pods; '' stands for a pod whose UID cannot be read."""
        return self.uids | {each.uid for each in self.unreadable}


class _Flight:
    """One LIST, and how many wait for it."""

    def __init__(self, task: asyncio.Task[PodList]) -> None:
        self.task = task
        self.waiting = 0


class SharedLists:
    def __init__(self, client: Client) -> None:
        self._client = client
        self._next: dict[str, _Flight] = {}

    async def get(self, namespace: str) -> PodList:
        """A LIST of the namespace's pods that begins after this call; raises KubeError."""
        flight = self._next.get(namespace)
        if flight is None:
            task = asyncio.create_task(self._list(namespace), name=f"list of pods in {namespace}")
            flight = self._next[namespace] = _Flight(task)
        flight.waiting += 1
        try:
            return await asyncio.shield(flight.task)
        finally:
            flight.waiting -= 1
            if not flight.waiting and not flight.task.done():
                flight.task.cancel()
                if self._next.get(namespace) is flight:
                    del self._next[namespace]

    async def _list(self, namespace: str) -> PodList:
        await asyncio.sleep(GATHER_SECONDS)
        del self._next[namespace]
        using: list[Pod] = []
        uids: set[str] = set()
        unread: list[Unreadable] = []
        version = ""
        async with aclosing(self._client.pages(PODS, namespace, partial=True)) as pages:
            async for page in pages:
                version = page.resource_version
                uids.update(pod.metadata.uid for pod in page.items)
                using.extend(filter(None, map(slim_pod, page.items)))
                unread += page.unreadable
        return PodList(version, tuple(using), frozenset(uids), tuple(unread))
