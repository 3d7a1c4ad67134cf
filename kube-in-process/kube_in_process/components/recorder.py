"""Kubernetes Events of the components. A repeated event increases the count of the first one."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from kube_in_process.components.objects import name, namespace, uid
from kube_in_process.errors import StatusError
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component, Context
from kube_in_process.runtime.local import ConnectionLost, Waits

KEPT = 4096
"""The number of events that are remembered for counting repeats."""
SIMILAR = 10
"""Up to this number, events of one object with the same reason are recorded with their message."""


@dataclass(frozen=True, slots=True)
class EventIdentity:
    reporter: str
    namespace: str
    kind: str
    reason: str
    message: str
    uid: str


class EventRecorder(Component[EventIdentity]):
    name = "events"

    def __init__(self, context: Context) -> None:
        self._regarding: dict[EventIdentity, Object] = {}
        self._made: OrderedDict[EventIdentity, str] = OrderedDict()
        self._counts: dict[EventIdentity, int] = {}
        self._similar: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._sequence = 0
        super().__init__(context)

    def record(
        self, reporter: str, regarding: Object, kind: str, reason: str, message: str
    ) -> None:
        space = namespace(regarding) or "default"
        similar = (uid(regarding), reason)
        self._similar[similar] = self._similar.get(similar, 0) + 1
        if len(self._similar) > KEPT:
            self._similar.popitem(last=False)
        if self._similar.get(similar, 0) > SIMILAR:
            message = f"(combined from similar events): {reason}"
        identity = EventIdentity(reporter, space, kind, reason, message, uid(regarding))
        self._regarding[identity] = regarding
        self._counts[identity] = self._counts.get(identity, 0) + 1
        self.queue.add(identity)

    def sync(self, key: EventIdentity) -> None:
        """Write an event. A namespace that is being deleted refuses events; they are dropped."""
        regarding = self._regarding.pop(key)
        try:
            if key in self._made:
                self._count(key)
            else:
                self._create(key, regarding)
        except Waits:
            self._regarding.setdefault(key, regarding)
            raise
        except (StatusError, ConnectionLost):
            self._counts.pop(key, None)
            self._made.pop(key, None)

    def _count(self, key: EventIdentity) -> None:
        patch = {"count": self._counts[key], "lastTimestamp": self.context.now()}
        self.api.patch("events", key.namespace, self._made[key], patch)
        self._made.move_to_end(key)

    def _create(self, key: EventIdentity, regarding: Object) -> None:
        now = self.context.now()
        plain = f"{name(regarding)}.{self._sequence + 1:016x}"
        self.api.create(
            "events",
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {"name": plain, "namespace": key.namespace},
                "involvedObject": _reference(regarding),
                "reason": key.reason,
                "message": key.message,
                "source": {"component": key.reporter},
                "reportingComponent": key.reporter,
                "reportingInstance": "",
                "firstTimestamp": now,
                "lastTimestamp": now,
                "count": self._counts[key],
                "type": key.kind,
            },
        )
        self._sequence += 1
        self._made[key] = plain
        if len(self._made) > KEPT:
            self._counts.pop(self._made.popitem(last=False)[0], None)


def _reference(obj: Object) -> Object:
    reference = {
        "kind": obj["kind"],
        "apiVersion": obj["apiVersion"],
        "name": name(obj),
        "uid": uid(obj),
        "resourceVersion": obj["metadata"]["resourceVersion"],
    }
    return {**reference, "namespace": namespace(obj)} if namespace(obj) else reference
