"""Views of components: the objects of each kind, up to date or with a lag.

Every revision is decoded once. All views share the objects, which must not be changed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, ValuesView
from dataclasses import dataclass

from kube_in_process.objects import Object
from kube_in_process.storage.store import Revision, Store, decode

Key = tuple[str, str]
"""Namespace and name."""

GROUPS = {
    "deployments": "apps",
    "replicasets": "apps",
    "statefulsets": "apps",
    "daemonsets": "apps",
    "controllerrevisions": "apps",
    "jobs": "batch",
    "cronjobs": "batch",
    "endpointslices": "discovery.k8s.io",
    "storageclasses": "storage.k8s.io",
    "resourceclaims": "resource.k8s.io",
    "resourceclaimtemplates": "resource.k8s.io",
    "resourceslices": "resource.k8s.io",
    "deviceclasses": "resource.k8s.io",
    "devicetaintrules": "resource.k8s.io",
    "podgroups": "scheduling.k8s.io",
    "poddisruptionbudgets": "policy",
    "leases": "coordination.k8s.io",
}
"""The groups of the kinds in views. All other kinds belong to the core group."""


@dataclass(frozen=True, slots=True)
class Change:
    """One object of a view before and after a change; None if it does not exist."""

    key: Key
    old: Object | None
    new: Object | None

    @property
    def object(self) -> Object:
        """The newer object."""
        newer = self.new if self.new is not None else self.old
        assert newer is not None
        return newer


Values = Callable[[Object], Iterable[str]]


class _Index:
    """Keys by value, in the order in which the objects got the value."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.keys: dict[str, dict[Key, None]] = {}

    def replace(self, key: Key, old: Object | None, new: Object | None) -> None:
        before = () if old is None else tuple(self.values(old))
        after = () if new is None else tuple(self.values(new))
        if before == after:
            return
        for value in before:
            if value not in after:
                self._drop(value, key)
        for value in after:
            self.keys.setdefault(value, {})[key] = None

    def _drop(self, value: str, key: Key) -> None:
        keys = self.keys.get(value)
        if keys is not None:
            keys.pop(key, None)
            if not keys:
                del self.keys[value]


class View:
    """The objects of one kind."""

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}
        self._versions: dict[Key, int] = {}
        self._indexes: dict[str, _Index] = {}
        self._handlers: list[Callable[[Change], None]] = []

    def get(self, namespace: str, name: str) -> Object | None:
        return self._objects.get((namespace, name))

    def items(self) -> ValuesView[Object]:
        return self._objects.values()

    def __len__(self) -> int:
        return len(self._objects)

    def index(self, name: str, values: Values) -> None:
        """Index objects by ``values``. An existing index of that name stays."""
        if name in self._indexes:
            return
        index = self._indexes[name] = _Index(values)
        for key, obj in self._objects.items():
            index.replace(key, None, obj)

    def by(self, index: str, value: str) -> tuple[Object, ...]:
        keys = self._indexes[index].keys.get(value, ())
        return tuple(self._objects[key] for key in keys)

    def count(self, index: str, value: str) -> int:
        return len(self._indexes[index].keys.get(value, ()))

    def subscribe(self, handler: Callable[[Change], None]) -> None:
        """Call ``handler`` after every change, within the write: it may only take notes."""
        self._handlers.append(handler)

    def assume(self, obj: Object) -> None:
        """Show the component its own write before the change arrives."""
        metadata = obj["metadata"]
        key = (metadata.get("namespace", ""), metadata["name"])
        self.apply(key, obj, int(metadata["resourceVersion"]))

    def apply(self, key: Key, obj: Object | None, version: int) -> None:
        if version <= self._versions.get(key, 0):
            return
        old = self._objects.get(key)
        if obj is None:
            self._objects.pop(key, None)
            self._versions.pop(key, None)
        else:
            self._objects[key] = obj
            self._versions[key] = version
        if obj is None and old is None:
            return
        for index in self._indexes.values():
            index.replace(key, old, obj)
        change = Change(key, old, obj)
        for handler in self._handlers:
            handler(change)


class _Stream:
    """Revisions on their way to views, in order; each arrives ``lag`` seconds late."""

    def __init__(self, arrived: Callable[[Revision, Object], None], lag: float = 0.0) -> None:
        self.lag = lag
        self._arrived = arrived
        self._late: deque[tuple[float, Revision, Object]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def take(self, revision: Revision, obj: Object) -> None:
        if self.lag <= 0 and not self._late:
            self._arrived(revision, obj)
            return
        loop = asyncio.get_running_loop()
        self._late.append((loop.time() + self.lag, revision, obj))
        if self._timer is None:
            self._timer = loop.call_later(self.lag, self._catch_up)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _catch_up(self) -> None:
        loop = asyncio.get_running_loop()
        while self._late and self._late[0][0] <= loop.time():
            _, revision, obj = self._late.popleft()
            self._arrived(revision, obj)
        self._timer = loop.call_at(self._late[0][0], self._catch_up) if self._late else None


class Views:
    """Views by plural, for one or several components."""

    def __init__(self, store: Store, lag: float = 0.0) -> None:
        self._store = store
        self._views: dict[tuple[str, str], View] = {}
        self._stream = _Stream(self._apply, lag)
        self._own_streams: dict[str, _Stream] = {}

    def set_lag(self, seconds: float, plural: str = "") -> None:
        """Show every change ``seconds`` late; with ``plural``, only changes of that kind."""
        stream = self._stream
        if plural:
            stream = self._own_streams.setdefault(plural, _Stream(self._apply))
        stream.lag = seconds

    def __getitem__(self, plural: str) -> View:
        kind = (GROUPS.get(plural, ""), plural)
        view = self._views.get(kind)
        if view is None:
            view = self._views[kind] = self._filled(*kind)
        return view

    def _filled(self, group: str, plural: str) -> View:
        view = View()
        for obj in self._store.list(group, plural):
            view.assume(obj)
        return view

    def __contains__(self, kind: tuple[str, str]) -> bool:
        return kind in self._views

    def take(self, revision: Revision, obj: Object) -> None:
        self._own_streams.get(revision.plural, self._stream).take(revision, obj)

    def close(self) -> None:
        for stream in (self._stream, *self._own_streams.values()):
            stream.close()

    def _apply(self, revision: Revision, obj: Object) -> None:
        view = self._views[revision.group, revision.plural]
        key = (revision.namespace, revision.name)
        view.apply(key, None if revision.type == "DELETED" else obj, revision.number)


Listener = Callable[[Revision, Object], None]


class Feed:
    """Decodes each revision of the store once, and passes it to views and listeners."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._views: list[Views] = []
        self._listeners: list[Listener] = []
        self._stop = store.subscribe(self._take)

    def views(self, lag: float = 0.0) -> Views:
        views = Views(self._store, lag)
        self._views.append(views)
        return views

    def listen(self, listener: Listener) -> None:
        """Call ``listener`` with every revision of every kind. It may only take notes."""
        self._listeners.append(listener)

    def close(self) -> None:
        self._stop()
        for views in self._views:
            views.close()

    def _take(self, revision: Revision) -> None:
        watching = [views for views in self._views if (revision.group, revision.plural) in views]
        if not watching and not self._listeners:
            return
        obj = decode(revision.data)
        for views in watching:
            views.take(revision, obj)
        for listener in self._listeners:
            listener(revision, obj)
