"""What pods that vanished leave on their nodes: containers, and devices that are prepared.

A kubelet that is told of a force-deleted pod ends its containers within the pod's grace period, and
then unprepares its devices. A kubelet that was started since only finds the devices: it looks once
a minute for claims that no pod uses. A kubelet that is down or cut off ends nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from kube_in_process.components.kubelet.kubelet import Kubelet
from kube_in_process.components.objects import uid
from kube_in_process.components.pods import claims_used, node_name
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component, Context
from kube_in_process.runtime.views import Change

GRACE_SECONDS = 30.0
"""``terminationGracePeriodSeconds`` of a pod that names none."""
WORK_SECONDS = (0.5, 4.0)
"""How long it takes to end a pod after its grace period: at least, and at most."""
RECONCILE_SECONDS = 60.0
"""How often a kubelet looks for claims that no pod uses."""

Task = tuple[str, int]
"""UID of a pod, and the number of its ends that were planned before."""


@dataclass(slots=True)
class _Remains:
    node: str
    claims: tuple[str, ...]
    """Each as namespace/name."""
    grace: float
    planned: int = 0


class RemainsCleaner(Component[Task]):
    """Ends what is left of pods that vanished, for the kubelets of all nodes."""

    name = "remains"

    def __init__(self, context: Context, kubelet: Kubelet) -> None:
        self._kubelet = kubelet
        self._left: dict[str, _Remains] = {}
        self._rng = Random(f"remains {context.options.seed}")
        super().__init__(context)

    def watch(self) -> None:
        self.views["pods"].subscribe(self._pod_changed)

    @property
    def claims(self) -> frozenset[str]:
        """The claims whose devices are still prepared for pods that vanished; namespace/name."""
        return frozenset(claim for left in self._left.values() for claim in left.claims)

    def connected(self, node: str) -> None:
        """A kubelet that was cut off hears which pods are gone."""
        for pod in self._on(node):
            self._plan(pod, 0.0)

    def started(self, node: str) -> None:
        """A kubelet has started."""
        finds = self._rng.uniform(0, RECONCILE_SECONDS)
        for pod in self._on(node):
            self._plan(pod, finds)

    def rebooted(self, node: str) -> None:
        """Nothing is left on a node after a reboot."""
        for pod in self._on(node):
            del self._left[pod]

    def sync(self, key: Task) -> None:
        pod, number = key
        left = self._left.get(pod)
        if left is not None and left.planned == number and left.node not in self._kubelet.lost:
            del self._left[pod]

    def _on(self, node: str) -> list[str]:
        return [pod for pod, left in self._left.items() if left.node == node]

    def _pod_changed(self, change: Change) -> None:
        old = change.old
        if old is None or (change.new is not None and uid(change.new) == uid(old)):
            return
        if node_name(old) and claims_used(old) and _runs(old):
            grace = old["spec"].get("terminationGracePeriodSeconds", GRACE_SECONDS)
            self._left[uid(old)] = _Remains(node_name(old), claims_used(old), float(grace))
            self._plan(uid(old), 0.0)

    def _plan(self, pod: str, at_least: float) -> None:
        """Plan the end of a pod: the kubelet knows of it from now on."""
        left = self._left[pod]
        left.planned += 1
        seconds = max(left.grace, at_least) + self._rng.uniform(*WORK_SECONDS)
        self.queue.add_after((pod, left.planned), seconds)


def _runs(pod: Object) -> bool:
    """Whether a container was last reported as running."""
    containers = (pod.get("status") or {}).get("containerStatuses") or ()
    return any("running" in (each.get("state") or {}) for each in containers)
