"""The real and the embedded cluster for stories, behind one interface."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol

from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.cluster import Cluster
from kube_in_process.components.kubelet.nodes import UNREACHABLE
from kube_in_process.options import ClusterOptions, Preset, Timings
from kube_in_process.real.client import DocumentClient, Refused, RequestFailed, Version
from kube_in_process.real.servers.following import Follower
from kube_in_process.real.servers.nodes import Fleet, join, leave, report
from kube_in_process.seams import Transport
from kube_in_process.storage.store import Revision

from judges.differential.actions.level import shortened

Document = dict[str, Any]
NODE_GRACE = 20.0
"""Seconds without a Lease renewal until a node counts as lost, on both clusters."""
_BEAT_SECONDS = 6.5
_BEATS_AT_ONCE = 32
_LOOP_TURNS = 2
"""How many times a state may come back before it counts as an endless loop."""
_LOOP_GOES_ON = 20

WATCHED: tuple[Version, ...] = (
    ("v1", "Pod"),
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "ControllerRevision"),
    ("batch/v1", "Job"),
    ("policy/v1", "PodDisruptionBudget"),
)
PLURALS = {
    "pods": "Pod",
    "deployments": "Deployment",
    "replicasets": "ReplicaSet",
    "statefulsets": "StatefulSet",
    "controllerrevisions": "ControllerRevision",
    "jobs": "Job",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "resourceclaims": "ResourceClaim",
    "resourceclaimtemplates": "ResourceClaimTemplate",
    "podgroups": "PodGroup",
    "namespaces": "Namespace",
    "nodes": "Node",
    "events": "Event",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """One watch event; ``at`` is the time at which it was seen."""

    at: float
    version: int
    type: str
    kind: str
    name: str
    object: Document


@dataclass
class Log:
    """The events of one story: in its namespace and on its nodes."""

    now: Callable[[], float]
    seen: list[Seen] = field(default_factory=list)
    current: dict[tuple[str, str], Document] = field(default_factory=dict)
    messages: dict[str, Document] = field(default_factory=dict)
    """Kubernetes Events by name."""
    last: float = 0.0
    """The time of the last event that was not part of a loop."""
    born: dict[str, int] = field(default_factory=dict)
    """By UID, the version at which the object was seen first; it gives their order of age."""
    _turns: Counter[str] = field(default_factory=Counter)

    def begin(self) -> int:
        """Begin a step: repeated states count as new again. Returns the number of events so far."""
        self._turns.clear()
        self.last = self.now()
        return len(self.seen)

    def take(self, change: str, kind: str, obj: Document) -> None:
        plain = obj["metadata"]["name"]
        if kind == "Event":
            self.messages[plain] = obj
            return
        version = int(obj["metadata"]["resourceVersion"])
        self.born.setdefault(obj["metadata"]["uid"], version)
        self.seen.append(Seen(self.now(), version, change, kind, plain, obj))
        if change == "DELETED":
            self.current.pop((kind, plain), None)
        else:
            self.current[kind, plain] = obj
        state = f"{change} {kind} {plain} {json.dumps(shortened(kind, obj), sort_keys=True)}"
        self._turns[state] += 1
        if kind != "Node" and self._turns[state] <= _LOOP_TURNS:
            self.last = self.now()

    @property
    def loops(self) -> bool:
        """Whether controllers have written the same states over and over since the step began."""
        return max(self._turns.values(), default=0) > _LOOP_GOES_ON

    def all(self, kind: str) -> list[Document]:
        return [obj for (known, _), obj in self.current.items() if known == kind]


class StoryStage(Protocol):
    """A cluster for one story. After ``quiet`` seconds without an event it is at rest."""

    transport: Transport
    fleet: Fleet
    log: Log

    @property
    def quiet(self) -> float: ...
    @property
    def spare(self) -> float:
        """How many seconds less are enough if no component polls or batches once a second."""
        ...

    @property
    def lag(self) -> float:
        """Seconds until a controller has seen and answered a write."""
        ...

    def witnessed(self, since: float) -> bool:
        """Whether the cluster has finished other work that began after ``since``. Then its
        components have also done their work for this story."""
        ...

    async def witness(self, since: float, until: float) -> None:
        """Wait until ``witnessed(since)``, at most until ``until``."""
        ...

    def wall(self) -> datetime: ...
    def lose(self, node: str) -> None: ...
    async def restore(self, node: str) -> None: ...


# The real cluster


@dataclass
class RealCluster:
    """A real control plane that many stories share, and its events."""

    transport: Transport
    version: tuple[int, int]
    pod_groups: bool
    logs: dict[str, Log] = field(default_factory=dict)
    beating: dict[str, Fleet] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    meant: set[str] = field(default_factory=set)
    """Nodes that a story has lost, also if they are back."""
    disturbed: set[str] = field(default_factory=set)
    """Namespaces of stories with a node that was lost because the machine was too slow."""
    canary: Canary = field(init=False)
    ends: bool = False
    """Whether the servers are thrown away, with the objects that stories leave."""
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)
    client: DocumentClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = DocumentClient(self.transport, "differential")
        self.canary = Canary()

    async def start(self) -> None:
        """Start the watches and the Leases of the nodes."""
        fleet = Fleet(self.version)
        kinds = [*WATCHED, ("v1", "Node"), ("v1", "Namespace"), ("v1", "Event"), fleet.claims]
        kinds.append((fleet.resource_api, "ResourceClaimTemplate"))
        if self.pod_groups:
            kinds.append(("scheduling.k8s.io/v1alpha2", "PodGroup"))
        for kind in kinds:
            follower = Follower(self.transport, kind, self._taking(kind[1]))
            self._tasks.append(asyncio.create_task(follower.run(), name=f"follow {kind[1]}"))
        self._tasks.append(asyncio.create_task(self._beat(), name="heartbeats"))
        stage = await self.open(CANARY, 1, _CANARY_DEVICES, 0.0)
        self._tasks.append(asyncio.create_task(self._sing(stage), name="canary"))

    async def _sing(self, stage: RealStage) -> None:
        """Measure again and again how long the controllers and the scheduler take."""
        for body in canary_workload(stage.fleet):
            await self.client.create(body)
        while True:
            gone = {pod["metadata"]["uid"] for pod in stage.log.all("Pod")}
            for pod in stage.log.all("Pod"):
                path = f"/api/v1/namespaces/{CANARY}/pods/{pod['metadata']['name']}"
                options = {"gracePeriodSeconds": 0}
                with suppress(RequestFailed, OSError):
                    await answer(self.transport, "DELETE", path, (), options)
            self.canary.begin()
            while not (replaced := _replaced(stage.log, gone)):
                if self.canary.now() > _GIVEN_UP:
                    break
                await asyncio.sleep(0.02)
            await self.canary.end(replaced=replaced)
            await asyncio.sleep(_CANARY_PAUSE)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _taking(self, kind: str) -> Callable[[str, Document], None]:
        def take(change: str, obj: Document) -> None:
            key = obj["metadata"].get("namespace") or ""
            if kind == "Namespace":
                key = obj["metadata"]["name"]
            elif kind == "Node":
                key = obj["metadata"]["name"].partition("-")[0]
            log = self.logs.get(key)
            if log is not None:
                log.take(change, kind, obj)
                if kind == "Node" and obj["metadata"]["name"] not in self.meant and _is_lost(obj):
                    self.disturbed.add(key)

        return take

    async def _beat(self) -> None:
        """Renew the Leases of all nodes that are not lost."""
        while True:
            begun = time.monotonic()
            names = [name for fleet in self.beating.values() for name in fleet.names]
            for chunk in range(0, len(names), _BEATS_AT_ONCE):
                part = names[chunk : chunk + _BEATS_AT_ONCE]
                await asyncio.gather(
                    *(self._renew(lease) for lease in part if lease not in self.lost)
                )
            await asyncio.sleep(max(begun + _BEAT_SECONDS - time.monotonic(), 0.5))

    async def _renew(self, node: str) -> None:
        lease: Version = ("coordination.k8s.io/v1", "Lease")
        renewed = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec = {"holderIdentity": node, "leaseDurationSeconds": 40, "renewTime": renewed}
        with suppress(RequestFailed, OSError):
            try:
                await self.client.patch(lease, "kube-node-lease", node, {"spec": spec})
            except Refused:
                meta = {"name": node, "namespace": "kube-node-lease"}
                body = {"apiVersion": lease[0], "kind": lease[1], "metadata": meta, "spec": spec}
                with suppress(Refused):
                    await self.client.create(body)

    async def open(self, namespace: str, nodes: int, devices: int, quiet: float) -> RealStage:
        """Create a namespace and nodes for one story."""
        fleet = _fleet(self.version, namespace, nodes, devices)
        log = Log(asyncio.get_running_loop().time)
        self.logs[namespace] = log
        self.beating[namespace] = fleet
        await asyncio.gather(*(self._renew(name) for name in fleet.names))
        await join(self.client, fleet)
        await make_namespace(self.client, namespace)
        return RealStage(self, namespace, self.transport, fleet, log, quiet)

    async def close(self, stage: RealStage) -> None:
        """Delete the workloads and nodes of a story without waiting. The namespace stays.

        To empty a namespace, the namespace controller lists each kind several times: more requests
        than a story has.
        """
        log = self.logs.pop(stage.namespace)
        if self.ends:
            return
        with suppress(RequestFailed, OSError):
            for kind in COLLECTIONS:
                if log.all(kind):
                    await self._clear(stage, kind)
            self.beating.pop(stage.namespace, None)
            await leave(self.client, stage.fleet)

    async def _clear(self, stage: RealStage, kind: str) -> None:
        group, plural = COLLECTIONS[kind]
        path = f"/{group}/namespaces/{stage.namespace}/{plural}"
        options = {"gracePeriodSeconds": 0, "propagationPolicy": "Background"}
        await answer(self.transport, "DELETE", path, (), options)


COLLECTIONS = {
    "Deployment": ("apis/apps/v1", "deployments"),
    "StatefulSet": ("apis/apps/v1", "statefulsets"),
    "ReplicaSet": ("apis/apps/v1", "replicasets"),
    "Job": ("apis/batch/v1", "jobs"),
    "Pod": ("api/v1", "pods"),
}
CANARY = "canary"
_CANARY_DEVICES = 64
_CLAIMS_SINCE = (1, 33)
_GIVEN_UP = 30.0
"""Seconds after which a canary that is not replaced is deleted again."""
_CANARY_PAUSE = 0.4
_CONTROLLERS = 3
"""How many controllers act one after the other, at least, until the canary is replaced."""
_REMEMBERED = 8
"""How many measurements of the canary count."""


@dataclass
class Canary:
    """Measures the time from a pod's deletion until its claim is gone and a new pod with its own
    claim is bound in its place.

    This takes ReplicaSets, generated claims, the garbage collector, the scheduler, and a watch.
    """

    took: list[float] = field(default_factory=list)
    begun: float | None = None
    latest: float = 0.0
    """The begin of the latest finished measurement."""
    ended: asyncio.Condition = field(default_factory=asyncio.Condition)

    def begin(self) -> None:
        self.begun = time.monotonic()

    async def end(self, *, replaced: bool = True) -> None:
        """End a measurement. One that was given up proves no work, and counts as slow."""
        self.took = [*self.took[1 - _REMEMBERED :], self.now()]
        if replaced:
            self.latest = self.begun or 0.0
        self.begun = None
        async with self.ended:
            self.ended.notify_all()

    def now(self) -> float:
        return 0.0 if self.begun is None else time.monotonic() - self.begun

    def longest(self) -> float:
        """The longest of the latest measurements and the current one, in seconds."""
        return max([*self.took, self.now()])


def canary_workload(fleet: Fleet) -> list[Document]:
    """A ReplicaSet of one pod, and the template of its claim.

    Before 1.33 the pod has no claim: with one, it was not replaced any more after a minute.
    """
    labels = {"a": CANARY}
    metadata = {"name": CANARY, "namespace": CANARY}
    spec: Document = {
        "containers": [{"name": "c", "image": "x"}],
        "nodeSelector": {"kubernetes.io/hostname": fleet.names[0]},
        "tolerations": [{"operator": "Exists"}],
    }
    workload = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }
    if fleet.version < _CLAIMS_SINCE:
        return [workload]
    spec["resourceClaims"] = [{"name": "c", "resourceClaimTemplateName": CANARY}]
    wanted = {"name": "d", "exactly": {"deviceClassName": fleet.device_class}}
    template = {
        "apiVersion": fleet.resource_api,
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": {"devices": {"requests": [wanted]}}},
    }
    return [template, workload]


def _replaced(log: Log, gone: set[str]) -> bool:
    """Whether a new pod is bound and the claims of the deleted pods are gone."""
    owners = {
        owner["uid"]
        for claim in log.all("ResourceClaim")
        for owner in claim["metadata"].get("ownerReferences") or ()
    }
    return not owners & gone and any(_new_and_bound(pod, gone) for pod in log.all("Pod"))


def _is_lost(node: Document) -> bool:
    return any(taint["key"] == UNREACHABLE for taint in node["spec"].get("taints") or ())


def _new_and_bound(pod: Document, gone: set[str]) -> bool:
    return pod["metadata"]["uid"] not in gone and bool(pod["spec"].get("nodeName"))


@dataclass
class RealStage:
    cluster: RealCluster
    namespace: str
    transport: Transport
    fleet: Fleet
    log: Log
    shortest: float

    @property
    def quiet(self) -> float:
        """The seconds without an event that mean rest; longer while the cluster is slow."""
        return self.shortest + self.cluster.canary.longest()

    @property
    def spare(self) -> float:
        return self.shortest / 2

    @property
    def lag(self) -> float:
        return self.cluster.canary.longest() / _CONTROLLERS

    def witnessed(self, since: float) -> bool:
        return self.cluster.canary.latest > since

    async def witness(self, since: float, until: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until), self.cluster.canary.ended:
                await self.cluster.canary.ended.wait_for(lambda: self.witnessed(since))

    def wall(self) -> datetime:
        return datetime.now(UTC)

    def lose(self, node: str) -> None:
        self.cluster.lost.add(node)
        self.cluster.meant.add(node)

    async def restore(self, node: str) -> None:
        self.cluster.lost.discard(node)
        await self.cluster._renew(node)
        await report(self.cluster.client, self.fleet, node)


def _fleet(version: tuple[int, int], prefix: str, nodes: int, devices: int) -> Fleet:
    driver = f"{prefix}.tpu.example.com"
    return Fleet(version, nodes, devices, f"{prefix}-node", driver, f"{prefix}.tpu")


async def make_namespace(client: DocumentClient, name: str) -> None:
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})


async def answer(
    transport: Transport,
    method: str,
    path: str,
    query: tuple[tuple[str, str], ...],
    body: Document | None,
    content_type: str = "application/json",
) -> tuple[int, Document]:
    """Send a request as administrator; returns status and body of the answer."""
    headers = {"content-type": content_type, "accept": "application/json", "user-agent": "kubectl"}
    data = None if body is None else json.dumps(body).encode()
    response = await transport.send(method, path, query, headers, data)
    try:
        raw = b"".join([part async for part in response.body])
    finally:
        await response.close()
    try:
        document = json.loads(raw)
    except ValueError:
        document = {"message": raw.decode("utf-8", "replace")}
    return response.status, document if isinstance(document, dict) else {"message": str(document)}


# The embedded cluster


TIMINGS = Timings(
    job_sync=1.0,
    garbage_collection=0.02,
    scheduler_backoff=(1.0,),
    node_monitor_grace=NODE_GRACE,
    pod_eviction=None,
)
"""The timings of the real components, where they decide what happens."""


@dataclass
class EmbeddedStage:
    """An embedded cluster for one story, on a virtual clock."""

    cluster: Cluster
    namespace: str
    transport: Transport
    fleet: Fleet
    log: Log
    quiet: float = 1.6
    spare: float = 0.0
    lag: float = 0.0

    def witnessed(self, since: float) -> bool:
        return True

    async def witness(self, since: float, until: float) -> None:
        return None

    def wall(self) -> datetime:
        return self.cluster.clock.now()

    def lose(self, node: str) -> None:
        self.cluster.lose_node(node)

    async def restore(self, node: str) -> None:
        self.cluster.restore_node(node)

    def take(self, revision: Revision) -> None:
        kind = PLURALS.get(revision.plural)
        mine = revision.namespace == self.namespace
        if kind == "Namespace":
            mine = revision.name == self.namespace
        if kind == "Node":
            mine = revision.name.startswith(self.fleet.prefix)
        if kind is not None and mine:
            self.log.take(revision.type, kind, self._served(revision))

    def _served(self, revision: Revision) -> Document:
        """The object in the version of resource.k8s.io in which the real side is watched."""
        obj = revision.object()
        group, _, version = self.fleet.resource_api.partition("/")
        if not obj["apiVersion"].startswith(f"{group}/"):
            return obj
        api = self.cluster.api
        resource = api.kinds.named(revision.plural)
        return api.strategies.of(resource).outward(obj, resource, version)


async def embedded(
    version: tuple[int, int], pod_groups: bool, namespace: str, nodes: int, devices: int
) -> EmbeddedStage:
    options = ClusterOptions(
        preset=Preset.POD_GROUPS if pod_groups else Preset.PLAIN,
        kubernetes_version=version,
        nodes=0,
        devices_per_node=0,
        timings=TIMINGS,
    )
    cluster = Cluster(options, LoopClock(EPOCH))
    cluster.pause("kubelet")
    await cluster.start()
    fleet = _fleet(version, namespace, nodes, devices)
    log = Log(LoopClock(EPOCH).monotonic)
    stage = EmbeddedStage(cluster, namespace, cluster.transport(), fleet, log)
    cluster.store.subscribe(stage.take)
    client = DocumentClient(stage.transport, "differential")
    await join(client, fleet)
    await make_namespace(client, namespace)
    return stage
