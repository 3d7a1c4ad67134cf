"""The DaemonSet controller: one pod on each node that may have one.

The rules are those of k8s.io/kubernetes/pkg/controller/daemon. Pods without an owner are not
adopted, and ``maxSurge`` is not emulated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kube_in_process.components.controllers.daemonsets.pods import (
    GENERATION,
    GENERATION_LABEL,
    HASH_LABEL,
    daemon_pod,
    should_run,
    target,
)
from kube_in_process.components.controllers.replicasets import (
    available_in,
    create_pod,
    delete_pod,
)
from kube_in_process.components.controllers.revisions import Revisions
from kube_in_process.components.objects import (
    annotations_of,
    controller_of,
    controller_uid,
    deleting,
    key_of,
    labels,
    name,
    scaled,
    uid,
)
from kube_in_process.components.pods import ended, phase, ready
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.runtime.views import Change, Key

FAILED_POD_PAUSE = 1.0
"""Seconds before a failed pod is deleted (real: from 1 s, doubling)."""


@dataclass(frozen=True, slots=True)
class _DaemonSetState:
    workload: Object
    digest: str
    """The hash of the current template."""
    pods: Mapping[str, list[Object]]
    """The pods by node."""


class DaemonSetController(Component[Key]):
    name = "daemonset-controller"

    def watch(self) -> None:
        self.views["pods"].index("controller", controller_uid)
        revisions = self.views["controllerrevisions"]
        self._revisions = Revisions(self.api, revisions, HASH_LABEL, replaces=True)
        self._failed: set[str] = set()
        self.views["daemonsets"].subscribe(lambda change: self.queue.add(change.key))
        self.views["pods"].subscribe(self._pod_changed)
        self.views["nodes"].subscribe(self._node_changed)

    def _pod_changed(self, change: Change) -> None:
        owner = controller_of(change.object)
        if owner is not None and owner["kind"] == "DaemonSet":
            self.queue.add((change.key[0], owner["name"]))

    def _node_changed(self, change: Change) -> None:
        """Look again at the DaemonSets of which a pod is missing on the node, or must leave it.

        Upstream does not look at others, so their status does not change.
        """
        node = change.new
        if node is None or (change.old is not None and not _differ(change.old, node)):
            return
        for daemon_set in self.views["daemonsets"].items():
            wanted, stays = should_run(daemon_set, node)
            there = any(target(pod) == name(node) for pod in self._all(daemon_set))
            if (wanted and not there) or (there and not stays):
                self.queue.add(key_of(daemon_set))

    def sync(self, key: Key) -> None:
        workload = self.views["daemonsets"].get(*key)
        if workload is None or deleting(workload):
            return
        known = self._revisions.of(workload)
        current = self._revisions.update(workload, known)
        digest = labels(current)[HASH_LABEL]
        state = _DaemonSetState(workload, digest, self._pods(workload))
        if not self._manage(state):
            self._roll(state)
        self._write_status(_DaemonSetState(workload, digest, self._pods(workload)))
        live = {f"{name(workload)}-{labels(pod).get(HASH_LABEL)}" for pod in self._all(workload)}
        self._revisions.truncate(workload, known, {name(current), *live})

    def _all(self, workload: Object) -> tuple[Object, ...]:
        return self.views["pods"].by("controller", uid(workload))

    def _pods(self, workload: Object) -> dict[str, list[Object]]:
        by_node: dict[str, list[Object]] = {}
        for pod in self._all(workload):
            if not (deleting(pod) and ended(pod)):
                by_node.setdefault(target(pod), []).append(pod)
        return by_node

    # Nodes without a pod, and pods that should not be there

    def _manage(self, state: _DaemonSetState) -> bool:
        """Create and delete pods; return whether any was."""
        acted = False
        for node in tuple(self.views["nodes"].items()):
            pods = state.pods.get(name(node), [])
            wanted, stays = should_run(state.workload, node)
            if not pods and wanted:
                create_pod(self, state.workload, self._new(state, name(node)))
                acted = True
            for pod in self._surplus(state, pods, stays=stays):
                delete_pod(self, state.workload, pod)
                acted = True
        return acted

    def _new(self, state: _DaemonSetState, node: str) -> Object:
        return daemon_pod(state.workload, node, state.digest)

    def _surplus(self, state: _DaemonSetState, pods: list[Object], *, stays: bool) -> list[Object]:
        there = [pod for pod in pods if not deleting(pod)]
        if not stays:
            return there
        done = [pod for pod in there if ended(pod) and self._is_due(state, pod)]
        running = [pod for pod in there if not ended(pod)]
        running.sort(key=lambda pod: pod["metadata"]["creationTimestamp"])
        return [*done, *running[1:]]

    def _is_due(self, state: _DaemonSetState, pod: Object) -> bool:
        """Whether an ended pod is deleted now; a failed one after a pause."""
        if uid(pod) in self._failed:
            return True
        self._failed.add(uid(pod))
        if phase(pod) != "Failed":
            return True
        text = (
            f"Found failed daemon pod {'/'.join(key_of(pod))} on node {target(pod)}, "
            "will try to kill it"
        )
        self.event(state.workload, "Warning", "FailedDaemonPod", text)
        self.queue.add_after(key_of(state.workload), FAILED_POD_PAUSE)
        return False

    # Rollouts

    def _roll(self, state: _DaemonSetState) -> None:
        """Delete pods of an old template, as many as may be unavailable."""
        strategy = state.workload["spec"].get("updateStrategy") or {}
        if strategy.get("type", "RollingUpdate") != "RollingUpdate":
            return
        most = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
        allowed = max(scaled(most, self._desired(state), up=True), 1)
        unavailable = 0
        replaced: list[Object] = []
        candidates: list[Object] = []
        for on_node in state.pods.values():
            pods = [pod for pod in on_node if not deleting(pod)]
            old = [pod for pod in pods if not self._is_new(state, pod)]
            new = [pod for pod in pods if self._is_new(state, pod)]
            if new and not old:
                unavailable += not self._available(state.workload, new[0])
            elif old and not new:
                up = self._available(state.workload, old[0])
                (candidates if up else replaced).append(old[0])
            else:
                unavailable += 1
        for pod in (*replaced, *candidates[: max(allowed - unavailable, 0)]):
            delete_pod(self, state.workload, pod)

    def _desired(self, state: _DaemonSetState) -> int:
        nodes = self.views["nodes"].items()
        return sum(1 for node in nodes if should_run(state.workload, node)[0])

    def _is_new(self, state: _DaemonSetState, pod: Object) -> bool:
        generation = annotations_of(state.workload).get(GENERATION)
        same = generation is not None and labels(pod).get(GENERATION_LABEL) == generation
        return same or labels(pod).get(HASH_LABEL) == state.digest

    def _available(self, workload: Object, pod: Object) -> bool:
        if not ready(pod):
            return False
        wait = available_in(pod, workload["spec"].get("minReadySeconds", 0), self.context.now())
        if wait > 0:
            self.queue.add_after(key_of(workload), wait)
        return wait <= 0

    # Status

    def _write_status(self, state: _DaemonSetState) -> None:
        current = self.views["daemonsets"].get(*key_of(state.workload))
        if current is None:
            return
        status = self._status(state)
        if status != (current.get("status") or {}):
            self.api.update("daemonsets", {**current, "status": status}, "status")

    def _status(self, state: _DaemonSetState) -> Object:
        counts = dict.fromkeys(("desired", "current", "wrong", "ready", "available", "new"), 0)
        for node in self.views["nodes"].items():
            pods = state.pods.get(name(node), [])
            if not should_run(state.workload, node)[0]:
                counts["wrong"] += bool(pods)
                continue
            counts["desired"] += 1
            if pods:
                counts["current"] += 1
                first = min(pods, key=lambda pod: pod["metadata"]["creationTimestamp"])
                counts["ready"] += ready(first)
                counts["available"] += self._available(state.workload, first)
                counts["new"] += self._is_new(state, first)
        more = {
            "updatedNumberScheduled": counts["new"],
            "numberAvailable": counts["available"],
            "numberUnavailable": counts["desired"] - counts["available"],
        }
        return {
            "currentNumberScheduled": counts["current"],
            "numberMisscheduled": counts["wrong"],
            "desiredNumberScheduled": counts["desired"],
            "numberReady": counts["ready"],
            "observedGeneration": state.workload["metadata"]["generation"],
            **{key: value for key, value in more.items() if value},
        }


def _differ(old: Object, new: Object) -> bool:
    """Whether a change of a node may matter to a DaemonSet."""
    before, after = old.get("spec") or {}, new.get("spec") or {}
    return labels(old) != labels(new) or before.get("taints") != after.get("taints")
