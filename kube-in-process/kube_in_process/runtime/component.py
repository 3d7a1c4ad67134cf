"""The base of every emulated component: views of the cluster, a queue of keys, and a loop.

A component gets changes synchronously, within the write that made them, and only adds keys. Its own
task takes one key per round of the event loop, decides on the views and writes. So runs on a
virtual clock are always the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import ClassVar, Generic, Protocol

from kube_in_process.errors import StatusError
from kube_in_process.objects import Object
from kube_in_process.options import ClusterOptions, Features, Timings
from kube_in_process.runtime.local import ApiFor, ConnectionLost, FaultHook, Waits
from kube_in_process.runtime.views import Feed, Views
from kube_in_process.runtime.workqueue import K, WorkQueue
from kube_in_process.seams import Clock
from kube_in_process.storage.requests import MASTERS, Actor
from kube_in_process.text.times import timestamp
from kube_in_process.verbs.api import Api

log = logging.getLogger(__name__)

KCM = "kube-controller-manager"

Pauses = Callable[[Object], tuple[float, float]]
"""For a pod, seconds between the scheduler's decision and its first write to a claim (the rate
limit of its client), and between its last write and the binding (a volume that comes late)."""


class EventSink(Protocol):
    def record(
        self, reporter: str, regarding: Object, kind: str, reason: str, message: str
    ) -> None: ...


class NoEvents:
    """An event sink that drops all events."""

    def record(
        self, reporter: str, regarding: Object, kind: str, reason: str, message: str
    ) -> None:
        return None


@dataclass
class Context:
    """What the components of a cluster share. ``views`` have no lag."""

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
    """Called before every request of a component."""
    pauses: Pauses | None = None
    """The delays of the scheduler; None means no delays."""

    @property
    def timings(self) -> Timings:
        return self.options.timings

    def now(self) -> str:
        return timestamp(self.clock.now())

    def api_for(self, user: str, manager: str) -> ApiFor:
        return ApiFor(
            self.api,
            Actor(user, (MASTERS,), manager),
            # called at each request, because the hook may be set later
            lambda point: None if self.fault is None else self.fault(point),
        )


class Component(Generic[K]):
    """The base class of components. ``sync`` handles one key."""

    name: ClassVar[str]
    user: ClassVar[str] = ""
    manager: ClassVar[str] = KCM
    reporter: ClassVar[str] = ""
    """The component that its events name; '' means the name of the component."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.views = context.views
        self.queue = self.make_queue()
        self.api = context.api_for(self.user or f"system:{self.manager}", self.manager)
        self.watch()

    def make_queue(self) -> WorkQueue[K]:
        return WorkQueue(self.backoff())

    def backoff(self) -> tuple[float, ...]:
        """Seconds before a failed key is tried again, by the number of failures."""
        return self.context.timings.kcm_retry

    def watch(self) -> None:
        """Create indexes of views, and subscribe to views."""

    def start(self) -> None:
        """Called once, before the first key."""

    def resumed(self) -> None:
        """Called after a pause: like a restarted process, forget all work in progress."""

    def sync(self, key: K) -> None:
        raise NotImplementedError

    async def run(self) -> None:
        while True:
            key = await self.queue.get()
            while (waits := self._try(key)) is not None:
                await waits.answered
            await asyncio.sleep(0)

    def _try(self, key: K) -> Waits | None:
        """Handle a key, and return what it waits for before it is tried again."""
        try:
            self.sync(key)
        except Waits as waits:
            return waits
        except (StatusError, ConnectionLost) as error:
            log.debug("%s: %s failed: %s", self.name, key, error)
            self.queue.retry(key)
        except Exception as error:
            log.exception("%s: %s failed", self.name, key)
            self.context.failures.append(error)
            self.queue.retry(key)
        else:
            self.queue.forget(key)
        return None

    def event(self, regarding: Object, kind: str, reason: str, message: str) -> None:
        """Record a Kubernetes Event; ``kind`` is Normal or Warning."""
        self.context.events.record(self.reporter or self.name, regarding, kind, reason, message)
