"""Plays the controller of LeaderWorkerSets as the published one acts (with ``maxSurge: 0`` and
``maxUnavailable: 1``), on the objects of the server alone.

A StatefulSet with the name of the workload has the leaders, one for each group. A StatefulSet with
the name of a leader, whose pod owns it, has the workers of its group, from ordinal 1 on; it is made
once, and anew with its leader. Another pod template or size is rolled out group by group from the
last one on, by the partition of the leaders.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from hashlib import sha256
from random import Random
from typing import Any

from kube_in_process.cluster import Cluster
from kube_in_process.runtime.local import ApiFor
from kube_in_process.storage.requests import MASTERS, Actor, DeleteOptions
from kube_in_process.storage.store import Revision

from tests.e2e.harness import NAMESPACE

Object = dict[str, Any]
PLURAL = "leaderworkersets"
PREFIX = "leaderworkerset.sigs.k8s.io"
SET_NAME, GROUP_INDEX = f"{PREFIX}/name", f"{PREFIX}/group-index"
WORKER_INDEX, REVISION = f"{PREFIX}/worker-index", f"{PREFIX}/template-revision-hash"
RESTARTS = "RecreateGroupOnPodRestart"
WATCHED = frozenset({PLURAL, "statefulsets", "pods"})
DELAYS = (0.0, 0.0, 0.1, 1.0, 4.0)
"""Seconds from a change until the controller acts."""


class GroupController:
    """Looks at everything some time after each change."""

    def __init__(self, cluster: Cluster, rng: Random) -> None:
        user = Actor("system:serviceaccount:lws-system:lws-controller-manager", (MASTERS,), "lws")
        self.api = ApiFor(cluster.api, user)
        self.may_act = asyncio.Event()
        """Clear while the controller is down."""
        self.may_act.set()
        self._cluster = cluster
        self._rng = rng
        self._changed = asyncio.Event()
        self._changed.set()
        self._templates: dict[str, Object] = {}
        """By the hash of a revision: ``spec.leaderWorkerTemplate``."""
        self._applied: dict[str, Object] = {}
        """By the UID of a workload: what was applied to the StatefulSet of its leaders."""

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Act meanwhile."""
        stop = self._cluster.store.subscribe(self._notice)
        task = asyncio.create_task(self._run(), name="controller of LeaderWorkerSets")
        try:
            yield
        finally:
            stop()
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    def unfinished(self) -> list[str]:
        """What the workloads want and what does not run yet."""
        missing = []
        for workload in self._there(PLURAL):
            name, spec = workload["metadata"]["name"], workload["spec"]
            states, wanted = self._states(workload), spec.get("replicas", 1)
            if len(states) != wanted or not all(ready and new for ready, new in states):
                missing.append(f"{PLURAL}/{name}: {wanted} groups are wanted, there are {states}")
        return missing

    def _notice(self, revision: Revision) -> None:
        if revision.plural in WATCHED:
            self._changed.set()

    async def _run(self) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(self._rng.choice(DELAYS))
            await self.may_act.wait()
            self._changed.clear()
            for workload in self._there(PLURAL):
                self._act(workload)

    def _there(self, plural: str) -> list[Object]:
        """The objects that are not being deleted."""
        found = self.api.list(plural, NAMESPACE)
        return [each for each in found if "deletionTimestamp" not in each["metadata"]]

    # -- one workload

    def _act(self, workload: Object) -> None:
        meta = workload["metadata"]
        leaders = self.api.find("statefulsets", NAMESPACE, meta["name"])
        if leaders is not None and (is_deleting(leaders) or not is_under(leaders, workload)):
            return
        body = self._leaders(workload, leaders)
        if self._applied.get(meta["uid"]) != body:
            self.api.patch("statefulsets", NAMESPACE, meta["name"], body, kind="apply")
            self._applied[meta["uid"]] = body
        for pod in self._pods(meta["name"]):
            if is_restarted(pod) and self._restarts(workload, pod):
                continue
            if WORKER_INDEX in pod["metadata"]["labels"] and not is_deleting(pod):
                self._make_workers(workload, pod)

    def _pods(self, workload: str) -> list[Object]:
        return list(self.api.list("pods", NAMESPACE, f"{SET_NAME}={workload}"))

    def _leaders(self, workload: Object, leaders: Object | None) -> Object:
        """The StatefulSet of the leaders, as it is to be now."""
        spec, name = workload["spec"], workload["metadata"]["name"]
        template, replicas = spec["leaderWorkerTemplate"], spec.get("replicas", 1)
        revision = _hash(template)
        self._templates[revision] = template
        partition = self._partition(workload, leaders, replicas, revision)
        labels = {SET_NAME: name, WORKER_INDEX: "0"}
        pods = template.get("leaderTemplate") or template["workerTemplate"]
        body = _part(workload, name, replicas, pods, labels, revision)
        rolling = {"partition": partition}
        body["spec"]["updateStrategy"] = {"type": "RollingUpdate", "rollingUpdate": rolling}
        return _owned(body, workload)

    def _make_workers(self, workload: Object, leader: Object) -> None:
        """The workers of a group have the revision of their leader."""
        meta, name = leader["metadata"], workload["metadata"]["name"]
        revision, leader_name = meta["labels"][REVISION], meta["name"]
        template = self._templates[revision]
        if template["size"] == 1:
            return
        if self.api.find("statefulsets", NAMESPACE, leader_name) is not None:
            return
        labels = {SET_NAME: name, GROUP_INDEX: leader_name.rpartition("-")[2]}
        pods, workers = template["workerTemplate"], template["size"] - 1
        body = _part(workload, leader_name, workers, pods, labels, revision)
        body["spec"]["ordinals"] = {"start": 1}
        self.api.create("statefulsets", _owned(body, leader), NAMESPACE)

    def _restarts(self, workload: Object, pod: Object) -> bool:
        """Delete the leader of a pod that has to restart with its group; whether it goes."""
        if workload["spec"]["leaderWorkerTemplate"].get("restartPolicy", RESTARTS) != RESTARTS:
            return False
        leader = self._leader_of(pod)
        if leader is None:
            return False
        if not is_deleting(leader):
            options = DeleteOptions(propagation="Foreground")
            self.api.delete("pods", NAMESPACE, leader["metadata"]["name"], options)
        return True

    def _leader_of(self, pod: Object) -> Object | None:
        """The leader of a pod; None if that one was made after the pod."""
        if WORKER_INDEX in pod["metadata"]["labels"]:
            return pod
        name = pod["metadata"]["name"].rpartition("-")[0]
        workers = self.api.find("statefulsets", NAMESPACE, name)
        leader = self.api.find("pods", NAMESPACE, name)
        if leader is None or workers is None:
            return None
        return leader if is_under(pod, workers) and is_under(workers, leader) else None

    # -- a rolling update

    def _partition(
        self, workload: Object, leaders: Object | None, replicas: int, revision: str
    ) -> int:
        """From which group on the leaders have the workload's present templates."""
        if leaders is None:
            return 0
        present: int = leaders["spec"]["replicas"]
        if leaders["metadata"]["labels"][REVISION] != revision:
            return min(replicas, present)
        partition: int = leaders["spec"]["updateStrategy"]["rollingUpdate"]["partition"]
        if present < replicas or partition == 0:
            return partition
        if present != replicas:
            return min(partition, replicas)
        return next_partition(self._states(workload), partition)

    def _states(self, workload: Object) -> list[tuple[bool, bool]]:
        """For each group: whether it is ready, and whether it has the present templates."""
        name = workload["metadata"]["name"]
        leaders = self.api.find("statefulsets", NAMESPACE, name)
        count = leaders["spec"]["replicas"] if leaders is not None else 0
        return [self._state(workload, f"{name}-{group}") for group in range(count)]

    def _state(self, workload: Object, leader: str) -> tuple[bool, bool]:
        """The published controller takes a group of one for not ready while the workload has a
        larger size, and then its rollout may wait for ever: here the group's own size counts."""
        revision = _hash(workload["spec"]["leaderWorkerTemplate"])
        pod = self.api.find("pods", NAMESPACE, leader)
        if pod is None or is_deleting(pod):
            return False, False
        ready = pod["status"].get("phase") == "Running"
        present = pod["metadata"]["labels"][REVISION]
        new = present == revision
        if self._templates[present]["size"] == 1:
            return ready, new
        workers = self.api.find("statefulsets", NAMESPACE, leader)
        if workers is None or is_deleting(workers):
            return False, False
        run = workers["status"].get("readyReplicas", 0) == workers["spec"]["replicas"]
        return ready and run, new and workers["metadata"]["labels"][REVISION] == revision


