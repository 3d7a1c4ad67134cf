"""The history of a real cluster: every version of every object, in order, with its writer.

The versions come from a watch of etcd from the first revision on. The watch stays open while the
API server is killed. The API server has to store objects as JSON, and its audit log names the
writers (``Wanted(history=True)``).

If etcd is restored from a backup, the history goes on: what the restore changes is in it as writes
of ``RESTORE``, and the numbers of the revisions grow on.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from msgspec.structs import replace

from kube_in_process.real.client import Document, lines
from kube_in_process.real.servers.audit import AUDITED, AuditedWrite, AuditLog
from kube_in_process.storage.store import Revision, decode, encode

Listener = Callable[[Revision], None]
_Address = tuple[str, str, str]
"""Plural, namespace and name."""

FOLLOWED = frozenset(
    {
        *("pods", "nodes", "podgroups", "resourceclaims", "claimreservations", "downgradeplans"),
        *("deployments", "replicasets", "statefulsets", "jobs", "namespaces"),
    }
)
"""The plurals of the kinds that are in the history."""

RESTORE = "restore"
"""The writer of what a restore of etcd changes."""
_AUDITED = frozenset(name for names in AUDITED.values() for name in names)
_WAIT_SECONDS = 3.0
_LOOK_SECONDS = 0.02
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None)


class HistoryLost(Exception):
    """The history has a gap: etcd was compacted beyond this position, or went away."""


@dataclass(slots=True)
class History:
    """The revisions read so far.

    Args:
        storage_url: the client URL of etcd.
        audit: the audit log, which names the writers. Without it, only ``managers`` does.
        managers: users by field manager, for writes that the audit log lacks because the API
            server was killed.
    """

    storage_url: str
    audit: AuditLog | None = None
    managers: Mapping[str, str] = field(default_factory=dict)
    revisions: list[Revision] = field(default_factory=list)
    """In the order in which etcd made them."""
    _now: dict[_Address, Revision] = field(default_factory=dict)
    """The last revision of each object that exists."""
    _ahead: int = 0
    """How far the numbers are ahead of etcd's, since a restore."""
    _reading: asyncio.Task[None] | None = None
    _rewinding: asyncio.Lock = field(default_factory=asyncio.Lock)
    _received: int = 0
    _waiting: deque[tuple[float, Revision]] = field(default_factory=deque)
    _listeners: list[Listener] = field(default_factory=list)
    _moved: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def position(self) -> int:
        """All revisions up to this number have been handed to the listeners."""
        return self._waiting[0][1].number - 1 if self._waiting else self._received

    def subscribe(self, listener: Listener) -> None:
        """Call ``listener`` with each revision, in order, as soon as its writer is known."""
        self._listeners.append(listener)

    async def run(self) -> None:
        """Follow until cancelled.

        Raises:
            HistoryLost: etcd was compacted beyond this position, or went away.
        """
        async with aiohttp.ClientSession(timeout=_NO_TIMEOUT, read_bufsize=2**20) as session:
            while True:
                await self._follow(session)
                async with self._rewinding:
                    pass

    async def _follow(self, session: aiohttp.ClientSession) -> None:
        """Follow until ``rewind`` ends the watch."""
        read = self._reading = asyncio.create_task(self._read(session), name="history")
        try:
            while not read.done():
                self._release(time.monotonic())
                await asyncio.wait({read}, timeout=_LOOK_SECONDS)
            if read.cancelled():
                return
            await read
        except aiohttp.ClientError as error:
            raise HistoryLost(f"etcd at {self.storage_url} went away: {error}") from error
        finally:
            read.cancel()
        raise HistoryLost(f"etcd at {self.storage_url} ended the watch")

    async def rewind(self, restore: Callable[[], int]) -> None:
        """Restore etcd while the history is followed. The API server must be down already.

        Args:
            restore: restores etcd, starts the servers, and returns the revision of the backup.
        """
        async with self._rewinding:
            await self.caught_up()
            if self.audit is not None:
                self.audit.forget()
            assert self._reading is not None
            self._reading.cancel()
            revision = restore()
            now = time.time()
            restored = [
                revision_there
                for pair in await self._stored(revision)
                if (revision_there := _revision({"kv": pair}, int(pair["mod_revision"]), now))
                is not None
            ]
            for change in restoring(self._now, restored, self._received + 1):
                self._received = change.number
                self._emit(change, AuditedWrite(RESTORE, "update"))
            self._ahead = self._received - revision

    async def _stored(self, revision: int) -> list[Mapping[str, Any]]:
        """All keys and values as they were at a revision."""
        body = {
            "key": _encoded(_PREFIX),
            "range_end": _encoded(_PREFIX[:-1] + "0"),
            "revision": revision,
        }
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.storage_url}/v3/kv/range", json=body) as answer,
        ):
            return list((await answer.json(content_type=None)).get("kvs") or ())

    async def caught_up(self) -> None:
        """Wait until everything that has been written so far is in ``revisions``.

        This writes a key of its own and waits until the watch has passed the key's revision.
        """
        body = {"key": _encoded(_MARK), "value": ""}
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.storage_url}/v3/kv/put", json=body) as answer,
        ):
            wanted = int((await answer.json(content_type=None))["header"]["revision"]) + self._ahead
        while self.position < wanted:
            self._moved.clear()
            await self._moved.wait()

    async def _read(self, session: aiohttp.ClientSession) -> None:
        first, end = _ALL
        request = {
            "key": _encoded(first),
            "range_end": _encoded(end),
            "start_revision": self._received + 1 - self._ahead,
            "prev_kv": True,
        }
        body = {"create_request": request}
        async with session.post(f"{self.storage_url}/v3/watch", json=body) as answer:
            async for line in lines(answer.content.iter_any()):
                self._take(json.loads(line)["result"])

    def _take(self, result: Mapping[str, Any]) -> None:
        if result.get("compact_revision"):
            raise HistoryLost(f"etcd begins with revision {result['compact_revision']} now")
        now, arrived = time.time(), time.monotonic()
        for event in result.get("events") or ():
            number = int(event["kv"]["mod_revision"]) + self._ahead
            revision = _revision(event, number, now)
            if revision is not None:
                self._waiting.append((arrived, revision))
            self._received = max(self._received, number)

    def _release(self, now: float) -> None:
        """Hand on the waiting revisions in order, each when its writer is known.

        A revision without a known writer is handed on after ``_WAIT_SECONDS``.
        """
        self._moved.set()
        if self._waiting and self.audit is not None:
            self.audit.read()
        while self._waiting:
            arrived, revision = self._waiting[0]
            write = self._author(revision)
            if write is None and _is_audited(revision) and now - arrived < _WAIT_SECONDS:
                return
            self._waiting.popleft()
            self._emit(revision, write or self._guess(revision))

    def _emit(self, revision: Revision, write: AuditedWrite) -> None:
        known = replace(revision, actor=write.user, verb=write.verb, subresource=write.subresource)
        self.revisions.append(known)
        if known.type == "DELETED":
            self._now.pop(_address(known), None)
        else:
            self._now[_address(known)] = known
        for listener in self._listeners:
            listener(known)

    def _author(self, revision: Revision) -> AuditedWrite | None:
        if self.audit is None:
            return None
        address, version = _address(revision), str(revision.number - self._ahead)
        if revision.type != "DELETED":
            return self.audit.writer(address, version)
        uid = str(decode(revision.data)["metadata"].get("uid", ""))
        return self.audit.remover(address, version, uid)

    def _guess(self, revision: Revision) -> AuditedWrite:
        """Guess the writer of a revision that the audit log does not explain.

        If all requests that the API server was killed in are of one user, it is that user. If they
        are of several users, the field manager decides between them. If there are none, the log
        does not have the request at all, as with the deletion of a whole collection. The writer is
        then the field manager's name, and no user of ``managers``.
        """
        if self.audit is None or not _is_audited(revision):
            return self._by_manager(revision, self.managers)
        lost = self.audit.lost(_address(revision), revision.at)
        by_manager = self._by_manager(revision, {write.agent: write.user for write in lost})
        if len({write.user for write in lost}) == 1:
            return lost[0]
        return by_manager

    def _by_manager(self, revision: Revision, users: Mapping[str, str]) -> AuditedWrite:
        """The user of the field manager that wrote last. A removal leaves no managed field."""
        entries = revision.object()["metadata"].get("managedFields") or ()
        latest: Document = max(entries, key=lambda entry: str(entry.get("time", "")), default={})
        manager = str(latest.get("manager", ""))
        verb = {"ADDED": "create", "DELETED": "delete"}.get(revision.type, "update")
        return AuditedWrite(users.get(manager, manager), verb, str(latest.get("subresource", "")))


