"""The disruption controller: how many pods of a PodDisruptionBudget may be evicted now."""

from __future__ import annotations

from kube_in_process.components.objects import (
    condition,
    controller_of,
    deleting,
    key_of,
    labels,
    made_condition,
    matches,
    namespace,
    scaled,
)
from kube_in_process.components.pods import active, ready
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.runtime.views import Change, Key

GATHER_SECONDS = 0.01
"""Seconds in which changes of pods are collected into one update."""

SOURCES = {
    "Deployment": "deployments",
    "ReplicaSet": "replicasets",
    "StatefulSet": "statefulsets",
    "Job": "jobs",
}


class DisruptionController(Component[Key]):
    name = "disruption-controller"

    def watch(self) -> None:
        self.views["poddisruptionbudgets"].subscribe(lambda change: self.queue.add(change.key))
        self.views["pods"].subscribe(self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        """Collect changes, but update at once when a pod is deleted.

        Upstream updates before a StatefulSet's controller has created the next pod.
        """
        deleted = change.new is None or deleting(change.new)
        pause = 0.0 if deleted else GATHER_SECONDS
        for budget in self.views["poddisruptionbudgets"].items():
            if namespace(budget) == change.key[0] and _covers(budget, change.object):
                self.queue.add_after(key_of(budget), pause)

    def sync(self, key: Key) -> None:
        budget = self.views["poddisruptionbudgets"].get(*key)
        if budget is None:
            return
        if not self._pods(budget):
            self.event(budget, "Normal", "NoPods", "No matching pods found")
        status = self._status(budget)
        if status != (budget.get("status") or {}):
            self.api.update("poddisruptionbudgets", {**budget, "status": status}, "status")

    def _status(self, budget: Object) -> Object:
        every = self._pods(budget)
        alive = [pod for pod in every if active(pod)]
        expected = self._expected(budget, every)
        desired = _desired(budget, expected)
        healthy = sum(1 for pod in alive if ready(pod))
        disrupted = self._disrupted(budget, alive)
        allowed = max(healthy - len(disrupted) - desired, 0) if expected else 0
        status: Object = {
            "observedGeneration": budget["metadata"].get("generation", 1),
            "disruptionsAllowed": allowed,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "conditions": self._conditions(budget, allowed),
        }
        return {**status, "disruptedPods": disrupted} if disrupted else status

    def _pods(self, budget: Object) -> list[Object]:
        return [
            pod
            for pod in self.views["pods"].items()
            if namespace(pod) == namespace(budget) and _covers(budget, pod)
        ]

    def _expected(self, budget: Object, pods: list[Object]) -> int:
        """The number of pods that count: the existing ones if minAvailable is a number, else as
        many as their controllers want."""
        if isinstance(budget["spec"].get("minAvailable"), int):
            return len(pods)
        wanted: dict[str, int] = {}
        for pod in pods:
            above = self._scaled_by(pod)
            if above is not None:
                spec = above["spec"]
                wanted[above["metadata"]["uid"]] = spec.get("replicas", spec.get("parallelism", 1))
        return sum(wanted.values())

    def _scaled_by(self, pod: Object) -> Object | None:
        """The workload that has the number of replicas: for a ReplicaSet, its Deployment."""
        scaled: Object | None = pod
        while scaled is not None:
            owner = controller_of(scaled)
            plural = SOURCES.get(owner["kind"]) if owner else None
            if owner is None or plural is None:
                return None if scaled is pod else scaled
            scaled = self.views[plural].get(namespace(pod), owner["name"])
        return None

    def _disrupted(self, budget: Object, pods: list[Object]) -> Object:
        """Evictions that were allowed and whose pods still exist."""
        there = {pod["metadata"]["name"] for pod in pods}
        known = (budget.get("status") or {}).get("disruptedPods") or {}
        return {name: since for name, since in known.items() if name in there}

    def _conditions(self, budget: Object, allowed: int) -> list[Object]:
        status = "True" if allowed else "False"
        reason = "SufficientPods" if allowed else "InsufficientPods"
        old = condition(budget, "DisruptionAllowed") or {}
        since = old["lastTransitionTime"] if old.get("status") == status else self.context.now()
        new = made_condition("DisruptionAllowed", status, reason, "", since)
        return [{**new, "observedGeneration": budget["metadata"].get("generation", 1)}]


def _covers(budget: Object, pod: Object) -> bool:
    return matches(budget["spec"].get("selector"), labels(pod))


def _desired(budget: Object, expected: int) -> int:
    spec = budget["spec"]
    if "minAvailable" in spec:
        return scaled(spec["minAvailable"], expected, up=True)
    return max(expected - scaled(spec.get("maxUnavailable", 0), expected, up=True), 0)
