"""Follow all objects of a kind on a real API server, as plain documents."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from kube_in_process.real.client import (
    Document,
    DocumentClient,
    RequestFailed,
    Version,
    lines,
    read,
    sent,
)
from kube_in_process.seams import Transport

Notice = Callable[[str, Document], None]
"""Called with ADDED, MODIFIED or DELETED and the new object, or the last one if it is deleted."""

_PAUSE_SECONDS = 0.5
_WATCH_SECONDS = 300


class _Expired(Exception):
    """The server does not know the version any more: list again."""


@dataclass(slots=True)
class Follower:
    """Lists the objects of a kind and then watches them.

    It goes on after broken connections and restarts of the server. After such a gap it reports
    each object that is gone as DELETED, with the last known object.
    """

    transport: Transport
    kind: Version
    notice: Notice
    namespace: str = ""
    listed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set after the first LIST. Every later change is reported."""
    _client: DocumentClient = field(init=False)

    def __post_init__(self) -> None:
        self._client = DocumentClient(self.transport, "follower")

    async def run(self) -> None:
        """Follow until cancelled."""
        known: dict[tuple[str, str], Document] = {}
        while True:
            try:
                version = await self._list(known)
                while True:
                    version = await self._watch(version, known)
            except (RequestFailed, _Expired, ValueError):
                await asyncio.sleep(_PAUSE_SECONDS)

    async def _list(self, known: dict[tuple[str, str], Document]) -> str:
        path = (await self._client.served(*self.kind)).at(self.namespace)
        answer = await sent(self.transport, "GET", path, (), _HEADERS)
        body = json.loads(await read(answer))
        if answer.status != 200:
            raise _Expired(str(body))
        listed = {_key(obj): obj for obj in body["items"] or ()}
        for key in [key for key in known if key not in listed]:
            self.notice("DELETED", known.pop(key))
        for key, obj in listed.items():
            before = known.get(key)
            if before is None or _version(before) != _version(obj):
                known[key] = obj
                self.notice("ADDED" if before is None else "MODIFIED", obj)
        self.listed.set()
        return str(body["metadata"]["resourceVersion"])

    async def _watch(self, version: str, known: dict[tuple[str, str], Document]) -> str:
        async for event in self._events(version):
            obj = event["object"]
            if event["type"] == "ERROR":
                raise _Expired(str(obj))
            version = _version(obj)
            if event["type"] == "BOOKMARK":
                continue
            if event["type"] == "DELETED":
                known.pop(_key(obj), None)
            else:
                known[_key(obj)] = obj
            self.notice(event["type"], obj)
        return version

    async def _events(self, version: str) -> AsyncIterator[Document]:
        path = (await self._client.served(*self.kind)).at(self.namespace)
        query = (
            ("watch", "true"),
            ("resourceVersion", version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", str(_WATCH_SECONDS)),
        )
        answer = await sent(self.transport, "GET", path, query, _HEADERS)
        try:
            if answer.status != 200:
                raise _Expired((await read(answer)).decode(errors="replace"))
            async for line in lines(answer.body):
                yield json.loads(line)
        finally:
            await answer.close()


_HEADERS = {"accept": "application/json"}


def _key(obj: Document) -> tuple[str, str]:
    return obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def _version(obj: Document) -> str:
    return str(obj["metadata"]["resourceVersion"])
