"""Taints of nodes: cordoned nodes get a taint, and NoExecute deletes pods that do not tolerate it.

The rules are those of k8s.io/kubernetes/pkg/controller/tainteviction and nodelifecycle.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from kube_in_process.components.fit import UNSCHEDULABLE_TAINT, tolerates
from kube_in_process.components.objects import deleting, key_of, made_condition, name, uid
from kube_in_process.components.pods import node_name, observed, on_node
from kube_in_process.errors import NotFound
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component, Context
from kube_in_process.runtime.views import Change
from kube_in_process.storage.requests import DeleteOptions

Task = tuple[str, str, str]
"""('node', '', name) to add or remove the taint of a cordoned node, ('pod', namespace, name), or
('gone', '', UID of the pod)."""

NO_EXECUTE = "NoExecute"


class TaintController(Component[Task]):
    name = "taint-eviction-controller"

    def __init__(self, context: Context) -> None:
        self._due: dict[str, float] = {}
        """By UID, the time at which a pod is deleted that tolerates the taints only for a while."""
        self._gone: dict[str, Object] = {}
        """Deleted pods by UID, until their task has run."""
        super().__init__(context)

    def watch(self) -> None:
        self.views["pods"].index("node", on_node)
        self.views["nodes"].subscribe(self._node_changed)
        self.views["pods"].subscribe(self._pod_changed)

    def _node_changed(self, change: Change) -> None:
        if change.new is None:
            return
        self.queue.add(("node", "", name(change.new)))
        if change.old is None or _evicting(change.old) != _evicting(change.new):
            for pod in self.views["pods"].by("node", name(change.new)):
                self.queue.add(("pod", *key_of(pod)))

    def _pod_changed(self, change: Change) -> None:
        if change.new is None:
            self._gone[uid(change.object)] = change.object
            self.queue.add(("gone", "", uid(change.object)))
        elif node_name(change.new) and (change.old is None or not node_name(change.old)):
            self.queue.add(("pod", *change.key))

    def sync(self, key: Task) -> None:
        kind, space, plain = key
        if kind == "node":
            self._close(plain)
            return
        if kind == "gone":
            self._cancel(self._gone.pop(plain))
            return
        pod = self.views["pods"].get(space, plain)
        if pod is not None and node_name(pod):
            self._judge(pod)

    def _close(self, plain: str) -> None:
        """Add or remove the taint for ``spec.unschedulable``."""
        node = self.views["nodes"].get("", plain)
        if node is None:
            return
        spec = node.get("spec") or {}
        taints = list(spec.get("taints") or ())
        others = [taint for taint in taints if taint["key"] != UNSCHEDULABLE_TAINT["key"]]
        closed = bool(spec.get("unschedulable"))
        if closed == (len(others) < len(taints)):
            return
        added = {**UNSCHEDULABLE_TAINT, "timeAdded": self.context.now()}
        wanted = [*others, added] if closed else others
        kept = {key: value for key, value in spec.items() if key != "taints"}
        if wanted:
            kept["taints"] = wanted
        self.api.update("nodes", {**node, "spec": kept})

    def _judge(self, pod: Object) -> None:
        """Delete the pod now, later or not.

        Upstream keeps the time of a deletion while there are taints with NoExecute. So a taint
        that comes later, and that the pod tolerates for a shorter time, does not make it earlier.
        """
        node = self.views["nodes"].get("", node_name(pod))
        taints = _evicting(node) if node is not None else []
        tolerations = pod["spec"].get("tolerations") or ()
        wait = borne_for(taints, tolerations)
        if not taints or wait is None:
            self._cancel(pod)
            return
        if any(not bearing(taint, tolerations) for taint in taints):
            self._cancel(pod)
            self._evict(pod)
            return
        now = self.context.clock.monotonic()
        left = self._due.setdefault(uid(pod), now + wait) - now
        if left > 0:
            self.queue.add_after(("pod", *key_of(pod)), left)
            return
        del self._due[uid(pod)]
        self._evict(pod)

    def _cancel(self, pod: Object) -> None:
        """Forget the time at which the pod would be deleted, and record an Event about that."""
        if self._due.pop(uid(pod), None) is not None:
            message = f"Cancelling deletion of Pod {'/'.join(key_of(pod))}"
            self.event(pod, "Normal", "TaintManagerEviction", message)

    def _evict(self, pod: Object) -> None:
        if deleting(pod):
            return
        shown = "/".join(key_of(pod))
        self.event(pod, "Normal", "TaintManagerEviction", f"Marking for deletion Pod {shown}")
        message = "Taint manager: deleting due to NoExecute taint"
        delete_for_taint(self, pod, "DeletionByTaintManager", message)


def delete_for_taint(controller: Component[Any], pod: Object, reason: str, message: str) -> None:
    """Give the pod the condition DisruptionTarget, then delete it; a pod that is gone is no error.

    Raises:
        StatusError: the API server refuses a request for another reason.
    """
    now = controller.context.now()
    disrupted = made_condition("DisruptionTarget", "True", reason, message, now)
    patch = {"status": {"conditions": [{**disrupted, **observed(pod)}]}}
    with suppress(NotFound):
        controller.api.patch("pods", *key_of(pod), patch, "status", kind="strategic")
        controller.api.delete("pods", *key_of(pod), DeleteOptions(uid(pod)))


def _evicting(node: Object) -> list[Object]:
    taints = (node.get("spec") or {}).get("taints") or ()
    return [taint for taint in taints if taint["effect"] == NO_EXECUTE]


def borne_for(taints: list[Object], tolerations: Any) -> float | None:
    """Seconds for which a pod tolerates the taints; None means for ever."""
    used: list[Object] = []
    for taint in taints:
        bearing_it = bearing(taint, tolerations)
        if not bearing_it:
            return 0.0
        used += bearing_it
    limits = [
        toleration["tolerationSeconds"] for toleration in used if "tolerationSeconds" in toleration
    ]
    return float(max(min(limits), 0)) if limits else None


def bearing(taint: Object, tolerations: Any) -> list[Object]:
    """The tolerations that match the taint."""
    return [toleration for toleration in tolerations if tolerates(toleration, taint)]
