"""Take away what ``claimctl reschedule`` has left: taints, gates, and entries of its records.

Each write carries the version of the object that was read, so nothing of others is lost.
"""

from __future__ import annotations

from typing import Any

from claimctl.kube.client import Client
from claimctl.live_objects import Changed, change_object
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.traces import (
    BRAKE_GATE,
    RECORDS,
    TAINTED_NODES,
    WHOLE_PODS,
    TaintedNode,
    Traces,
    WholePod,
    is_own,
)


async def braked_pods(client: Client) -> tuple[ObjectMeta, ...]:
    """The pods that have the gate."""
    pods = (await client.list(WHOLE_PODS, partial=True)).items
    return tuple(pod.metadata for pod in pods if pod.braked)


async def untaint(client: Client, node: str) -> bool:
    """Remove claimctl's taints from a node, and only these; whether there were any."""

    def change(present: TaintedNode) -> dict[str, Any]:
        every = present.spec.taints
        kept = [it for it in every if not is_own(str(it.get("key")), str(it.get("value") or ""))]
        return {"spec": {"taints": kept or None}} if len(kept) < len(every) else {}

    return await change_object(client, TAINTED_NODES, node, change) is Changed.WRITTEN


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
