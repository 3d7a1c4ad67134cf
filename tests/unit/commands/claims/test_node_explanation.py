"""``claimctl explain node/NAME``: whose devices a node has, before it is drained."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.options import Preset
from kube_in_process.storage.requests import Fault

from claimctl.cli.errors import CommandFailed
from claimctl.cli.session import Session
from claimctl.commands.claims.node_explanation import NodeExplanation, explain_node, node_lines
from tests.support.claim_server import NAMESPACE, Server

DEVICE = {"request": "gpu", "driver": "gpu.example.com", "pool": "node-2", "device": "gpu-0"}


def held_on_node(**spec: Any) -> Server:
    """The Deployment train holds a device of node-2."""
    server = Server.started(dialect=Preset.PLAIN)
    reference = server.deployment()
    meta = {"name": "slice", "namespace": NAMESPACE}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    claim = {"metadata": meta, "spec": {"devices": {"requests": [request]}}}
    server.admin.create("resourceclaims", claim)
    field = {"key": "metadata.name", "operator": "In", "values": ["node-2"]}
    allocation = {
        "devices": {"results": [DEVICE]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    status = {"status": {"allocation": allocation, "reservedFor": [reference]}}
    server.admin.patch("resourceclaims", NAMESPACE, "slice", status, "status")
    pool = {"name": "node-2", "generation": 1, "resourceSliceCount": 1}
    published = {"driver": "gpu.example.com", "nodeName": "node-2", "pool": pool}
    piece = {**published, "devices": [{"name": "gpu-0"}]}
    server.admin.create("resourceslices", {"metadata": {"name": "node-2"}, "spec": piece})
    server.reservation(**spec)
    return server


async def explained(server: Server, name: str = "node-2") -> NodeExplanation:
    session = Session(server.client, server.clock, NAMESPACE, server.spoiling)
    return await explain_node(session, name)


@pytest.mark.parametrize(
    ("spec", "ready", "state"),
    [
        ({}, "True", "Ready"),
        ({"unschedulable": True}, "True", "Cordoned"),
        ({}, "False", "NotReady"),
    ],
)
async def test_it_says_who_has_devices_on_a_node_and_how_the_node_is(
    spec: dict[str, Any], ready: str, state: str
) -> None:
    server = held_on_node()
    server.admin.create("nodes", {"metadata": {"name": "node-2"}, "spec": spec})
    condition = {"type": "Ready", "status": ready}
    server.admin.patch("nodes", "", "node-2", {"status": {"conditions": [condition]}}, "status")
    node = await explained(server)
    (claim,) = node.claims
    wrong = {"Ready": "Held", "NotReady": "Held (NodeNotReady)", "Cordoned": "Held (NodeCordoned)"}
    assert (node.state, claim.name, claim.state) == (state, "slice", wrong[state])
    shown = node_lines(node)
    row = f"  ml/slice: {wrong[state]}, node-2/gpu-0, listed: deployments/train, 0 pods here"
    assert row in shown
    assert "gives a claim up as soon as a pod waits" in shown[-1]


async def test_a_node_that_is_gone_is_explained_while_a_claim_has_devices_on_it() -> None:
    server = held_on_node(reallocationPolicy="Never")
    node = await explained(server)
    assert node.state == "Gone"
    assert node_lines(node)[-1].endswith("null): claimctl release slice -n ml")
    with pytest.raises(
        CommandFailed, match="node node-9 not found, and no claim has devices or pods on"
    ):
        await explained(server, "node-9")


async def test_who_may_look_into_one_namespace_only_is_told_so() -> None:
    server = held_on_node()
    server.handler.fault = lambda point: (
        Fault(status=403, reason="Forbidden")
        if point.plural == "nodes" or (point.verb == "list" and not point.namespace)
        else None
    )
    node = await explained(server)
    assert (node.state, node.scope, len(node.claims)) == ("Unknown", NAMESPACE, 1)
    assert "1 claim with devices or pods here of namespace ml" in "\n".join(node_lines(node))


async def test_where_nothing_is_held_a_drain_is_as_without_claimctl() -> None:
    server = Server.started()
    server.admin.create("nodes", {"metadata": {"name": "node-1"}})
    assert node_lines(await explained(server, "node-1"))[-1].startswith("  No workload holds ")
