"""The history of a scenario on a real server: the versions that watches show, for the witness."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from kube_in_process.real.client import Version
from kube_in_process.real.servers.following import Follower
from kube_in_process.real.servers.nodes import Fleet
from kube_in_process.storage.store import Revision
from msgspec.structs import replace

from claimctl.kube.errors import NotServed
from claimctl.wire.base import Object
from claimctl.wire.seams import Transport
from claimctl_demo.documents import DocumentClient
from tests.e2e.authors import Authors

_NAMESPACED: tuple[Version, ...] = (
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("batch/v1", "Job"),
    ("claimctl.io/v1alpha1", "ClaimReservation"),
    ("scheduling.k8s.io/v1alpha2", "PodGroup"),
    ("scheduling.k8s.io/v1beta1", "PodGroup"),
    ("scheduling.k8s.io/v1", "PodGroup"),
)
_CLUSTER: tuple[Version, ...] = (("v1", "Node"), ("claimctl.io/v1alpha1", "DowngradePlan"))
_EARLIER_SECONDS = 1.0
"""A watch may report a vanished pod late, while claimctl knows it from another watch."""
_QUIET_SECONDS, _MOST_QUIETS = 0.4, 10


@dataclass(slots=True)
class History:
    """Watches the objects of a scenario from before its start.

    After a restart of the server there may be a gap. Versions in the gap are missing, but not the
    final ones.
    """

    transport: Transport
    namespace: str
    fleet: Fleet
    authors: Authors
    _seen: list[tuple[str, Revision]] = field(default_factory=list)
    """Revisions, each with the UID of its object."""
    _known: dict[str, bytes] = field(default_factory=dict)
    _followers: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(self) -> None:
        """Start the watches; returns when every kind is watched."""
        client = DocumentClient(self.transport, "witness")
        listed = []
        for kind in (self.fleet.claims, *_NAMESPACED, *_CLUSTER):
            try:
                served = await client.served(*kind)
            except NotServed:
                continue
            group = kind[0].rpartition("/")[0]
            space = self.namespace if served.namespaced else ""
            path = served.at(space)
            notice = partial(self._notice, group, served.plural, path)
            follower = Follower(self.transport, kind, notice, space)
            listed.append(follower.listed)
            self._followers.append(asyncio.create_task(follower.run(), name=f"follow {path}"))
        for each in listed:
            await each.wait()

    async def stop(self) -> None:
        for task in self._followers:
            task.cancel()
        await asyncio.gather(*self._followers, return_exceptions=True)

    def forget(self) -> None:
        """Forget what was seen: after a restore of etcd, versions begin again."""
        self._seen.clear()

    async def since(self, number: int) -> Iterable[Revision]:
        """The revisions after ``number``, once no further one is on its way."""
        for _ in range(_MOST_QUIETS):
            before = len(self._seen)
            await asyncio.sleep(_QUIET_SECONDS)
            if len(self._seen) == before:
                break
        # A watch can be faster than the answer to the write, so look authors up only now.
        signed = [replace(each, actor=self._author(uid, each)) for uid, each in self._seen]
        ordered = sorted(signed, key=attrgetter("number"))
        return [each for each in ordered if each.number > number]

    def _author(self, uid: str, revision: Revision) -> str:
        wrote = self.authors.of(str(revision.number))
        return self.authors.deleted.get(uid, wrote) if revision.type == "DELETED" else wrote

    def _notice(self, group: str, plural: str, path: str, change: str, obj: Object) -> None:
        meta = obj["metadata"]
        if plural == "nodes" and meta["name"] not in self.fleet.names:
            return
        version, address = meta["resourceVersion"], f"{path}/{meta['name']}"
        previous = self._known.pop(address, None)
        data = json.dumps(obj).encode()
        if change != "DELETED":
            self._known[address] = data
        vanished = change == "DELETED" and plural == "pods"
        revision = Revision(
            number=int(version),
            type=change,
            group=group,
            plural=plural,
            namespace=meta.get("namespace", ""),
            name=meta["name"],
            data=data,
            previous=previous,
            actor="",
            verb="",
            at=asyncio.get_running_loop().time() - (_EARLIER_SECONDS if vanished else 0.0),
        )
        self._seen.append((meta["uid"], revision))
