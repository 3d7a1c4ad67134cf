"""A Transport in memory that answers by a script and records the requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kube_in_process.seams import HttpResponse, Query, Response


@dataclass(frozen=True)
class Request:
    """A received request. ``body`` is decoded JSON, or None."""

    at: float
    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any = None

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Wait:
    """A pause in an answer in seconds; ``Wait(None)`` never ends."""

    seconds: float | None = None


Step = bytes | Wait | Exception | Mapping[str, Any]


@dataclass
class Reply:
    """One answer. Pauses and exceptions in ``before`` come first, those in ``body`` in between.

    A mapping in ``body`` is a line of a watch stream.
    """

    status: int = 200
    body: Sequence[Step] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    before: Sequence[Wait | Exception] = ()
    closed: bool = False

    async def response(self) -> Response:
        for step in self.before:
            await _take(step)
        return HttpResponse(self.status, dict(self.headers), self._chunks(), self._close)

    async def _chunks(self) -> AsyncIterator[bytes]:
        for step in self.body:
            chunk = await _take(step)
            if chunk is not None:
                yield chunk

    async def _close(self) -> None:
        self.closed = True


async def _take(step: Step) -> bytes | None:
    if isinstance(step, Wait):
        await (asyncio.Event().wait() if step.seconds is None else asyncio.sleep(step.seconds))
        return None
    if isinstance(step, Exception):
        raise step
    return step if isinstance(step, bytes) else json.dumps(step).encode() + b"\n"


def ok(body: Any = None, status: int = 200) -> Reply:
    return Reply(status, [json.dumps(body if body is not None else {}).encode()])


def failure(
    code: int, reason: str, message: str = "no", *, retry_after: int | None = None
) -> Reply:
    status = {"kind": "Status", "code": code, "reason": reason, "message": message}
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    return Reply(code, [json.dumps(status).encode()], headers)


def unreachable(error: Exception) -> Reply:
    return Reply(before=[error])


def silence(seconds: float | None = None) -> Reply:
    return Reply(before=[Wait(seconds)])


def stream(*steps: Step) -> Reply:
    return Reply(body=steps)


def event(type_: str, name: str, version: int, uid: str = "", **more: Any) -> dict[str, Any]:
    return {"type": type_, "object": thing(name, version, uid, **more)}


def bookmark(version: int) -> dict[str, Any]:
    return {"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(version)}}}


def expired() -> dict[str, Any]:
    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
    return {"type": "ERROR", "object": status}


def thing(name: str, version: int, uid: str = "", **more: Any) -> dict[str, Any]:
    """An object in the namespace ``ns``."""
    meta = {"name": name, "namespace": "ns", "uid": uid or f"uid-{name}"}
    return {"metadata": {**meta, "resourceVersion": str(version)}, **more}


def listing(version: int, *items: Mapping[str, Any], token: str = "") -> Reply:
    meta = {"resourceVersion": str(version), **({"continue": token} if token else {})}
    return ok({"metadata": meta, "items": list(items)})


class WireServer:
    """Sends the replies of the script in order, whatever the request; then never answers."""

    def __init__(self, *script: Reply) -> None:
        self.script = list(script)
        self.requests: list[Request] = []

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        decoded = None if body is None else json.loads(body)
        now = asyncio.get_running_loop().time()
        self.requests.append(Request(now, method, path, dict(query), dict(headers), decoded))
        reply = self.script.pop(0) if self.script else silence()
        return await reply.response()

    @property
    def lines(self) -> list[str]:
        return [request.line for request in self.requests]

    @property
    def times(self) -> list[float]:
        return [request.at for request in self.requests]
