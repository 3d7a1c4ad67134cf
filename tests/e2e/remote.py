"""The emulated components against an API server somewhere else: what is missing there.

They decide on a copy of the cluster, kept up by watches, and write over HTTP. A write holds up
the event loop until it is answered, as the components are synchronous.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import ssl
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit

import yaml

from claimctl.embedded.components.claims import ClaimController
from claimctl.embedded.components.deployments import DeploymentController
from claimctl.embedded.components.garbage import GarbageCollector
from claimctl.embedded.components.jobs import JobController
from claimctl.embedded.components.kubelet import Kubelet
from claimctl.embedded.components.namespaces import NamespaceController
from claimctl.embedded.components.nodes import NodeController
from claimctl.embedded.components.podgroups import PodGroupController
from claimctl.embedded.components.recorder import EventRecorder
from claimctl.embedded.components.replicasets import ReplicaSetController
from claimctl.embedded.components.scheduler import Scheduler
from claimctl.embedded.components.statefulsets import StatefulSetController
from claimctl.embedded.core import Api
from claimctl.embedded.errors import StatusError
from claimctl.embedded.kinds import Kind
from claimctl.embedded.options import ClusterOptions
from claimctl.embedded.reading import Target
from claimctl.embedded.requests import Actor, DeleteOptions, WriteOptions
from claimctl.embedded.runtime import Component, Context
from claimctl.embedded.store import Address, Author, Objects, Store, decode, encode
from claimctl.embedded.views import Feed
from claimctl.kube.clock import LoopClock
from claimctl.wire.seams import Transport

Object = dict[str, Any]
_TYPES = {
    "json": "application/json-patch+json",
    "merge": "application/merge-patch+json",
    "strategic": "application/strategic-merge-patch+json",
}
CONTROLLERS = (
    DeploymentController,
    ReplicaSetController,
    StatefulSetController,
    JobController,
    ClaimController,
    PodGroupController,
    GarbageCollector,
    NamespaceController,
)
STAND_INS = ("kubelet", "scheduler", "controllers")
"""What can be stood in for: nodes with their devices and pods; kube-scheduler; KCM."""
_WATCHED = (
    *("namespaces", "nodes", "pods", "deployments", "replicasets", "statefulsets"),
    *("controllerrevisions", "jobs", "resourceclaims", "resourceclaimtemplates"),
    *("resourceslices", "deviceclasses", "podgroups", "configmaps", "serviceaccounts"),
)
"""What components decide on. Everything else is asked for when it is wanted."""


@dataclass(frozen=True, slots=True)
class Door:
    """How to reach an API server without an event loop."""

    url: str
    token: str
    tls: ssl.SSLContext | None

    @classmethod
    def of(cls, kubeconfig: Path) -> Door:
        """The current context of a kubeconfig with a token (or nothing) for its user."""
        document = yaml.safe_load(kubeconfig.read_text())
        named = {key: document[key][0][key[:-1]] for key in ("clusters", "users")}
        server, token = named["clusters"]["server"], named["users"].get("token", "")
        return cls(server, token, _trust(named["clusters"]))

    def ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Object:
        """Raises StatusError for every refusal."""
        parts = urlsplit(self.url)
        if self.tls is not None:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                parts.netloc, timeout=30, context=self.tls
            )
        else:
            connection = http.client.HTTPConnection(parts.netloc, timeout=30)
        if self.token:
            headers = {**headers, "authorization": f"Bearer {self.token}"}
        try:
            connection.request(method, path, None if body is None else encode(body), headers)
            answer = connection.getresponse()
            return _answered(answer.status, answer.read())
        finally:
            connection.close()


def _trust(cluster: Object) -> ssl.SSLContext | None:
    if not cluster["server"].startswith("https:"):
        return None
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return ssl.create_default_context(cadata=authority)


def _answered(status: int, data: bytes) -> Object:
    body: Object = json.loads(data)
    if status < 400:
        return body
    details = body.get("details")
    raise StatusError(status, body.get("reason", ""), body.get("message", ""), details)


class Mirror(Store):
    """A copy of the watched kinds of another cluster, under the versions they have there.

    ``elsewhere`` lists the objects of any other kind in a namespace.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(clock)
        self.elsewhere: Callable[[str, str, str], Objects] = lambda *_: []

    def list(self, group: str, plural: str, namespace: str = "") -> Objects:
        if plural in _WATCHED or not namespace:
            return super().list(group, plural, namespace)
        return self.elsewhere(group, plural, namespace)

    def take(self, kind: Kind, change: str, obj: Object) -> None:
        """An object as it is there now; what is not newer is known already."""
        if kind.plural not in _WATCHED:
            return
        meta = obj["metadata"]
        obj = {**obj, "kind": kind.kind, "apiVersion": kind.api_version()}
        address = Address(*kind.storage, meta.get("namespace", ""), meta["name"])
        previous = self.get_bytes(address)
        version = int(meta["resourceVersion"])
        if previous is not None and int(_version(previous)) >= version:
            return
        if previous is None and change == "DELETED":
            return
        table = self._table(address.group, address.plural)
        self.revision = version - 1
        if change == "DELETED":
            table.drop(address.key)
        else:
            change = "ADDED" if previous is None else "MODIFIED"
            table.put(address.key, encode(obj))
        author = Author("", change)
        self._commit(table, self._revision(change, address, author, encode(obj), previous))


