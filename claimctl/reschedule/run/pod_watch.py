"""The pods of the namespaces in which a run evicts, as the server last sent them.

One list and one watch for each namespace. So a run goes on as soon as a replacement has a node, and
asks the server for nothing meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import dataclass, field
from random import Random

import structlog

from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError
from claimctl.kube.retry import Backoff
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS
from claimctl.wire.seams import Clock

log = structlog.get_logger(__name__)

_AGAIN = Backoff(first=0.5, cap=10.0)


def owner_uid(pod: Pod) -> str:
    owner = pod.metadata.controller()
    return owner.uid if owner is not None else ""


@dataclass(slots=True)
class _Space:
    """The pods of a namespace, by UID, and by the UID of their owner."""

    pods: dict[str, Pod] = field(default_factory=dict)
    by_owner: dict[str, dict[str, Pod]] = field(default_factory=lambda: defaultdict(dict))

    def fill(self, pods: Iterable[Pod]) -> None:
        self.pods.clear()
        self.by_owner.clear()
        for pod in pods:
            self.put(pod)

    def put(self, pod: Pod) -> None:
        self.pods[pod.metadata.uid] = self.by_owner[owner_uid(pod)][pod.metadata.uid] = pod

    def remove(self, pod: Pod) -> None:
        self.pods.pop(pod.metadata.uid, None)
        self.by_owner[owner_uid(pod)].pop(pod.metadata.uid, None)


@dataclass(slots=True)
class PodWatch:
    client: Client
    clock: Clock
    rng: Random
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set for each event."""
    _spaces: dict[str, _Space] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def follow(self, namespace: str) -> None:
        """Follow the pods of a namespace from now on."""
        if namespace not in self._spaces:
            space = _Space()
            version = await self._list(namespace, space)
            self._spaces[namespace] = space
            name = f"pods of {namespace}"
            self._tasks.append(
                asyncio.create_task(self._watch(namespace, space, version), name=name)
            )

    def follows(self, namespace: str) -> bool:
        return namespace in self._spaces

    def get(self, uid: str, namespace: str) -> Pod | None:
        """A pod of a namespace that is followed; None if it is gone."""
        return self._spaces[namespace].pods.get(uid)

    def uids(self, namespace: str) -> set[str]:
        return set(self._spaces[namespace].pods)

    def of_owner(self, uid: str, namespace: str) -> tuple[Pod, ...]:
        return tuple(self._spaces[namespace].by_owner.get(uid, {}).values())

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _list(self, namespace: str, space: _Space) -> str:
        listing = await self.client.list(PODS, namespace, partial=True)
        space.fill(listing.items)
        self.changed.set()
        return listing.resource_version

    async def _watch(self, namespace: str, space: _Space, version: str) -> None:
        """Watch until cancelled. A watch that fails begins again with a list."""
        failures = 0
        while True:
            try:
                if not version:
                    version = await self._list(namespace, space)
                stream = self.client.watch(PODS, namespace, resource_version=version)
                async with aclosing(stream) as events:
                    async for event in events:
                        version, failures = event.resource_version or version, 0
                        if event.object is not None and event.type == "DELETED":
                            space.remove(event.object)
                        elif event.object is not None:
                            space.put(event.object)
                        self.changed.set()
            except KubeError as error:
                log.warning("cannot watch pods", namespace=namespace, error=str(error))
                version, failures = "", failures + 1
                await self.clock.sleep(_AGAIN.delay(failures, self.rng))
