"""Records which versions of objects claimctl wrote, from the answers to its writes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube_in_process.seams import HttpResponse, Query, Response, Transport

_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})


@dataclass(slots=True)
class Authors:
    """The user of each write by the version it made, and of each deletion by UID."""

    written: dict[str, str] = field(default_factory=dict)
    deleted: dict[str, str] = field(default_factory=dict)
    """The user who deleted an object, by its UID."""

    def note(self, user: str, obj: dict[str, Any]) -> None:
        meta = obj.get("metadata") or {}
        if version := meta.get("resourceVersion"):
            self.written[version] = user
        if meta.get("deletionTimestamp") and not meta.get("finalizers"):
            self.deleted[meta["uid"]] = user

    def note_deletion(self, user: str, answer: dict[str, Any]) -> None:
        """Note a deletion. The answer is the deleted object, or a Status that names it."""
        details, meta = answer.get("details") or {}, answer.get("metadata") or {}
        if uid := details.get("uid") or meta.get("uid"):
            self.deleted[uid] = user

    def of(self, version: str) -> str:
        """The user who wrote a version; "" if that was not claimctl, or the answer was lost."""
        return self.written.get(version, "")


@dataclass(frozen=True, slots=True)
class Signed:
    """A transport that records its writes as those of one user."""

    inner: Transport
    user: str
    authors: Authors

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if method not in _WRITES or ("dryRun", "All") in query:
            return await self.inner.send(method, path, query, headers, body)
        answer = await self.inner.send(method, path, query, headers, body)
        data = b"".join([part async for part in answer.body])
        if answer.status < 300:
            self._note(method, json.loads(data))
        return HttpResponse(answer.status, answer.headers, _again(data), answer.close)

    def _note(self, method: str, answer: dict[str, Any]) -> None:
        if method == "DELETE":
            self.authors.note_deletion(self.user, answer)
        else:
            self.authors.note(self.user, answer)


async def _again(data: bytes) -> AsyncIterator[bytes]:
    yield data
