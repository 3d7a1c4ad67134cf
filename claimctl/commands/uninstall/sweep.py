"""Take away what ``claimctl reschedule`` has left: taints, gates, and entries of its records.

Each write carries the version of the object that was read, so nothing of others is lost.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import force_setattr

from claimctl.kube.client import Client
from claimctl.live_objects import Changed, change_object
from claimctl.wire.base import Wire
from claimctl.wire.meta import ObjectHeader, ObjectMeta
from claimctl.wire.resources import NODES, read_as
from claimctl.wire.traces import BRAKE_GATE, RECORDS, WHOLE_PODS, Traces, WholePod, is_own


class RawTaints(Wire, frozen=True, kw_only=True):
    taints: tuple[dict[str, Any], ...] = ()

    def __post_init__(self) -> None:
        # a null is as if the field was not there, as in every struct
        present = tuple(
            {name: value for name, value in taint.items() if value is not None}
            for taint in self.taints
        )
        if present != self.taints:
            force_setattr(self, "taints", present)


class FullyTaintedNode(ObjectHeader, frozen=True, kw_only=True):
    """A node with all fields of its taints, so that they can be written again."""

    spec: RawTaints = RawTaints()


async def braked_pods(client: Client) -> tuple[ObjectMeta, ...]:
    """The pods that have the gate."""
    pods = (await client.list(WHOLE_PODS, partial=True)).items
    return tuple(pod.metadata for pod in pods if pod.braked)


async def untaint(client: Client, node: str) -> bool:
    """Remove claimctl's taints from a node, and only these; whether there were any."""

    def change(present: FullyTaintedNode) -> dict[str, Any]:
        every = present.spec.taints
        kept = [it for it in every if not is_own(str(it.get("key")), str(it.get("value") or ""))]
        return {"spec": {"taints": kept or None}} if len(kept) < len(every) else {}

    nodes = read_as(NODES, FullyTaintedNode)
    return await change_object(client, nodes, node, change) is Changed.WRITTEN


async def release(client: Client, pod: ObjectMeta) -> bool:
    """Remove the gate from a pod; whether it was there."""

    def change(present: WholePod) -> dict[str, Any]:
        if present.metadata.uid != pod.uid or not present.braked:
            return {}
        gates = [gate.name for gate in present.spec.scheduling_gates]
        kept = [{"name": name} for name in gates if name != BRAKE_GATE]
        return {"spec": {"schedulingGates": kept or None}}

    done = await change_object(client, WHOLE_PODS, pod.name, change, pod.namespace)
    return done is Changed.WRITTEN


async def forget(client: Client, record: str) -> bool:
    """Remove the entries of a record that stand for taints, and for pods that avoid nodes or wait;
    whether there were any. The memory of moves stays: it blocks nothing."""

    def change(present: Traces) -> dict[str, Any]:
        there = present.status.taints or present.status.avoidances
        return {"status": {"taints": None, "avoidances": None}} if there else {}

    done = await change_object(client, RECORDS, record, change, subresource="status")
    return done is Changed.WRITTEN