def next_partition(states: list[tuple[bool, bool]], partition: int) -> int:
    """One more group than those of the end that are ready and new; groups before it that are not
    ready anyway do not wait."""
    done = 0
    while done < len(states) and all(states[-1 - done]):
        done += 1
    least = max(len(states) - done - 1, 0)
    wanted = least + sum(not ready for ready, _ in states[:least])
    for group in range(min(wanted, len(states) - 1), least - 1, -1):
        ready, new = states[group]
        if ready and not new:
            break
        wanted = group
    return min(wanted, partition)


# -- objects


def _part(
    workload: Object,
    name: str,
    replicas: int,
    template: Object,
    labels: dict[str, str],
    revision: str,
) -> Object:
    """A StatefulSet of a workload; the labels are those of its pods."""
    noted, given = workload["metadata"].get("annotations") or {}, template.get("metadata") or {}
    marked = {"app": name, **labels, REVISION: revision}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "annotations": {**noted},
            "labels": {**labels, REVISION: revision},
        },
        "spec": {
            "replicas": replicas,
            "serviceName": labels[SET_NAME],
            "podManagementPolicy": "Parallel",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {**given, "labels": marked}, "spec": template["spec"]},
        },
    }


def _owned(body: Object, owner: Object) -> Object:
    """The object with another one as its controller."""
    head = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    named = {key: owner["metadata"][key] for key in ("name", "uid")}
    reference = {**head, **named, "controller": True, "blockOwnerDeletion": True}
    return {**body, "metadata": {**body["metadata"], "ownerReferences": [reference]}}


def _hash(template: Object) -> str:
    return sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()[:12]


def is_deleting(body: Object) -> bool:
    return "deletionTimestamp" in body["metadata"]


def is_under(child: Object, owner: Object) -> bool:
    owners = child["metadata"].get("ownerReferences") or ()
    return any(each["uid"] == owner["metadata"]["uid"] for each in owners)


def is_restarted(pod: Object) -> bool:
    """Whether the pod is being deleted, or a container of it runs for the second time."""
    statuses = pod["status"].get("containerStatuses") or ()
    return is_deleting(pod) or any(each.get("restartCount") for each in statuses)