_PREFIX, _MARK = "/registry/", "/claimctl-history"
_ALL = ("/", "0")
"""The range of all keys that begin with a slash."""


def _encoded(key: str) -> str:
    return base64.b64encode(key.encode()).decode()


def restoring(
    now: Mapping[_Address, Revision], restored: Sequence[Revision], first: int
) -> list[Revision]:
    """The revisions that lead from the present objects to the restored ones.

    Pods go before the claims change, and pods that come back do so after the claims: in this order
    no pod is on a claim that has lost its devices.

    Args:
        now: the last revision of each present object.
        restored: each restored object.
        first: the number of the first revision.
    """
    kept = {_address(revision): revision for revision in restored}
    gone = [
        replace(revision, type="DELETED", previous=revision.data)
        for address, revision in now.items()
        if address not in kept
    ]
    changed = [
        replace(revision, type="MODIFIED", previous=now[address].data)
        if address in now
        else replace(revision, type="ADDED", previous=None)
        for address, revision in kept.items()
        if address not in now or now[address].data != revision.data
    ]
    gone.sort(key=lambda revision: revision.plural != "pods")
    changed.sort(key=lambda revision: revision.plural == "pods")
    return [
        replace(revision, number=first + index) for index, revision in enumerate((*gone, *changed))
    ]


