"""Quorum LISTs of a namespace's pods that releases at the same time share.

A release needs a LIST that begins after it asks for one. So all who ask while a LIST runs share the
next one, which begins when it ends, or after ``PATIENCE_SECONDS`` if the server does not answer.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from dataclasses import dataclass

from claimctl.kube.client import Client
from claimctl.kube.informer import Informer
from claimctl.reservation.facts.slim_pods import slim_pod
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS
from claimctl.wire.unreadable import Unreadable

PATIENCE_SECONDS = 2.0
"""How long a LIST waits for the one before it, in seconds."""


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
        return self.uids | {item.uid for item in self.unreadable}


@dataclass(slots=True)
class _Flight:
    """One LIST, and how many wait for it."""

    task: asyncio.Task[PodList]
    waiting: int = 0


class SharedLists:
    def __init__(self, client: Client, known: Informer[Pod]) -> None:
        """``known`` has earlier versions of the pods."""
        self._client = client
        self._known = known
        self._next: dict[str, _Flight] = {}
        self._running: dict[str, asyncio.Task[PodList]] = {}

    async def get(self, namespace: str) -> PodList:
        """A LIST of the namespace's pods that begins after this call; raises KubeError."""
        flight = self._next.get(namespace)
        if flight is None:
            before = self._running.get(namespace)
            task = asyncio.create_task(
                self._after(before, namespace), name=f"list of pods in {namespace}"
            )
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

    async def _after(self, before: asyncio.Task[PodList] | None, namespace: str) -> PodList:
        """Make a LIST once the one ``before`` has ended, or has taken too long."""
        if before is not None:
            await asyncio.wait((before,), timeout=PATIENCE_SECONDS)
        task = self._running[namespace] = self._next.pop(namespace).task
        try:
            return await self._list(namespace)
        finally:
            if self._running.get(namespace) is task:
                del self._running[namespace]

    async def _list(self, namespace: str) -> PodList:
        using: list[Pod] = []
        uids: set[str] = set()
        unread: list[Unreadable] = []
        version = ""
        async with aclosing(self._client.pages(PODS, namespace)) as pages:
            async for page in pages:
                version = page.resource_version
                uids.update(pod.metadata.uid for pod in page.items)
                using.extend(filter(None, map(self._slim, page.items)))
                unread += page.unreadable
                del page  # or else it would be in memory beside the next one
        return PodList(version, tuple(using), frozenset(uids), tuple(unread))

    def _slim(self, pod: Pod) -> Pod | None:
        return slim_pod(pod, self._known.get(pod.metadata.name, pod.metadata.namespace))
