"""What the driver program answers to the kubelets, and what it publishes: decisions and files.

What its habits do is said once for all drivers, in ``kube_in_process.habits``. Each file is read
anew at each call, so that another process can change the habits at any time.
"""

from __future__ import annotations

import json
import os
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kube_in_process.habits import deciding
from kube_in_process.habits.habit import PREPARE, UNPREPARE, Checkpointed, Situation, Stage
from kube_in_process.habits.registry import read

_TIMEOUT_SECONDS = 10.0
Document = dict[str, Any]


class DriverRefusal(Exception):
    """Why a claim cannot be prepared, before the driver's habits are asked.

    Attributes:
        version: the claim's resourceVersion; 0 if it could not be read.
    """

    def __init__(self, text: str, version: int = 0) -> None:
        super().__init__(text)
        self.version = version


@dataclass(frozen=True, slots=True)
class Node:
    """A node, its kubelet's root folder, and the file of the ResourceSlice with its devices."""

    name: str
    root: Path
    offered: Path

    def slice(self) -> Document:
        """The ResourceSlice with the devices that the node offers now."""
        return dict(json.loads(self.offered.read_text()))

    def boot(self) -> str:
        """The boot ID of the node; '' if its kubelet has none of its own."""
        with suppress(OSError):
            return (self.root.parent / "boot-id").read_text().strip()
        return ""


@dataclass(frozen=True, slots=True)
class NodeApi:
    """The API server, for the few requests of a driver."""

    url: str
    token: str
    certificate: str
    resource_api: str

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """Send a request; returns the status and the answer.

        Raises:
            OSError: there is no answer.
        """
        wanted = urllib.request.Request(
            f"{self.url}/apis/{self.resource_api}/{path}",
            data=None if body is None else json.dumps(body).encode(),
            method=method,
            headers={
                "authorization": f"Bearer {self.token}",
                "content-type": "application/json",
            },
        )
        trust = ssl.create_default_context(cadata=self.certificate)
        try:
            with urllib.request.urlopen(wanted, timeout=_TIMEOUT_SECONDS, context=trust) as answer:
                return int(answer.status), json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                return error.code, {}

    def claim(self, namespace: str, name: str, uid: str) -> Document:
        """A claim, as the API server has it now.

        Raises:
            Refusal: there is no answer, or no such claim.
        """
        named = f"claim {namespace}/{name}"
        try:
            status, stored = self.request("GET", f"namespaces/{namespace}/resourceclaims/{name}")
        except OSError as error:
            raise DriverRefusal(f"the API server gives no answer: {error}") from None
        if status != 200 or stored["metadata"]["uid"] != uid:
            raise DriverRefusal(f"{named} ({uid}) does not exist")
        return dict(stored)


