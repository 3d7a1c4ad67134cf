"""The pods of the namespaces in which a run evicts, as the server last sent them.

One list and one watch for each namespace. So a run goes on as soon as a replacement has a node, and
asks the server for nothing meanwhile.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from random import Random

from claimctl.kube.client import Client
from claimctl.kube.informer import Informer
from claimctl.parallel import wait_any
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS
from claimctl.wire.seams import Clock

_LOOK = 0.1
"""Seconds between two looks whether the pods cannot be listed."""


def _owner(pod: Pod) -> tuple[str, ...]:
    owner = pod.metadata.controller()
    return (owner.uid,) if owner is not None else ()


_INDEXES = {"uid": lambda pod: (pod.metadata.uid,), "owner": _owner}


@dataclass(slots=True)
class PodWatch:
    client: Client
    clock: Clock
    rng: Random
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set for each change."""
    _informers: dict[str, Informer[Pod]] = field(default_factory=dict)
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    async def follow(self, namespace: str) -> None:
        """Follow the pods of a namespace from now on. Raises KubeError if they cannot be listed."""
        if namespace in self._informers:
            return
        pods = Informer(
            self.client, PODS, self.clock, namespace=namespace, indexes=_INDEXES, rng=self.rng
        )
        listed = asyncio.Event()
        pods.on_list(lambda *_: listed.set())
        pods.subscribe(lambda _: self.changed.set())
        self._tasks.append(asyncio.create_task(pods.run(), name=f"pods of {namespace}"))
        while not listed.is_set():
            if pods.trouble is not None:
                raise pods.trouble
            await wait_any(listed, seconds=_LOOK)
        self._informers[namespace] = pods

    def follows(self, namespace: str) -> bool:
        return namespace in self._informers

    def get(self, uid: str, namespace: str) -> Pod | None:
        """A pod of a namespace that is followed; None if it is gone."""
        return next(iter(self._informers[namespace].by_index("uid", uid)), None)

    def uids(self, namespace: str) -> set[str]:
        return {pod.metadata.uid for pod in self._informers[namespace].items()}

    def of_owner(self, uid: str, namespace: str) -> tuple[Pod, ...]:
        return self._informers[namespace].by_index("owner", uid)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
