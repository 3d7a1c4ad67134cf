"""The conditions of a ClaimReservation."""

from __future__ import annotations

from tests.support.builders import claim, node, pod_ref, running
from tests.support.claim_cases import ACTIVE, WORKLOAD, condition, stage


def test_a_bound_pod_on_a_claim_without_allocation_is_reported_as_stranded() -> None:
    on = stage(claim(allocated=False), ACTIVE)
    on.put(running("a"))
    on.settle(seconds=1)
    assert condition(on, "Consistent") == ("False", "StrandedPod")


def test_a_pod_on_a_node_that_the_claim_is_not_allocated_for_is_reported_as_stranded() -> None:
    on = stage(claim(WORKLOAD, pod_ref("a"), pod_ref("b")), ACTIVE)
    on.nodes = {"node-0": node(), "node-1": node("node-1")}
    on.put(running("a"), running("b", "node-1"))
    on.settle(seconds=1)
    assert condition(on, "Consistent") == ("False", "StrandedPod")
    on.remove("b")
    on.settle(seconds=1)
    assert condition(on, "Consistent") == ("True", "Consistent")
