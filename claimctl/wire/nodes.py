"""Nodes: whether pods can be scheduled there, their machines and boot IDs."""

from __future__ import annotations

import msgspec

from claimctl.wire.base import Wire
from claimctl.wire.meta import Condition, ObjectHeader


class Taint(Wire, frozen=True, kw_only=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class Toleration(Wire, frozen=True, kw_only=True):
    """A toleration: of a pod for nodes, or of a claim's request for devices."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


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


class Node(ObjectHeader, frozen=True, kw_only=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
