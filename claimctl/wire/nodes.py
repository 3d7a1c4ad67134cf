"""Nodes: whether pods can be scheduled there, their machines and boot IDs."""

from __future__ import annotations

import msgspec

from claimctl.wire.base import Wire
from claimctl.wire.meta import Condition, ObjectHeader


class Taint(Wire, frozen=True, kw_only=True):
    """A taint of a node or of a device."""

    key: str = ""
    value: str = ""
    effect: str = ""

    @property
    def text(self) -> str:
        """As kubectl writes it: key=value:effect, or key:effect."""
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


class Toleration(Wire, frozen=True, kw_only=True):
    """A toleration: of a pod for nodes, or of a claim's request for devices."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""The key of a taint by which an administrator states that a node is off (Kubernetes 1.28)."""
NODE_LEASES = "kube-node-lease"
"""The namespace of the Leases that kubelets renew. They have the names of the nodes."""


class NodeSpec(Wire, frozen=True, kw_only=True):
    unschedulable: bool = False
    taints: tuple[Taint, ...] = ()


class NodeSystemInfo(Wire, frozen=True, kw_only=True):
    machine_id: str = msgspec.field(name="machineID", default="")
    system_uuid: str = msgspec.field(name="systemUUID", default="")
    boot_id: str = msgspec.field(name="bootID", default="")
    kubelet_version: str = ""

    @property
    def machine(self) -> tuple[str, str]:
        """The machine. Another one may join the cluster under the same node name."""
        return self.machine_id, self.system_uuid


class NodeStatus(Wire, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()
    node_info: NodeSystemInfo = NodeSystemInfo()

    @property
    def is_unready(self) -> bool:
        """Whether the kubelet cannot work, or is away.

        A kubelet reports Ready=False while its container runtime is down, and
        kube-controller-manager says Unknown of a kubelet that is silent.
        """
        ready = [condition for condition in self.conditions if condition.type == "Ready"]
        return any(condition.status in ("False", "Unknown") for condition in ready)


class Node(ObjectHeader, frozen=True, kw_only=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
