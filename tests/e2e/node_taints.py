"""The taints of nodes in scenarios."""

from __future__ import annotations

from claimctl.kube.errors import Conflict
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import NODES
from claimctl.wire.traces import TAINTED_NODES
from tests.e2e.harness import Stage


async def taints(stage: Stage) -> list[tuple[str, str, str]]:
    """Node, key and value of every taint in the cluster."""
    nodes = (await stage.client.list(TAINTED_NODES)).items
    return [
        (node.metadata.name, str(taint["key"]), str(taint.get("value") or ""))
        for node in nodes
        for taint in node.spec.taints
    ]


async def set_taints(stage: Stage, node: str, *taints: dict[str, str]) -> None:
    while True:
        version = (await stage.client.get(NODES, node)).metadata.resource_version
        try:
            await stage.client.merge_patch(
                NODES,
                ObjectMeta(name=node, resource_version=version),
                {"spec": {"taints": list(taints)}},
            )
        except Conflict:
            continue
        return
