"""What every emulated component stands on: views of the cluster, a queue of keys, and a loop.

A component is told of changes synchronously, within the write that made them, and only notes
keys. Its own task takes one key per round of the event loop, decides on the views and writes,
so that a run on a virtual clock is always the same one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar, Generic, Protocol

import structlog

from claimctl.embedded.errors import StatusError
from claimctl.embedded.kinds.metadata import timestamp
from claimctl.embedded.options import ClusterOptions, Features, Timings
from claimctl.embedded.runtime.local import ApiFor, ConnectionLost, FaultHook
from claimctl.embedded.runtime.views import Feed, Views
from claimctl.embedded.runtime.workqueue import K, WorkQueue
from claimctl.embedded.storage.requests import MASTERS, Actor
from claimctl.embedded.verbs.api import Api
from claimctl.wire.base import Object
from claimctl.wire.seams import Clock

log = structlog.get_logger(__name__)

KCM = "kube-controller-manager"

Pauses = Callable[[Object], tuple[float, float]]
"""Of a pod: the seconds between the scheduler's decision and its first write to a claim (the rate
limit of its client), and from its last write until it binds the pod (a volume that comes late)."""


class EventSink(Protocol):
    def record(
        self, reporter: str, regarding: Object, kind: str, reason: str, message: str
    ) -> None: ...


class NoEvents:
    """An event sink that forgets."""

    def record(
        self, reporter: str, regarding: Object, kind: str, reason: str, message: str
    ) -> None:
        return None


@dataclass
class Context:
    """What the components of one cluster share. ``views`` are in time."""

    api: Api
    options: ClusterOptions
    features: Features
    clock: Clock
    feed: Feed
    views: Views
    rng: Random
    events: EventSink = field(default_factory=NoEvents)
    failures: list[Exception] = field(default_factory=list)
    fault: FaultHook | None = None
    """Asked before every request of a component."""
    pauses: Pauses | None = None
    """How slowly the scheduler binds each pod; at once without it."""

    @property
    def timings(self) -> Timings:
        return self.options.timings

    def now(self) -> str:
        return timestamp(self.clock.now())

    def api_for(self, user: str, manager: str) -> ApiFor:
        return ApiFor(
            self.api,
            Actor(user, (MASTERS,), manager),
            # asked at each request, because the hook may be set later
            lambda point: None if self.fault is None else self.fault(point),
        )


class Component(Generic[K]):
    """Base of the components; ``sync`` brings one key to where it should be."""

    name: ClassVar[str]
    user: ClassVar[str] = ""
    manager: ClassVar[str] = KCM
    reporter: ClassVar[str] = ""
    """The component that its events name; empty for none."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.views = context.views
        self.queue: WorkQueue[K] = WorkQueue(self.backoff())
        self.api = context.api_for(self.user or f"system:{self.manager}", self.manager)
        self.watch()

    def backoff(self) -> tuple[float, ...]:
        """Pauses before a key that failed is tried again, in seconds."""
        return self.context.timings.kcm_retry

    def watch(self) -> None:
        """Say which indexes are needed, and subscribe to views."""

    def start(self) -> None:
        """Do what is done once, before the first key."""

    def resumed(self) -> None:
        """Come back after a pause, as a process does that was down: with nothing under way."""

    def sync(self, key: K) -> None:
        raise NotImplementedError

    async def run(self) -> None:
        while True:
            self._try(await self.queue.get())
            await asyncio.sleep(0)

    def _try(self, key: K) -> None:
        try:
            self.sync(key)
        except (StatusError, ConnectionLost) as error:
            log.debug("sync failed", component=self.name, key=key, error=str(error))
            self.queue.retry(key)
        except Exception as error:
            log.exception("component failed", component=self.name, key=key)
            self.context.failures.append(error)
            self.queue.retry(key)
        else:
            self.queue.forget(key)

    def event(self, regarding: Object, kind: str, reason: str, message: str) -> None:
        """Emit a Kubernetes Event; ``kind`` is Normal or Warning."""
        self.context.events.record(self.reporter or self.name, regarding, kind, reason, message)
