"""Admission by the kubelet: it refuses a bound pod that its node cannot run.

The reasons and texts are those of k8s.io/kubernetes/pkg/kubelet/lifecycle. Annotations of a Node or
a pod make it refuse pods that it could run, as device plugins and the topology manager do.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kube_in_process.components.fit import selects
from kube_in_process.components.kubelet.sizes import AdmittedPods, Sizes
from kube_in_process.components.objects import annotations_of, name, uid
from kube_in_process.components.rooms import Asked, Room
from kube_in_process.kinds.pod_requests import amounts
from kube_in_process.objects import Object

REFUSES = "kube-in-process/refuses"
"""On a Node: the reason for which it refuses every new pod."""
REFUSED_ON = "kube-in-process/refused-on"
"""On a pod: nodes that refuse it, each with a reason: ``node-0=TopologyAffinityError``."""
_TEXTS = {
    "UnexpectedAdmissionError": "Allocate failed due to requested number of devices unavailable, "
    "which is unexpected",
    "TopologyAffinityError": "Resources cannot be allocated with Topology locality",
}

Refusal = tuple[str, str]
"""Reason and message."""


class Admission:
    """The pods that kubelets have admitted, by node."""

    def __init__(self) -> None:
        self._rooms: dict[str, Room] = {}
        self._nodes: dict[str, str] = {}
        self._sizes: dict[str, Sizes] = {}
        """Of the pods that were resized since they were admitted."""

    def admitted(self, pod: Object) -> bool:
        return uid(pod) in self._nodes

    def admit(self, pod: Object, node: Object) -> Refusal | None:
        """Admit a pod; or return why its node refuses it."""
        asked = Asked.of(pod)
        room = self._rooms.setdefault(name(node), Room())
        refusal = injected(pod, node) or _too_much(asked, node, room) or _elsewhere(pod, node)
        if refusal is None:
            room.put(asked)
            self._nodes[uid(pod)] = name(node)
        return refusal

    def forget(self, pod: str) -> None:
        """A pod (UID) has ended or is gone."""
        node = self._nodes.pop(pod, None)
        self._sizes.pop(pod, None)
        if node is not None:
            self._rooms[node].take(pod)

    # sizes

    def sizes(self, pod: Object) -> Sizes:
        """What is allocated to a pod and in force. What was not admitted counts as its spec."""
        known = self._sizes.get(uid(pod))
        if known is not None or not self.admitted(pod):
            return known or Sizes.wanted(pod)
        return Sizes.wanted(self._rooms[self._nodes[uid(pod)]].pods[uid(pod)].pod)

    def resize(self, pod: Object, sizes: Sizes) -> None:
        """The pod has other sizes now, allocated or in force."""
        if self.admitted(pod):
            self._sizes[uid(pod)] = sizes
            asked = replace(Asked.of(pod), requests=sizes.counted(pod))
            self._rooms[self._nodes[uid(pod)]].put(asked)

    def node(self, pods: Iterable[Object]) -> AdmittedPods:
        """The admitted ones among these pods of a node, as a resize sees them."""
        known = [pod for pod in pods if self.admitted(pod)]
        return AdmittedPods(
            {uid(pod): pod for pod in known}, {uid(pod): self.sizes(pod) for pod in known}
        )


def injected(pod: Object, node: Object) -> Refusal | None:
    """The refusal for which annotations of the pod or of the node ask."""
    reason = annotations_of(node).get(REFUSES, "")
    for part in annotations_of(pod).get(REFUSED_ON, "").split(","):
        where, _, why = part.strip().partition("=")
        if where == name(node):
            reason = why or "UnexpectedAdmissionError"
    return (reason, _TEXTS.get(reason, f"{reason}, as an annotation says")) if reason else None


def _too_much(asked: Asked, node: Object, room: Room) -> Refusal | None:
    there = amounts((node.get("status") or {}).get("allocatable") or {})
    if len(room.pods) + 1 > there.get("pods", 0):
        return _lacks("pods", 1, len(room.pods), there.get("pods", 0))
    for resource, wanted in asked.requests.items():
        used = room.used.get(resource, 0)
        if wanted > there.get(resource, 0) - used:
            return _lacks(resource, wanted, used, there.get(resource, 0))
    return None


def _lacks(resource: str, wanted: int, used: int, there: int) -> Refusal:
    text = (
        f"Node didn't have enough resource: {resource}, requested: {wanted}, used: {used}, "
        f"capacity: {there}"
    )
    return f"OutOf{resource}", text


def _elsewhere(pod: Object, node: Object) -> Refusal | None:
    if selects(pod, node):
        return None
    return "NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity"
