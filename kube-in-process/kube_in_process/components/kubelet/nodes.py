"""Nodes: they register with their devices, get lost, come back, and reboot.

A lost node is tainted after ``Timings.node_monitor_grace``. Its pods are deleted a while later, and
PodGC removes their objects although their containers may still run.
"""

from __future__ import annotations

from contextlib import suppress

from kube_in_process.components.fit import tolerated
from kube_in_process.components.kubelet.heartbeats import HeartbeatWriter
from kube_in_process.components.kubelet.kubelet import Kubelet
from kube_in_process.components.objects import (
    condition,
    deleting,
    is_true,
    key_of,
    made_condition,
    name,
    uid,
)
from kube_in_process.components.pods import ended, on_node
from kube_in_process.errors import NotFound
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component, Context
from kube_in_process.runtime.views import Change
from kube_in_process.storage.requests import DeleteOptions

_API = "resource.k8s.io/v1"
UNREACHABLE = "node.kubernetes.io/unreachable"
EFFECTS = ("NoSchedule", "NoExecute")
POD_GC = 45.0
"""Seconds until PodGC looks at the pods of a Node object that is gone."""

Task = tuple[str, str]
"""('silent', 'taint', 'evict', 'collect', 'started' or 'back', node)."""


class NodeController(Component[Task]):
    """Registration, node lifecycle, taint eviction and PodGC."""

    name = "node-controller"

    def __init__(self, context: Context, kubelet: Kubelet) -> None:
        self._kubelet = kubelet
        self.heartbeats = HeartbeatWriter(context, kubelet)
        self._boots: dict[str, int] = {}
        self._collected: set[str] = set()
        super().__init__(context)

    def watch(self) -> None:
        self.views["pods"].index("node", on_node)
        self.views["nodes"].subscribe(self._node_changed)

    def start(self) -> None:
        for index in range(self.context.options.nodes):
            self.register(f"node-{index}")

    def register(self, node: str) -> None:
        """Register a node and publish its devices."""
        if self.api.find("nodes", "", node) is None:
            wanted = self._node(node)
            created = self.api.create("nodes", wanted)
            self.api.update("nodes", {**created, "status": wanted["status"]}, "status")
        self._publish(node)

    def lose(self, node: str) -> None:
        """Cut a node off. Its containers may go on running."""
        self._kubelet.lose(node)
        self.queue.add_after(("silent", node), self.context.timings.node_monitor_grace)

    def restore(self, node: str, *, rebooted: bool) -> None:
        """Connect a node again. After a reboot it has a new boot ID and no containers."""
        if rebooted:
            self._boots[node] = self._boots.get(node, 0) + 1
            self._kubelet.restart(node, rebooted=True)
            self.heartbeats.started(node)
        else:
            self._kubelet.recover(node)
        self.queue.add(("back", node))

    def restart_kubelet(self, node: str, seconds: float) -> None:
        """End the kubelet of a node and start it again later. Containers run on meanwhile."""
        self._kubelet.lose(node)
        if seconds > self.context.timings.node_monitor_grace:
            self.queue.add_after(("silent", node), self.context.timings.node_monitor_grace)
        self.queue.add_after(("started", node), seconds)

    def sync(self, key: Task) -> None:
        task, node = key
        if task == "silent" and node in self._kubelet.lost:
            self._silent(node)
        elif task == "taint" and node in self._kubelet.lost:
            self._taint_lost(node)
        elif task == "evict" and node in self._kubelet.lost:
            self._evict(node)
        elif task == "collect":
            self._collect(node)
        elif task == "started":
            self._started(node)
        elif task == "back" and node not in self._kubelet.lost:
            self._back(node)

    def _node_changed(self, change: Change) -> None:
        """Let PodGC collect the pods of a Node object that is gone."""
        if change.new is None:
            self.queue.add_after(("collect", change.key[1]), self._sweep())
        elif _is_silent(change.new) and len(_marks(change.new)) < len(EFFECTS):
            # another writer has removed the taints: the node lifecycle controller adds them again
            self.queue.add(("taint", change.key[1]))

    def _started(self, node: str) -> None:
        self._kubelet.restart(node)
        self.heartbeats.started(node)
        current = self.views["nodes"].get("", node)
        if current is not None and _is_silent(current):
            self._back(node)

    # Lost nodes

    def _silent(self, node: str) -> None:
        self._set_ready(node, "Unknown", "NodeStatusUnknown")
        for pod in self.views["pods"].by("node", node):
            self._not_ready(pod)
        self._taint_lost(node)
        if self.context.timings.pod_eviction is not None:
            self.queue.add_after(("evict", node), self.context.timings.pod_eviction)

    def _taint_lost(self, node: str) -> None:
        """Add one taint after the other, as the node lifecycle controller does."""
        for number in range(len(EFFECTS)):
            current = self.api.find("nodes", "", node)
            if current is None or not _is_silent(current):
                return
            if len(_marks(current)) <= number:
                added = [{"key": UNREACHABLE, "effect": effect} for effect in EFFECTS[: number + 1]]
                self._taint(node, added)

    def _not_ready(self, pod: Object) -> None:
        unready = {"type": "Ready", "status": "False", "lastTransitionTime": self.context.now()}
        patch = {"status": {"conditions": [unready]}}
        if is_true(pod, "Ready"):
            self.api.patch("pods", *key_of(pod), patch, "status", kind="strategic")
            self.event(pod, "Warning", "NodeNotReady", "Node is not ready")

    def _evict(self, node: str) -> None:
        """Delete the pods that tolerate a lost node only for a time; PodGC collects them soon."""
        for pod in self.views["pods"].by("node", node):
            if not deleting(pod) and not _stays(pod):
                self.api.delete("pods", *key_of(pod), DeleteOptions(uid(pod)))
        self.queue.add_after(("collect", node), self._sweep())

    def _sweep(self) -> float:
        """Seconds until PodGC looks at the pods of a node that is lost or gone."""
        hurried = self.context.timings.pod_eviction
        return POD_GC if hurried is None else hurried

    def _collect(self, node: str) -> None:
        """PodGC: set the phase Failed and delete the pod with grace period 0, one pod per task."""
        gone = self.views["nodes"].get("", node) is None
        if not gone and node not in self._kubelet.lost:
            return
        for pod in self.views["pods"].by("node", node):
            # a finalizer may keep the object of a deleted pod: handle each pod once
            if (deleting(pod) or gone) and uid(pod) not in self._collected:
                self._force(pod, orphaned=gone)
                self._collected.add(uid(pod))
                self.queue.add(("collect", node))
                return
        self._collected.clear()

    def _force(self, pod: Object, *, orphaned: bool) -> None:
        """Only pods of a Node object that is gone get the condition DisruptionTarget."""
        failed: Object = {"phase": "Failed"}
        if not orphaned:
            failed |= {"reason": "NodeLost", "message": "Node is lost"}
        else:
            message, now = "PodGC: node no longer exists", self.context.now()
            why = made_condition("DisruptionTarget", "True", "DeletionByPodGC", message, now)
            failed["conditions"] = [why]
        if not ended(pod):
            self.api.patch("pods", *key_of(pod), {"status": failed}, "status", kind="strategic")
        with suppress(NotFound):
            self.api.delete("pods", *key_of(pod), DeleteOptions(uid(pod), grace_period_seconds=0))

    def _back(self, node: str) -> None:
        self._set_ready(node, "True", "KubeletReady")
        self._taint(node, [])

    def _set_ready(self, node: str, status: str, reason: str) -> None:
        current = self.api.get("nodes", "", node)
        now = self.context.now()
        known = {**current["status"], "nodeInfo": self._info(node)}
        known["conditions"] = [_ready(status, reason, now)]
        self.api.update("nodes", {**current, "status": known}, "status")

    def _taint(self, node: str, taints: list[dict[str, str]]) -> None:
        current = self.api.get("nodes", "", node)
        old = [
            taint for taint in current["spec"].get("taints") or () if taint["key"] != UNREACHABLE
        ]
        added = [{**taint, "timeAdded": self.context.now()} for taint in taints]
        spec = {**current["spec"], "taints": [*old, *added]}
        if not spec["taints"]:
            del spec["taints"]
        self.api.update("nodes", {**current, "spec": spec})

    # Registration

    def _info(self, node: str) -> Object:
        boots = self._boots.get(node, 0)
        return node_info(node, boots, self.context.features.version, "embedded")

    def _node(self, node: str) -> Object:
        capacity = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": node,
                "labels": {
                    "kubernetes.io/hostname": node,
                    "kubernetes.io/os": "linux",
                    "kubernetes.io/arch": "amd64",
                },
            },
            "spec": {},
            "status": {
                "capacity": capacity,
                "allocatable": capacity,
                "conditions": [_ready("True", "KubeletReady", self.context.now())],
                "addresses": [{"type": "Hostname", "address": node}],
                "nodeInfo": self._info(node),
            },
        }

    def _publish(self, node: str) -> None:
        """Create the DeviceClass and the node's ResourceSlice, if they do not exist."""
        options = self.context.options
        self._ensure("deviceclasses", device_class(_API, options.device_class, options.driver))
        devices = [{"name": f"dev-{index}"} for index in range(options.devices_per_node)]
        if devices:
            pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
            spec = {"driver": options.driver, "nodeName": node, "pool": pool, "devices": devices}
            head = {"apiVersion": _API, "kind": "ResourceSlice"}
            metadata = {"name": f"{node}-{options.driver}"}
            self._ensure("resourceslices", {**head, "metadata": metadata, "spec": spec})

    def _ensure(self, plural: str, body: Object) -> None:
        if self.api.find(plural, "", name(body)) is None:
            self.api.create(plural, body)