@dataclass(slots=True)
class Answers:
    """The answers of one driver on all of its nodes.

    Args:
        habits: the file of its habits.
        checkpoint: the file of what it remembers.
    """

    name: str
    api: NodeApi
    habits: Path
    checkpoint: Path
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _published: dict[str, _Publication] = field(default_factory=dict)
    """By node: what this process has published last."""

    def on(self, node: Node) -> deciding.Habits:
        """The habits that it has on a node now."""
        with suppress(OSError, ValueError):
            return deciding.on_node(read(json.loads(self.habits.read_text())), node.name)
        return []

    # Calls

    def prepare(
        self, node: Node, namespace: str, name: str, uid: str
    ) -> tuple[str, int, list[Document]]:
        """Prepare a claim: the error or '', the claim's version, and its devices of the driver."""
        try:
            claim = self.api.claim(namespace, name, uid)
            version = int(claim["metadata"]["resourceVersion"])
            if (claim.get("status") or {}).get("allocation") is None:
                raise DriverRefusal(f"claim {namespace}/{name} is not allocated", version)
        except DriverRefusal as refusal:
            return str(refusal), refusal.version, []
        habits = self.on(node)
        time.sleep(deciding.seconds(habits, PREPARE))
        with self._checkpoint(node) as known:
            situation = Situation(claim, known, time.time(), node.boot())
            reply = deciding.prepared(habits, situation, self._lacking(node, habits, claim))
            _note(known, uid, reply)
        devices = [] if reply.error else [_device(result) for result in self._results(claim)]
        return reply.error, version, devices

    def unprepare(self, node: Node, namespace: str, name: str, uid: str) -> str:
        """Unprepare a claim: the error, or ''."""
        habits = self.on(node)
        time.sleep(deciding.seconds(habits, UNPREPARE))
        with self._checkpoint(node) as known:
            meta = {"namespace": namespace, "name": name, "uid": uid}
            claim = known[uid].claim if uid in known else {"metadata": meta}
            situation = Situation(claim, known, time.time(), node.boot())
            reply = deciding.unprepared(habits, situation)
            _note(known, uid, reply)
        return reply.error

    def _lacking(self, node: Node, habits: deciding.Habits, claim: Document) -> str:
        there = deciding.has(habits, node.slice()["spec"]["devices"])
        names = {device["name"] for device in there}
        gone = [
            result["device"] for result in self._results(claim) if result["device"] not in names
        ]
        return str(gone[0]) if gone else ""

    def _results(self, claim: Mapping[str, Any]) -> list[Document]:
        results = claim["status"]["allocation"]["devices"]["results"]
        return [result for result in results if result["driver"] == self.name]

    # The checkpoint

    def begin(self, node: Node) -> None:
        """Read the checkpoint of a node anew, as a driver does that is started."""
        habits = self.on(node)
        with self._checkpoint(node) as known:
            claims = {}
            for uid, entry in known.items():
                meta = entry.claim["metadata"]
                with suppress(DriverRefusal):
                    claims[uid] = self.api.claim(meta["namespace"], meta["name"], uid)
            kept = deciding.restarted(habits, known, claims)
            known.clear()
            known.update(kept)

    @contextmanager
    def _checkpoint(self, node: Node) -> Iterator[dict[str, Checkpointed]]:
        """What the driver remembers on a node. Changes are written at the end."""
        with self._lock:
            every = json.loads(self.checkpoint.read_text()) if self.checkpoint.exists() else {}
            known = {
                uid: _entry(plain_entry) for uid, plain_entry in every.get(node.name, {}).items()
            }
            if any(entry.boot != node.boot() for entry in known.values()):
                known = deciding.rebooted(self.on(node), known)
            yield known
            plain = {uid: _plain(entry) for uid, entry in known.items()}
            if plain == every.get(node.name, {}):
                return
            every[node.name] = plain
            fresh = self.checkpoint.with_name(f"{self.checkpoint.name}.new")
            fresh.write_text(json.dumps(every))
            os.replace(fresh, self.checkpoint)

    # What is published

    def publish(self, node: Node) -> None:
        """Publish the slice of a node, if it is missing or old."""
        wanted = node.slice()
        path = f"resourceslices/{wanted['metadata']['name']}"
        status, present = self.api.request("GET", path)
        now = self._publication(node, wanted, present if status == 200 else None)
        wanted["spec"]["devices"] = now.shown
        wanted["spec"]["pool"]["generation"] = now.generation
        if status == 404:
            status, _ = self.api.request("POST", "resourceslices", wanted)
        elif status == 200 and self._published.get(node.name) != now:
            present["spec"] = wanted["spec"]
            status, _ = self.api.request("PUT", path, present)
        if status in (200, 201):
            self._published[node.name] = now

    def _publication(
        self, node: Node, wanted: Document, present: Mapping[str, Any] | None
    ) -> _Publication:
        """What the habits make of a node's slice. A pool of other devices is a new generation."""
        habits, devices = self.on(node), wanted["spec"]["devices"]
        with self._checkpoint(node) as known:
            used = {
                str(result["device"])
                for entry in known.values()
                if entry.stage is Stage.COMPLETED
                for result in self._results(entry.claim)
            }
        has = frozenset(str(device["name"]) for device in deciding.has(habits, devices))
        generation = int(wanted["spec"]["pool"]["generation"])
        if present is not None:
            there = int(present["spec"]["pool"]["generation"])
            last = self._published.get(node.name)
            shown = {str(device["name"]) for device in present["spec"].get("devices") or ()}
            before = last.has if last is not None else shown | used
            generation = max(generation, there + (has != before))
        return _Publication(has, deciding.shows(habits, devices, used), generation)


@dataclass(frozen=True, slots=True)
class _Publication:
    """What is published for a node, and the names of all devices that it has."""

    has: frozenset[str]
    shown: list[Document]
    generation: int


def _device(result: Mapping[str, Any]) -> Document:
    return {
        "request_names": [result["request"]],
        "pool_name": result["pool"],
        "device_name": result["device"],
    }


def _note(known: dict[str, Checkpointed], uid: str, reply: deciding.Reply) -> None:
    known.pop(uid, None)
    if reply.entry is not None:
        known[uid] = reply.entry


def _plain(entry: Checkpointed) -> Document:
    return {
        "claim": entry.claim,
        "stage": str(entry.stage),
        "since": entry.since,
        "boot": entry.boot,
    }


def _entry(plain: Mapping[str, Any]) -> Checkpointed:
    return Checkpointed(**{**plain, "stage": Stage(plain["stage"])})
