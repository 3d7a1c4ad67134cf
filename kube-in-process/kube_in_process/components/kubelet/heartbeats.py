"""What kubelets write to show that they live: renewals of Leases, and reports of node status.

The rhythm is that of real kubelets: they renew their Lease four times in its duration, and each
pause is longer by up to 4 %, by chance. They report their status as often as they are told to. A
kubelet that starts does both at once.
"""

from __future__ import annotations

from random import Random

from kube_in_process.components.kubelet.kubelet import Kubelet
from kube_in_process.components.objects import name, uid
from kube_in_process.errors import NotFound
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component, Context
from kube_in_process.runtime.views import Change
from kube_in_process.text.times import micro_timestamp

NAMESPACE = "kube-node-lease"
JITTER = 0.04
"""As in ``k8s.io/component-helpers/apimachinery/lease``, and for the node's status."""

Task = tuple[str, str, int]
"""('renew' or 'report', node, number of the kubelet's start)."""


class HeartbeatWriter(Component[Task]):
    """Writes for the kubelets of all nodes, if the cluster's options ask for heartbeats."""

    name = "heartbeats"
    user = "system:node"
    manager = "kubelet"

    def __init__(self, context: Context, kubelet: Kubelet) -> None:
        self._kubelet = kubelet
        self._starts: dict[str, int] = {}
        self._rng = Random(f"heartbeats {context.options.seed}")
        super().__init__(context)

    def watch(self) -> None:
        self.views["nodes"].subscribe(self._node_changed)

    def started(self, node: str) -> None:
        """The kubelet of a node has started: its rhythm begins anew."""
        if self.context.options.heartbeats is not None:
            self._starts[node] = self._starts.get(node, 0) + 1
            self.queue.add(("renew", node, self._starts[node]))
            self.queue.add(("report", node, self._starts[node]))

    def sync(self, key: Task) -> None:
        task, plain, number = key
        node, options = self.views["nodes"].get("", plain), self.context.options.heartbeats
        if node is None or options is None or number != self._starts[plain]:
            return
        renews = task == "renew"
        every = options.lease_seconds / 4 if renews else options.report_seconds
        self.queue.add_after(key, every * self._rng.uniform(1, 1 + JITTER))
        # a kubelet that is cut off goes on trying, in its rhythm
        if plain in self._kubelet.lost:
            return
        if renews:
            self._renew(node, options.lease_seconds)
        else:
            self._report(plain)

    def _node_changed(self, change: Change) -> None:
        if change.old is None:
            self.started(change.key[1])

    def _renew(self, node: Object, seconds: int) -> None:
        spec: Object = {
            "holderIdentity": name(node),
            "leaseDurationSeconds": seconds,
            "renewTime": micro_timestamp(self.context.clock.now()),
        }
        try:
            self.api.patch("leases", NAMESPACE, name(node), {"spec": spec})
        except NotFound:
            owner = {"apiVersion": "v1", "kind": "Node", "name": name(node), "uid": uid(node)}
            meta = {"name": name(node), "namespace": NAMESPACE, "ownerReferences": [owner]}
            self.api.create("leases", {"metadata": meta, "spec": spec})

    def _report(self, plain: str) -> None:
        node, now = self.api.get("nodes", "", plain), self.context.now()
        status = node.get("status") or {}
        told = [
            {**condition, "lastHeartbeatTime": now} for condition in status.get("conditions") or ()
        ]
        self.api.update("nodes", {**node, "status": {**status, "conditions": told}}, "status")
