"""The controllers of ReplicaSets and ReplicationControllers: they keep as many pods as wanted."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, ClassVar

from kube_in_process.components.objects import (
    annotations_of,
    controller_of,
    controller_reference,
    controller_uid,
    deleting,
    finalizers,
    key_of,
    labels,
    matches,
    name,
    namespace,
    refused_at_the_end,
    same_but_status,
    seconds_between,
    uid,
    with_owner,
    without_owner,
)
from kube_in_process.components.pods import (
    active,
    ended,
    node_name,
    phase,
    ready,
    ready_since,
)
from kube_in_process.errors import NotFound, StatusError
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.runtime.views import Change, Key
from kube_in_process.storage.requests import DeleteOptions

BURST = 40
"""The most pods that one sync creates or deletes."""
GATHER_SECONDS = 0.005
"""Seconds in which changes of pods are collected into one sync, for each hundred of them."""

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"


class ReplicaSetController(Component[Key]):
    """Keeps as many active pods of each ReplicaSet as wanted, and counts them."""

    name = "replicaset-controller"
    plural: ClassVar[str] = "replicasets"
    kind: ClassVar[str] = "ReplicaSet"

    def watch(self) -> None:
        self.views["pods"].index("controller", controller_uid)
        self.views["pods"].index("orphan", orphaned)
        self.views[self.plural].subscribe(self._replica_set_changed)
        self.views["pods"].subscribe(self._pod_changed)

    def _replica_set_changed(self, change: Change) -> None:
        if not same_but_status(change.old, change.new):
            self.queue.add(change.key)

    def _pod_changed(self, change: Change) -> None:
        pod = change.object
        owner = controller_of(pod)
        if owner is not None and owner["kind"] == self.kind:
            size = self.views["pods"].count("controller", owner["uid"])
            pause = GATHER_SECONDS * (1 + size / 100)
            self.queue.add_after((namespace(pod), owner["name"]), pause)
        elif owner is None and change.new is not None and labels(pod):
            for replica_set in self.views[self.plural].items():
                if namespace(replica_set) == namespace(pod) and _selects(replica_set, pod):
                    self.queue.add_after(key_of(replica_set), GATHER_SECONDS)

    def sync(self, key: Key) -> None:
        replica_set = self.views[self.plural].get(*key)
        if replica_set is None:
            return
        pods = self._pods(replica_set)
        alive = [pod for pod in pods if active(pod)]
        if not deleting(replica_set):
            self._manage(replica_set, alive)
        self._write_status(replica_set, pods, alive)

    def _pods(self, replica_set: Object) -> list[Object]:
        pods = list(self.views["pods"].by("controller", uid(replica_set)))
        if not deleting(replica_set):
            pods = [pod for pod in pods if self._keeps(replica_set, pod)]
            for pod in self.views["pods"].by("orphan", namespace(replica_set)):
                if _selects(replica_set, pod) and active(pod):
                    adopted = self.api.patch("pods", *key_of(pod), with_owner(pod, replica_set))
                    pods.append(adopted)
        return pods

    def _keeps(self, replica_set: Object, pod: Object) -> bool:
        """Release a pod whose labels the selector no longer matches."""
        if _selects(replica_set, pod) or not active(pod):
            return True
        self.api.patch("pods", *key_of(pod), without_owner(pod, uid(replica_set)))
        return False

    def _manage(self, replica_set: Object, pods: list[Object]) -> None:
        missing = _wanted(replica_set) - len(pods)
        if missing > 0:
            for _ in range(min(missing, BURST)):
                if create_pod(self, replica_set, pod_from(replica_set)) is None:
                    return
        elif missing < 0:
            for pod in deletable(pods)[: min(-missing, BURST)]:
                delete_pod(self, replica_set, pod)
        if abs(missing) > BURST:
            self.queue.add(key_of(replica_set))

    def _write_status(self, replica_set: Object, pods: list[Object], alive: list[Object]) -> None:
        current = self.views[self.plural].get(*key_of(replica_set))
        if current is None:
            return
        status = self._status(current, pods, alive)
        if status != current.get("status"):
            self.api.update(self.plural, {**current, "status": status}, "status")

    def _status(self, replica_set: Object, pods: list[Object], alive: list[Object]) -> Object:
        wanted = (replica_set["spec"]["template"]["metadata"].get("labels") or {}).items()
        labelled = sum(1 for pod in alive if wanted <= labels(pod).items())
        are_ready = [pod for pod in alive if ready(pod)]
        counts = {
            "fullyLabeledReplicas": labelled,
            "readyReplicas": len(are_ready),
            "availableReplicas": self._available(replica_set, are_ready),
        }
        status: Object = {"replicas": len(alive)}
        status |= {key: value for key, value in counts.items() if value}
        if self.kind == "ReplicaSet" and self.context.features.version >= (1, 36):
            going = [pod for pod in pods if deleting(pod) and not ended(pod)]
            status["terminatingReplicas"] = len(going)
        status["observedGeneration"] = replica_set["metadata"]["generation"]
        conditions = (replica_set.get("status") or {}).get("conditions")
        return {**status, "conditions": conditions} if conditions else status

    def _available(self, replica_set: Object, pods: list[Object]) -> int:
        """Of ready pods, how many are so for ``minReadySeconds``. For others, look again later."""
        wanted, now = replica_set["spec"].get("minReadySeconds", 0), self.context.now()
        waits = [available_in(pod, wanted, now) for pod in pods]
        rest = [wait for wait in waits if wait > 0]
        if rest:
            self.queue.add_after(key_of(replica_set), min(rest))
        return len(waits) - len(rest)


class ReplicationControllerController(ReplicaSetController):
    """The same for ReplicationControllers, whose selectors are plain labels."""

    name = "replication-controller"
    plural = "replicationcontrollers"
    kind = "ReplicationController"


def create_pod(controller: Component[Any], workload: Object, pod: Object) -> Object | None:
    """Create a pod of a workload; None if the namespace is being deleted and refuses pods."""
    try:
        created = controller.api.create("pods", pod)
    except StatusError as error:
        if refused_at_the_end(error):
            return None
        controller.event(workload, "Warning", "FailedCreate", f"Error creating: {error.message}")
        raise
    controller.event(workload, "Normal", "SuccessfulCreate", f"Created pod: {name(created)}")
    return created


def delete_pod(controller: Component[Any], workload: Object, pod: Object) -> None:
    with suppress(NotFound):
        controller.api.delete("pods", *key_of(pod), DeleteOptions(uid(pod)))
    controller.event(workload, "Normal", "SuccessfulDelete", f"Deleted pod: {name(pod)}")


def available_in(pod: Object, wanted: int, now: str) -> float:
    """Seconds until a ready pod has been ready for ``wanted`` seconds."""
    if not wanted:
        return 0.0
    return max(wanted - seconds_between(ready_since(pod), now), 0.0)


def orphaned(pod: Object) -> tuple[str, ...]:
    """Index values: the namespace of a pod with labels and without a controller."""
    return (namespace(pod),) if controller_of(pod) is None and labels(pod) else ()


def _selects(workload: Object, pod: Object) -> bool:
    selector = workload["spec"].get("selector") or {}
    if workload["kind"] == "ReplicationController":
        return bool(selector) and selector.items() <= labels(pod).items()
    return matches(selector, labels(pod))


def _wanted(workload: Object) -> int:
    replicas: int = workload["spec"].get("replicas", 1)
    return replicas


def pod_from(workload: Object, **metadata: object) -> Object:
    """A pod from the template of a workload, with the workload as its controller."""
    template = workload["spec"]["template"]
    given = template.get("metadata") or {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": f"{name(workload)}-",
            "namespace": namespace(workload),
            "labels": labels({"metadata": given}),
            "annotations": annotations_of({"metadata": given}),
            "finalizers": finalizers({"metadata": given}),
            "ownerReferences": [controller_reference(workload)],
            **metadata,
        },
        "spec": template["spec"],
    }


def deletable(pods: list[Object]) -> list[Object]:
    """The pods in the order in which a ReplicaSet deletes them (ActivePodsWithRanks)."""
    newest = sorted(pods, key=lambda pod: pod["metadata"]["creationTimestamp"], reverse=True)
    newest.sort(key=ready_since, reverse=True)
    newest.sort(key=_rank)
    return newest


def _rank(pod: Object) -> tuple[bool, int, bool, int]:
    phases = {"Pending": 0, "Unknown": 1, "Running": 2}
    cost = int(annotations_of(pod).get(DELETION_COST, "0"))
    return bool(node_name(pod)), phases.get(phase(pod), 2), ready(pod), cost
