"""Watch streams: from a version on, with selectors and bookmarks, until a deadline."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from kube_in_process import errors
from kube_in_process.errors import StatusError, Subject
from kube_in_process.objects import Object
from kube_in_process.storage.requests import WatchOptions
from kube_in_process.storage.selectors import Selector
from kube_in_process.storage.store import Compacted, Revision, decode, encode
from kube_in_process.verbs.reading import Target, is_version, not_a_version, selector_of
from kube_in_process.verbs.state import ServerState

_OPTIONS = Subject("meta.k8s.io", "ListOptions")
BOOKMARK_SECONDS = 60.0
LAST_BOOKMARK_SECONDS = 2.0
"""Seconds between the last bookmark of a watch and its deadline."""
DEFAULT_TIMEOUT_SECONDS = 1800.0


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a stream: the object, or stored bytes that need no change."""

    type: str
    given: Object | None = None
    data: bytes = b""

    @property
    def object(self) -> Object:
        return decode(self.data) if self.given is None else self.given

    def encoded(self) -> bytes:
        return self.data if self.given is None else encode(self.given)


def check_watch_options(options: WatchOptions) -> None:
    """The rules for resourceVersionMatch and sendInitialEvents on a watch (422)."""
    path, match = "resourceVersionMatch", options.resource_version_match
    field_errors = []
    if options.send_initial_events is None:
        if match:
            text = (
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
            field_errors.append(errors.forbidden_field(path, text))
    elif match != "NotOlderThan":
        text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        field_errors.append(errors.forbidden_field(path, text))
        if match:
            field_errors.append(errors.not_supported(path, match, ("NotOlderThan",)))
    if field_errors:
        raise errors.invalid(_OPTIONS, field_errors)


class Watch:
    """An open watch. ``close`` ends it; ``events`` runs until it ends.

    Raises (when made):
        StatusError: 400, 422, 500.
    """

    def __init__(self, state: ServerState, target: Target, options: WatchOptions) -> None:
        check_watch_options(options)
        self._state = state
        self._target = target
        self._options = options
        self._selector = selector_of(
            state, target.kind, options.label_selector, options.field_selector
        )
        self._raw = self._as_stored()
        self._pending: deque[Event | Revision] = deque()
        self._after = 0
        self._wake: asyncio.Future[None] | None = None
        self._ended = False
        self._timers: list[asyncio.TimerHandle] = []
        group, plural = target.kind.storage
        version = options.resource_version or "0"
        if not is_version(version):
            raise StatusError(500, "", not_a_version(version))
        self._begin(int(version), group, plural)
        self._unsubscribe = state.store.subscribe(self._notice, group, plural)

    def _begin(self, version: int, group: str, plural: str) -> None:
        initial = self._options.send_initial_events
        if initial or (initial is None and version == 0):
            for data in self._state.store.items(group, plural, self._target.namespace):
                self._pending_initial(data)
            self._after = self._state.store.revision
            if initial and self._options.bookmarks:
                self._pending.append(self._bookmark(initial_end=True))
            return
        self._after = version or self._state.store.revision
        try:
            self._pending.extend(self._state.store.since(group, plural, self._after))
        except Compacted:
            self._pending.append(Event("ERROR", self._too_old(version)))
            self._ended = True

    def _as_stored(self) -> bool:
        """Whether the stream sends stored bytes unchanged."""
        kind, version = self._target.kind, self._target.version
        return self._selector.everything and self._state.stored_as(kind, version)

    def _pending_initial(self, data: bytes) -> None:
        if self._raw:
            self._pending.append(Event("ADDED", data=data))
            return
        obj = decode(data)
        if self._selector.matches(obj):
            self._pending.append(Event("ADDED", self._outward(obj)))

    def _too_old(self, version: int) -> Object:
        oldest = max(self._state.store.compacted, self._state.store.begun)
        return errors.expired(f"too old resource version: {version} ({oldest})").body()

    def _bookmark(self, *, initial_end: bool = False) -> Event:
        kind = self._target.kind
        annotations: Object = {}
        if kind.plural == "daemonsets":
            # The empty object of a bookmark has a template, too.
            annotations["deprecated.daemonset.template.generation"] = "0"
        if initial_end:
            annotations["k8s.io/initial-events-end"] = "true"
        metadata: Object = {"resourceVersion": str(self._state.store.revision)}
        if annotations:
            metadata["annotations"] = annotations
        version = kind.api_version(self._target.version)
        body = {"kind": kind.kind, "apiVersion": version, "metadata": metadata}
        empty = self._state.decoder.empty(kind, self._target.version_or_default)
        return Event("BOOKMARK", {**empty, **body})

    def _notice(self, revision: Revision) -> None:
        if not self._ended:
            self._pending.append(revision)
            self._wake_up()

    def _wake_up(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    def _outward(self, obj: Object) -> Object:
        return self._state.outward(self._target.kind, self._target.version, obj)

    def _event(self, revision: Revision) -> Event | None:
        """The event for a revision and the selectors; None if it does not match."""
        if revision.number <= self._after:
            return None
        namespace = self._target.namespace
        if namespace and revision.namespace != namespace:
            return None
        if self._raw:
            return Event(revision.type, data=revision.data)
        if self._selector.everything:
            return Event(revision.type, self._outward(revision.object()))
        return _selected(revision, self._selector, self._outward)

    async def events(self) -> AsyncIterator[list[Event]]:
        """Batches of events until the timeout or ``close``."""
        loop = asyncio.get_running_loop()
        seconds = self._options.timeout_seconds
        deadline = loop.time() + (DEFAULT_TIMEOUT_SECONDS if seconds is None else seconds)
        self._timers.append(loop.call_at(deadline, self._end))
        if self._options.bookmarks:
            self._schedule_bookmark(loop, deadline)
        try:
            while True:
                batch = self._drain()
                if batch:
                    yield batch
                elif self._ended:
                    return
                else:
                    self._wake = loop.create_future()
                    await self._wake
        finally:
            self.close()

    def _schedule_bookmark(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        """A bookmark every minute, and one just before the deadline."""
        at = min(loop.time() + BOOKMARK_SECONDS, deadline - LAST_BOOKMARK_SECONDS)
        if at <= loop.time():
            return

        def due() -> None:
            self._pending.append(self._bookmark())
            self._wake_up()
            self._schedule_bookmark(loop, deadline)

        del self._timers[1:]
        self._timers.append(loop.call_at(at, due))

    def _drain(self) -> list[Event]:
        batch: list[Event] = []
        while self._pending:
            entry = self._pending.popleft()
            event = self._event(entry) if isinstance(entry, Revision) else entry
            if event is not None:
                batch.append(event)
        return batch

    def _end(self) -> None:
        self._ended = True
        self._wake_up()

    def close(self) -> None:
        """End the stream. A reader still gets the pending events."""
        self._unsubscribe()
        for timer in self._timers:
            timer.cancel()
        self._end()


def _selected(revision: Revision, selector: Selector, outward: Any) -> Event | None:
    """An object that no longer matches is DELETED, with its new version."""
    previous = revision.previous_object()
    was = previous is not None and selector.matches(previous)
    obj = revision.object()
    if revision.type == "DELETED":
        return Event("DELETED", outward(obj)) if was else None
    if selector.matches(obj):
        return Event("MODIFIED" if was else "ADDED", outward(obj))
    if not was or previous is None:
        return None
    previous["metadata"]["resourceVersion"] = obj["metadata"]["resourceVersion"]
    return Event("DELETED", outward(previous))
