"""JobSet, LeaderWorkerSet and RayJob: their definitions, and controllers that act as the real ones
do.

The definitions have the names, subresources and fields of the published ones (jobset.x-k8s.io
v1alpha2, leaderworkerset.x-k8s.io v1), or keep every field (ray.io v1). Pod templates keep every
field unchecked.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from claimctl.kube.errors import AlreadyExists, Conflict, NotFound
from claimctl.wire.meta import ObjectHeader, find_condition
from claimctl.wire.resources import JOBS, PODS, STATEFULSETS, Resource
from claimctl.wire.workloads import CustomWorkload, Job
from tests.e2e.harness import NAMESPACE, Stage

Json = dict[str, Any]
JOBSETS = Resource("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet", CustomWorkload)
LEADERS = Resource(
    "leaderworkerset.x-k8s.io", "v1", "leaderworkersets", "LeaderWorkerSet", CustomWorkload
)
RAYJOBS = Resource("ray.io", "v1", "rayjobs", "RayJob", CustomWorkload)
RAYCLUSTERS = Resource("ray.io", "v1", "rayclusters", "RayCluster", CustomWorkload)
ATTEMPT = "jobset.sigs.k8s.io/restart-attempt"
"""The label of a JobSet's Jobs that says after how many restarts they were made."""
_LOOK_SECONDS = 0.5
_SET_NAME = "leaderworkerset.sigs.k8s.io/name"
_GROUP_INDEX = "leaderworkerset.sigs.k8s.io/group-index"
_WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"

_TEXT, _FLAG = {"type": "string"}, {"type": "boolean"}
_NUMBER = {"type": "integer", "format": "int32"}
_OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_LABELS = {"type": "object", "additionalProperties": _TEXT}


def _object(**fields: Json) -> Json:
    return {"type": "object", "properties": fields}


def _list(of: Json, key: str) -> Json:
    return {
        "type": "array",
        "items": {**of, "required": [key]},
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
    }


_CONDITIONS = _list(
    _object(
        type=_TEXT,
        status={"type": "string", "enum": ["True", "False", "Unknown"]},
        observedGeneration={"type": "integer", "format": "int64"},
        lastTransitionTime={"type": "string", "format": "date-time"},
        reason=_TEXT,
        message=_TEXT,
    ),
    "type",
)
_JOBSET_SPEC = _object(
    replicatedJobs=_list(
        _object(
            name=_TEXT,
            groupName={**_TEXT, "default": "default"},
            replicas={**_NUMBER, "default": 1},
            template=_OPEN,
        ),
        "name",
    ),
    network=_object(enableDNSHostnames=_FLAG, subdomain=_TEXT, publishNotReadyAddresses=_FLAG),
    successPolicy=_object(operator={"type": "string", "enum": ["All", "Any"]}),
    failurePolicy=_object(
        maxRestarts={**_NUMBER, "default": 0},
        restartStrategy={"type": "string", "enum": ["Recreate", "BlockingRecreate"]},
    ),
    suspend=_FLAG,
    managedBy=_TEXT,
    ttlSecondsAfterFinished=_NUMBER,
)
_COUNTS = dict.fromkeys(("ready", "succeeded", "failed", "active", "suspended"), _NUMBER)
_JOBSET_STATUS = _object(
    conditions=_CONDITIONS,
    restarts=_NUMBER,
    restartsCountTowardsMax=_NUMBER,
    terminalState=_TEXT,
    replicatedJobsStatus=_list(_object(name=_TEXT, **_COUNTS), "name"),
)
_LEADER_SPEC = _object(
    replicas={**_NUMBER, "default": 1},
    leaderWorkerTemplate=_object(
        leaderTemplate=_OPEN,
        workerTemplate=_OPEN,
        size={**_NUMBER, "default": 1, "minimum": 1},
        restartPolicy={
            "type": "string",
            "default": "RecreateGroupOnPodRestart",
            "enum": ["Default", "RecreateGroupOnPodRestart", "None"],
        },
    ),
    startupPolicy={
        "type": "string",
        "default": "LeaderCreated",
        "enum": ["LeaderCreated", "LeaderReady"],
    },
)
_LEADER_STATUS = _object(
    conditions=_CONDITIONS,
    replicas=_NUMBER,
    readyReplicas=_NUMBER,
    updatedReplicas=_NUMBER,
    hpaPodSelector=_TEXT,
)
_SCALE = {
    "specReplicasPath": ".spec.replicas",
    "statusReplicasPath": ".status.replicas",
    "labelSelectorPath": ".status.hpaPodSelector",
}
SHAPES: dict[str, tuple[Json, Json]] = {
    JOBSETS.kind: (_object(spec=_JOBSET_SPEC, status=_JOBSET_STATUS), {"status": {}}),
    LEADERS.kind: (
        _object(spec=_LEADER_SPEC, status=_LEADER_STATUS),
        {"status": {}, "scale": _SCALE},
    ),
}
"""By kind: the schema and the subresources."""


