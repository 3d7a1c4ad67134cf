"""The connection of one controller process, with the faults of its plan."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass

from kube_in_process.cluster import Cluster
from kube_in_process.seams import HttpResponse, Query, Response, Transport

from tests.e2e.dying_transport import WRITES

STALL_STEP = 0.05
"""Seconds after which a stalled watch looks whether it may go on."""

_FAILED_TEST = b"the server rejected our request due to an error in our request"
"""The answer to a JSON patch whose test fails: a conflict. A write that is invalid gets another."""


@dataclass(frozen=True, slots=True)
class FaultPlan:
    """The faults of one process. Requests and events are counted from 1.

    Attributes:
        dies_at: the request at which the process dies.
        delivered: whether that request still reaches the server; its answer is lost.
        stale_at: the revision that the first lists show. The watches after them bring nothing for
            ``stale_seconds``.
        refused_at: the write that is answered with a conflict and does not reach the server.
        withheld: the watch event that does not arrive. Its kind is listed anew after
            ``withheld_seconds``.
    """

    dies_at: int = 0
    delivered: bool = True
    stale_at: int = 0
    stale_seconds: float = 12.0
    refused_at: int = 0
    withheld: int = 0
    withheld_seconds: float = 15.0


@dataclass(frozen=True, slots=True)
class ClaimDeletion:
    """A DELETE of a claim that a process has sent."""

    claim: str
    sent: int
    """The server's revision when it was sent."""
    listed: int
    """The server's revision when the process sent its last LIST of pods that was answered."""


class Dead(ConnectionResetError):
    """The process has died."""


class FaultyTransport:
    """A transport that carries out a plan and counts requests and events."""

    def __init__(self, cluster: Cluster, inner: Transport, plan: FaultPlan, start: int = 0) -> None:
        self._cluster, self._inner, self._plan = cluster, inner, plan
        self.requests = start
        self.writes = 0
        self.events = 0
        self.vain: list[str] = []
        """Writes that the server accepted and that changed nothing."""
        self.refused: list[str] = []
        """Writes that the server refused as invalid."""
        self.deletions: list[ClaimDeletion] = []
        self.partitioned = False
        """Whether the connection is cut, open streams included."""
        self.stalled = ""
        """The plural name of the kind whose watches stay open and bring nothing."""
        self.contested = False
        """Whether every other write is answered with a conflict and does not reach the server."""
        self.dead = asyncio.Event()
        self._listed: dict[str, None] = {}
        self._pods_listed = 0
        self._until = cluster.clock.monotonic() + plan.stale_seconds if plan.stale_at else 0.0

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if self.dead.is_set():
            raise Dead
        self.requests += 1
        if self.partitioned:
            raise ConnectionResetError("no route to host")
        dies = self.requests == self._plan.dies_at
        if dies:
            self.dead.set()
            if not self._plan.delivered:
                raise Dead
        self.writes += _changes(method, path, query)
        if _changes(method, path, query) and self._is_refused():
            return _conflict()
        before = self._cluster.store.revision
        self._note_deletion(method, path, before)
        response = await self._inner.send(method, path, self._query(path, query), headers, body)
        self._note_list(method, path, query, response, before)
        if dies:
            await response.close()
            raise Dead
        accepted = _changes(method, path, query) and response.status < 300
        if accepted and self._cluster.store.revision == before:
            now = self._cluster.clock.monotonic()
            self.vain.append(f"{method} {path} at t={now:.3f} changed nothing: {body!r}")
        if response.status == 422:
            refused = self._refused(method, path, body, response.body)
            return HttpResponse.around(response, refused)
        if method == "GET" and ("watch", "true") in query:
            return HttpResponse.around(response, self._stream(path, response.body))
        return response

    def _note_deletion(self, method: str, path: str, before: int) -> None:
        if method == "DELETE" and "/resourceclaims/" in path:
            claim = path.rpartition("/")[2]
            self.deletions.append(ClaimDeletion(claim, before, self._pods_listed))

    def _note_list(
        self, method: str, path: str, query: Query, response: Response, before: int
    ) -> None:
        """Note the first page of a LIST of pods: the others show the same revision."""
        names = {name for name, _ in query}
        first = names.isdisjoint(("watch", "continue", "fieldSelector"))
        if method == "GET" and path.endswith("/pods") and first and response.status < 300:
            self._pods_listed = before

    def _is_refused(self) -> bool:
        """Whether the write that was just counted gets a conflict as its answer."""
        return self.writes == self._plan.refused_at or (self.contested and self.writes % 2 == 1)

    def _query(self, path: str, query: Query) -> Query:
        """Let the first list of every kind show an older revision."""
        collection = path.count("/") == (3 if path.startswith("/api/") else 4)
        at_checkpoint = any(name in ("watch", "resourceVersion") for name, _ in query)
        first = collection and path not in self._listed and not at_checkpoint
        if not self._plan.stale_at or not first or ("limit", "500") not in query:
            return query
        self._listed[path] = None
        version = str(self._plan.stale_at)
        return [*query, ("resourceVersion", version), ("resourceVersionMatch", "Exact")]

    async def _refused(
        self, method: str, path: str, sent: bytes | None, body: AsyncIterator[bytes]
    ) -> AsyncIterator[bytes]:
        async for part in body:
            if b"injected fault" not in part and _FAILED_TEST not in part:
                self.refused.append(f"{method} {path} was invalid: {sent!r}: {part!r}")
            yield part

    async def _stream(self, path: str, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        late = self._until - self._cluster.clock.monotonic()
        if late > 0:
            await self._cluster.clock.sleep(late)
        async for part in body:
            while self.stalled and path.endswith(f"/{self.stalled}"):
                await self._cluster.clock.sleep(STALL_STEP)
            if self.partitioned:
                raise ConnectionResetError("no route to host")
            kept: list[bytes] = []
            for line in part.splitlines(keepends=True):
                if b'"BOOKMARK"' not in line[:40]:
                    self.events += 1
                    if self.events == self._plan.withheld:
                        if kept:
                            yield b"".join(kept)
                        await self._cluster.clock.sleep(self._plan.withheld_seconds)
                        yield _gone()
                        return
                kept.append(line)
            yield b"".join(kept)


def _changes(method: str, path: str, query: Query) -> bool:
    """Whether a request is a write. Leases do not count: a renewal may be sent twice unchanged."""
    other = path.endswith("reviews") or "/leases/" in path or ("dryRun", "All") in query
    return method in WRITES and not other


def _conflict() -> Response:
    status = {"kind": "Status", "status": "Failure", "code": 409, "reason": "Conflict"}

    async def body() -> AsyncIterator[bytes]:
        yield json.dumps(status).encode()

    return HttpResponse(409, {"content-type": "application/json"}, body())


def _gone() -> bytes:
    status = {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired"}
    return json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