def _version(data: bytes) -> str:
    return str(decode(data)["metadata"]["resourceVersion"])


class RemoteApi(Api):
    """The verbs of the core, with every write made elsewhere."""

    def __init__(self, mirror: Mirror, options: ClusterOptions, door: Door) -> None:
        super().__init__(mirror, LoopClock(), options.features())
        self.mirror = mirror
        self._door = door
        mirror.elsewhere = self._ask_for

    def _ask_for(self, group: str, plural: str, namespace: str) -> Objects:
        kind = self.kinds.by_plural(group, plural)
        if kind is None:
            return []
        try:
            answer = self._door.ask("GET", path_of(Target(kind, namespace)), None, {})
        except StatusError as error:
            if error.code == 404:
                return []
            raise
        return [{**obj, "kind": kind.kind} for obj in answer["items"] or ()]

    def create(
        self, actor: Actor, kind: Kind, ns: str, obj: Object, options: WriteOptions | None = None
    ) -> Object:
        body = {**obj, "kind": kind.kind, "apiVersion": kind.api_version()}
        return self._send("POST", actor, Target(kind, ns), body)

    def post(
        self, actor: Actor, target: Target, body: Object, options: WriteOptions | None = None
    ) -> Object:
        return self._send("POST", actor, target, body)

    def update(
        self,
        actor: Actor,
        kind: Kind,
        ns: str,
        name: str,
        obj: Object,
        subresource: str = "",
        options: WriteOptions | None = None,
    ) -> Object:
        body = {**obj, "kind": kind.kind, "apiVersion": kind.api_version()}
        return self._send("PUT", actor, Target(kind, ns, name, subresource), body)

    def patch(  # noqa: PLR0913 - the address of an object, the patch and the options
        self,
        actor: Actor,
        kind: Kind,
        ns: str,
        name: str,
        patch_type: str,
        patch: Any,
        subresource: str = "",
        options: WriteOptions | None = None,
    ) -> Object:
        target = Target(kind, ns, name, subresource)
        return self._send("PATCH", actor, target, patch, _TYPES[patch_type])

    def delete(
        self, actor: Actor, kind: Kind, ns: str, name: str, options: DeleteOptions | None = None
    ) -> Object:
        options = options or DeleteOptions()
        conditions = {"uid": options.uid, "resourceVersion": options.resource_version}
        body: Object = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": options.propagation or None,
            "gracePeriodSeconds": options.grace_period_seconds,
            "preconditions": {key: value for key, value in conditions.items() if value} or None,
        }
        return self._send("DELETE", actor, Target(kind, ns, name), body)

    def _send(
        self,
        method: str,
        actor: Actor,
        target: Target,
        body: Any,
        media: str = "application/json",
    ) -> Object:
        headers = {"content-type": media, "user-agent": actor.manager or actor.user}
        answer = self._door.ask(method, path_of(target), body, headers)
        if method != "DELETE" and answer.get("kind") == target.kind.kind:
            self.mirror.take(target.kind, "MODIFIED", answer)
        return answer


