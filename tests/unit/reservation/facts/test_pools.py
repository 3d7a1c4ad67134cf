"""Which drivers have devices of a claim that belong to a node."""

from __future__ import annotations

import pytest

from claimctl.reservation.facts.pools import drivers_on, pools_of
from claimctl.wire.base import from_plain
from claimctl.wire.claims import ResourceClaim, ResourcePool, ResourceSlice, ResourceSliceSpec

GPU, NIC = "gpu.example.com", "nic.example.com"


def allocated(*drivers: str, node: str = "", label: str = "") -> ResourceClaim:
    """A claim of one device of each driver, from the pool that is named after the driver."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}] if node else []
    labels = [{"key": "zone", "operator": "In", "values": [label]}] if label else []
    terms = [{"matchFields": fields, "matchExpressions": labels}] if fields or labels else []
    results = [{"driver": name, "pool": name, "device": "d-0", "request": "r"} for name in drivers]
    selector = {"nodeSelectorTerms": terms}
    allocation = {"devices": {"results": results}, "nodeSelector": selector}
    return from_plain({"status": {"allocation": allocation}}, ResourceClaim)


def of_node(driver: str, node: str = "node-0") -> ResourceSlice:
    pool = ResourcePool(name=driver, generation=1, resource_slice_count=1)
    return ResourceSlice(spec=ResourceSliceSpec(driver=driver, pool=pool, node_name=node))


@pytest.mark.parametrize(
    ("known", "slices", "expected"),
    [
        pytest.param(allocated(GPU, node="node-0"), (of_node(GPU),), {GPU}, id="of the node"),
        pytest.param(allocated(GPU, node="node-0"), (), {GPU}, id="of the node, withdrawn"),
        pytest.param(allocated(GPU), (of_node(GPU),), {GPU}, id="an allocation that names no node"),
        pytest.param(allocated(GPU, node="node-1"), (of_node(GPU, "node-1"),), set(), id="another"),
        pytest.param(allocated(GPU, node="node-1"), (), set(), id="another node, withdrawn"),
        pytest.param(allocated(GPU, label="a"), (of_node(GPU, ""),), set(), id="of the network"),
        pytest.param(allocated(GPU, label="a"), (), set(), id="of the network, withdrawn"),
        pytest.param(allocated(GPU), (), set(), id="of all nodes, withdrawn"),
        pytest.param(
            allocated(GPU, NIC, node="node-0"), (of_node(NIC, ""),), {GPU}, id="both kinds"
        ),
        pytest.param(
            allocated(GPU, NIC, node="node-0"), (of_node(GPU),), {GPU, NIC}, id="one is withdrawn"
        ),
        pytest.param(
            allocated(GPU), (of_node(GPU, "node-1"), of_node(GPU)), {GPU}, id="a pool of nodes"
        ),
        pytest.param(
            allocated(GPU, node="node-0"), (of_node(GPU, "node-1"),), {GPU}, id="withdrawn of one"
        ),
        pytest.param(
            allocated(GPU, node="node-0"), (of_node(NIC, "node-1"),), {GPU}, id="another's pool"
        ),
        pytest.param(allocated(NIC), (of_node(GPU),), set(), id="other pools than the claim's"),
    ],
)
def test_which_drivers_have_devices_of_a_claim_that_belong_to_a_node(
    known: ResourceClaim, slices: tuple[ResourceSlice, ...], expected: set[str]
) -> None:
    is_named = "node-0" in known.nodes_named
    assert drivers_on("node-0", pools_of(known), slices, is_named=is_named) == expected