def owned(body: Json, owner: ObjectHeader, resource: Resource[Any]) -> Json:
    """The manifest, with the object as its controller."""
    reference = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}}


class Operator(ABC):
    """The controller of one kind. It looks at the objects twice a second.

    ``may_make`` is clear while it makes no object: then a restart takes as long as a test wants.
    """

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.may_make = asyncio.Event()
        self.may_make.set()

    @property
    @abstractmethod
    def resource(self) -> Resource[CustomWorkload]:
        """The kind that it makes objects for."""

    @abstractmethod
    async def act(self, workload: CustomWorkload) -> None:
        """Bring what the workload owns closer to what it wants."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self._run(), name=f"controller of {self.resource.kind}")
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            for each in (await self.stage.client.list(self.resource, NAMESPACE)).items:
                if not each.metadata.deleting:
                    with suppress(Conflict, NotFound, AlreadyExists):
                        await self.act(each)
            await self.stage.clock.sleep(_LOOK_SECONDS)

    async def make(
        self, resource: Resource[Any], body: Json, owner: ObjectHeader, kind: Resource[Any]
    ) -> None:
        if self.may_make.is_set():
            await self.stage.create(resource, owned(body, owner, kind))


class JobSets(Operator):
    """Makes the Jobs of JobSets. After a failure it deletes all of them and makes them anew, under
    the same names, at most ``failurePolicy.maxRestarts`` times."""

    resource = JOBSETS

    async def act(self, workload: CustomWorkload) -> None:
        spec, status = _plain(workload.spec), _plain(workload.status)
        jobs = [each for each in await self._jobs() if _is_under(each, workload)]
        if _conditions(status) & {"Completed", "Failed"}:
            await self._delete(each for each in jobs if not _job_conditions(each))
            return
        restarts = int(status.get("restarts") or 0)
        stale = [
            each for each in jobs if (each.metadata.labels or {}).get(ATTEMPT) != str(restarts)
        ]
        current = [each for each in jobs if each not in stale]
        bodies = dict(self._bodies(workload, spec, restarts))
        if any("Failed" in _job_conditions(each) for each in current):
            most = int((spec.get("failurePolicy") or {}).get("maxRestarts") or 0)
            change = {"restarts": restarts + 1} if restarts < most else _over("Failed")
            await self.stage.patch_status(JOBSETS, workload.metadata.name, {"status": change})
            return
        complete = [each for each in current if "Complete" in _job_conditions(each)]
        if len(complete) == len(bodies):
            change = _over("Completed")
            await self.stage.patch_status(JOBSETS, workload.metadata.name, {"status": change})
            return
        await self._delete(stale)
        for each in current:
            if each.spec.suspend != bool(spec.get("suspend")):
                change = {"spec": {"suspend": bool(spec.get("suspend"))}}
                await self.stage.patch(JOBS, each.metadata.name, change)
        taken = {each.metadata.name for each in jobs}
        for name, body in bodies.items():
            if name not in taken:
                await self.make(JOBS, body, workload, JOBSETS)

    async def _jobs(self) -> tuple[Job, ...]:
        return (await self.stage.client.list(JOBS, NAMESPACE)).items

    async def _delete(self, jobs: Iterable[Job]) -> None:
        for each in jobs:
            if not each.metadata.deleting:
                await self.stage.delete(JOBS, each.metadata.name, propagation="Foreground")

    def _bodies(
        self, workload: CustomWorkload, spec: Json, restarts: int
    ) -> Iterable[tuple[str, Json]]:
        for replicated in spec["replicatedJobs"]:
            for index in range(replicated.get("replicas", 1)):
                name = f"{workload.metadata.name}-{replicated['name']}-{index}"
                meta = {"name": name, "labels": {ATTEMPT: str(restarts)}}
                wanted = replicated["template"]["spec"]
                suspend = bool(spec.get("suspend"))
                yield name, {"metadata": meta, "spec": {**wanted, "suspend": suspend}}


class LeaderWorkerSets(Operator):
    """Makes a StatefulSet of leaders, and for each leader a StatefulSet of its workers, which
    belongs to the pod of the leader. It copies the annotations to all of them, and later keeps only
    those of the leaders up to date. A group is made anew with its leader."""

    resource = LEADERS

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage)
        self._applied: dict[str, Json] = {}
        """By workload: what the StatefulSet of its leaders is to want."""

    async def act(self, workload: CustomWorkload) -> None:
        spec, name = _plain(workload.spec), workload.metadata.name
        template, replicas = spec["leaderWorkerTemplate"], spec.get("replicas", 1)
        leader_template = template.get("leaderTemplate") or template["workerTemplate"]
        sets = (await self.stage.client.list(STATEFULSETS, NAMESPACE)).items
        named = {each.metadata.name: each for each in sets}
        noted = workload.metadata.annotations or {}
        labels = {_SET_NAME: name, _WORKER_INDEX: "0"}
        body = _stateful_set(name, replicas, leader_template, noted, labels)
        if (leaders := named.get(name)) is None:
            await self.make(STATEFULSETS, body, workload, LEADERS)
            return
        wanted = {key: body["spec"][key] for key in ("replicas", "template")}
        if self._applied.get(name) != wanted:
            await self.stage.patch(STATEFULSETS, name, {"spec": wanted})
            self._applied[name] = wanted
        if (copied := leaders.metadata.annotations or {}) != noted:
            change = dict.fromkeys(copied) | noted
            await self.stage.patch(STATEFULSETS, name, {"metadata": {"annotations": change}})
        for pod in (await self.stage.client.list(PODS, NAMESPACE)).items:
            leader = pod.metadata.name
            if _is_under(pod, leaders) and not pod.metadata.deleting and leader not in named:
                size, worker_template = template["size"] - 1, template["workerTemplate"]
                labels = {_SET_NAME: name, _GROUP_INDEX: leader.rpartition("-")[2]}
                body = _stateful_set(leader, size, worker_template, noted, labels)
                body["spec"]["ordinals"] = {"start": 1}
                await self.make(STATEFULSETS, body, pod, PODS)


class RayJobs(Operator):
    """Makes the RayCluster of a RayJob, with a copy of its annotations, and the pod of its head."""

    resource = RAYJOBS

    async def act(self, workload: CustomWorkload) -> None:
        name = workload.metadata.name
        clusters = (await self.stage.client.list(RAYCLUSTERS, NAMESPACE)).items
        mine = [each for each in clusters if _is_under(each, workload)]
        if not mine:
            meta = {"name": f"{name}-cluster", "annotations": workload.metadata.annotations or {}}
            spec = _plain(workload.spec)["rayClusterSpec"]
            await self.make(RAYCLUSTERS, {"metadata": meta, "spec": spec}, workload, RAYJOBS)
        for cluster in mine:
            head = {"name": f"{cluster.metadata.name}-head"}
            template = _plain(cluster.spec)["headGroupSpec"]["template"]
            pods = (await self.stage.client.list(PODS, NAMESPACE)).items
            if not any(_is_under(pod, cluster) for pod in pods):
                await self.make(PODS, {**template, "metadata": head}, cluster, RAYCLUSTERS)


def _stateful_set(
    name: str,
    replicas: int,
    template: Json,
    annotations: dict[str, str],
    labels: dict[str, str],
) -> Json:
    """A part of a LeaderWorkerSet; the labels are those of its pods."""
    meta = {**template.get("metadata", {}), "labels": labels}
    return {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {
            "replicas": replicas,
            "serviceName": labels[_SET_NAME],
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {**template, "metadata": meta},
        },
    }


def _plain(raw: msgspec.Raw) -> Json:
    return msgspec.json.decode(raw, type=Json) if bytes(raw) else {}


def _conditions(status: Json) -> set[str]:
    return {each["type"] for each in status.get("conditions") or () if each["status"] == "True"}


def _job_conditions(job: Job) -> set[str]:
    names = ("Complete", "Failed")
    held = ((name, find_condition(job.status.conditions, name)) for name in names)
    return {name for name, each in held if each is not None and each.status == "True"}


def _is_under(child: ObjectHeader, owner: ObjectHeader) -> bool:
    return any(each.uid == owner.metadata.uid for each in child.metadata.owner_references)


def _over(condition: str) -> Json:
    return {"conditions": [{"type": condition, "status": "True"}], "terminalState": condition}