def _address(revision: Revision) -> _Address:
    return (revision.plural, revision.namespace, revision.name)


def _revision(event: Mapping[str, Any], number: int, now: float) -> Revision | None:
    """One etcd event as a revision, or None if its kind is not in ``FOLLOWED``."""
    key = base64.b64decode(event["kv"]["key"]).decode()
    parts = key.removeprefix(_PREFIX).split("/")
    plural = _plural(parts)
    if not key.startswith(_PREFIX) or plural not in FOLLOWED:
        return None
    before = event.get("prev_kv")
    previous = None if before is None else _object(before["value"], int(before["mod_revision"]))
    deleted = event.get("type") == "DELETE"
    if deleted and previous is None:
        return None
    version = int(event["kv"]["mod_revision"])
    obj = previous if deleted else _object(event["kv"]["value"], version)
    assert obj is not None
    shown = {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(version)}}
    meta = obj["metadata"]
    change = "DELETED" if deleted else "ADDED" if previous is None else "MODIFIED"
    return Revision(
        number=number,
        type=change,
        group=obj["apiVersion"].rpartition("/")[0],
        plural=plural,
        namespace=meta.get("namespace", ""),
        name=meta["name"],
        data=encode(shown),
        previous=None if previous is None else encode(previous),
        actor="",
        verb="",
        at=now,
    )


def _plural(parts: Sequence[str]) -> str:
    """The plural in an etcd key. Custom resources have their group first; nodes are 'minions'."""
    if "." in parts[0] and len(parts) > 1:
        return parts[1]
    return "nodes" if parts[0] == "minions" else parts[0]


def _object(value: str, version: int) -> Document:
    """The object with its version, which etcd stores outside the object."""
    obj = decode(base64.b64decode(value))
    obj["metadata"]["resourceVersion"] = str(version)
    return obj


def _is_audited(revision: Revision) -> bool:
    return revision.plural in _AUDITED