def path_of(target: Target) -> str:
    kind = target.kind
    root = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    space = f"/namespaces/{target.namespace}" if kind.namespaced and target.namespace else ""
    rest = "/".join(part for part in (kind.plural, target.name, target.subresource) if part)
    return f"{root}{space}/{rest}"


@dataclass
class StandIns:
    """Components that work on a cluster elsewhere."""

    transport: Transport
    api: RemoteApi
    components: list[Component[Any]] = field(default_factory=list)

    async def run(self) -> None:
        """Follow the cluster and let the components work, until cancelled."""
        kinds = [self.api.kinds.named(plural) for plural in _WATCHED if self._served(plural)]
        versions = {kind: await self._listed(kind) for kind in kinds}
        for component in self.components:
            component.start()
        work = [each.run() for each in self.components]
        await asyncio.gather(*work, *(self._follow(k, v) for k, v in versions.items()))

    def _served(self, plural: str) -> bool:
        return any(kind.plural == plural for kind in self.api.kinds)

    async def _listed(self, kind: Kind) -> str:
        answer = await self.transport.send("GET", path_of(Target(kind, "")), (), {}, None)
        body = json.loads(b"".join([part async for part in answer.body]))
        for obj in body["items"]:
            self.api.mirror.take(kind, "ADDED", obj)
        return str(body["metadata"]["resourceVersion"])

    async def _follow(self, kind: Kind, version: str) -> None:
        while True:
            query = (("watch", "true"), ("resourceVersion", version))
            async for event in self._events(kind, query):
                obj = event["object"]
                if event["type"] == "ERROR":
                    raise RuntimeError(f"the watch of {kind.plural} broke: {obj}")
                version = obj["metadata"]["resourceVersion"]
                self.api.mirror.take(kind, event["type"], obj)

    async def _events(self, kind: Kind, query: Iterable[tuple[str, str]]) -> AsyncIterator[Object]:
        path = path_of(Target(kind, ""))
        answer = await self.transport.send("GET", path, tuple(query), {}, None)
        rest = b""
        async for part in answer.body:
            *lines, rest = (rest + part).split(b"\n")
            for line in lines:
                yield json.loads(line)


@asynccontextmanager
async def standing_in(
    transport: Transport, kubeconfig: Path, options: ClusterOptions, parts: Iterable[str]
) -> AsyncIterator[None]:
    """Let some of ``STAND_INS`` work on the cluster of a kubeconfig."""
    wanted = frozenset(parts)
    if not wanted:
        yield
        return
    mirror = Mirror(asyncio.get_running_loop().time)
    stand_ins = StandIns(transport, RemoteApi(mirror, options, Door.of(kubeconfig)))
    stand_ins.components = _components(stand_ins.api, mirror, options, wanted)
    task = asyncio.create_task(stand_ins.run(), name="stand-ins")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _components(
    api: RemoteApi, mirror: Mirror, options: ClusterOptions, wanted: frozenset[str]
) -> list[Component[Any]]:
    feed = Feed(mirror)
    context = Context(
        api=api,
        options=options,
        features=options.features(),
        clock=LoopClock(),
        feed=feed,
        views=feed.views(),
        rng=Random(0),
    )
    recorder = EventRecorder(context)
    context.events = recorder
    made: list[Component[Any]] = [recorder]
    if "kubelet" in wanted:
        kubelet = Kubelet(context)
        made += [kubelet, NodeController(context, kubelet)]
    if "scheduler" in wanted:
        made.append(Scheduler(context))
    if "controllers" in wanted:
        made += [controller(context) for controller in CONTROLLERS]
    return made