def node_info(node: str, boots: int, version: tuple[int, int], image: str) -> Object:
    """``status.nodeInfo`` of a node that was rebooted ``boots`` times."""
    return {
        "machineID": f"machine-{node}",
        "systemUUID": f"system-{node}",
        "bootID": f"boot-{node}-{boots + 1}",
        "kernelVersion": "6.12.0",
        "osImage": image,
        "containerRuntimeVersion": f"{image}://1",
        "kubeletVersion": f"v{version[0]}.{version[1]}.0",
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
    }


def device_class(api_version: str, plain: str, driver: str) -> Object:
    """A DeviceClass of all devices of a driver."""
    return {
        "apiVersion": api_version,
        "kind": "DeviceClass",
        "metadata": {"name": plain},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
    }


def _ready(status: str, reason: str, now: str) -> Object:
    message = "kubelet is posting ready status" if status == "True" else "kubelet is silent"
    return {**made_condition("Ready", status, reason, message, now), "lastHeartbeatTime": now}


def _is_silent(node: Object) -> bool:
    return (condition(node, "Ready") or {}).get("status") == "Unknown"


def _marks(node: Object) -> list[Object]:
    """The taints of a lost node."""
    taints = (node.get("spec") or {}).get("taints") or ()
    return [taint for taint in taints if taint["key"] == UNREACHABLE]


def _stays(pod: Object) -> bool:
    """Whether the pod tolerates a lost node without a time limit."""
    lasting = [
        toleration
        for toleration in pod["spec"].get("tolerations") or ()
        if "tolerationSeconds" not in toleration
    ]
    return tolerated({"key": UNREACHABLE, "effect": "NoExecute"}, lasting)
