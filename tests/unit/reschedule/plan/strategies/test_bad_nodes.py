"""LeaveBadNodes: pods with claims on nodes that would not take them any more."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.reschedule.plan.plan import Plan
from claimctl.reschedule.plan.planning import plan
from claimctl.reschedule.plan.policy import Evictor, LeaveBadNodes, MoveHeldClaims, Policy, Profile
from claimctl.reschedule.shapes.scheduling import SchedulingNode, SchedulingPod
from tests.support.devices import (
    HOLD,
    claim,
    entry,
    node,
    observed,
    pod,
    reservation,
    slice_,
    template,
)
from tests.support.scheduling import moves, reasons

GOOD = node("node-1", cpu="8")
SLICES = (slice_("gpu-0", "gpu-1"), slice_("gpu-0", "gpu-1", node="node-1"))
OWN = claim("own", "gpu-0", owner="a", listed=[entry("a")])


def bad(**taint: str) -> SchedulingNode:
    given = {"key": "example.com/worn", "effect": "NoSchedule", **taint}
    return node("node-0", cpu="8", taints=[given])


def planned(first: SchedulingNode, *pods: SchedulingPod, evictor: Evictor, **more: Any) -> Plan:
    seen = observed(
        **{
            "nodes": (first, GOOD),
            "pods": pods,
            "claims": (OWN,),
            "slices": SLICES,
            "claim_templates": (template(),),
            **more,
        }
    )
    policy = Policy(profiles=(Profile(evictor=evictor, deschedule=(LeaveBadNodes(),)),))
    return plan(seen, policy)


def using(name: str = "a", **fields: Any) -> SchedulingPod:
    return pod(name, generated="own", **fields)


@pytest.mark.parametrize(
    ("first", "member", "why"),
    [
        (bad(), using(), "it does not tolerate the taint example.com/worn of node-0"),
        (bad(effect="NoExecute"), using(), "it does not tolerate the taint example.com/worn of "),
        (
            node("node-0", cpu="8"),
            using(spec={"nodeSelector": {"kubernetes.io/hostname": "node-1"}}),
            "node-0 no longer has the labels that it asks for",
        ),
    ],
    ids=["a taint", "NoExecute", "a label"],
)
def test_a_pod_leaves_with_its_claim(
    first: SchedulingNode, member: SchedulingPod, why: str
) -> None:
    made = planned(first, member, evictor=Evictor())
    assert moves(made) == {"a": ("node-0", "node-1")}
    assert made.moves[0].why.startswith(why)


@pytest.mark.parametrize(
    ("first", "member"),
    [
        (bad(effect="PreferNoSchedule"), using()),
        (bad(key="node.kubernetes.io/not-ready"), using()),
        (bad(key="claimctl.io/moving", value="claimctl-uid-b"), using()),
        (node("node-0", cpu="8", unschedulable=True), using()),
        (bad(), using(spec={"tolerations": [{"operator": "Exists"}]})),
        (bad(), pod("a")),
        (bad(), using(node="")),
    ],
    ids=["a hint", "ill", "ours", "cordoned", "tolerated", "no claim", "no node"],
)
def test_a_pod_that_has_nothing_against_its_node_stays(
    first: SchedulingNode, member: SchedulingPod
) -> None:
    made = planned(first, member, evictor=Evictor())
    assert (moves(made), reasons(made)) == ({}, {})


def test_a_pod_stays_where_no_other_node_has_devices() -> None:
    made = planned(bad(), using(), evictor=Evictor(), slices=SLICES[:1])
    assert reasons(made) == {"a": "NoFreeDevices"}


@pytest.mark.parametrize("whole", [True, False])
def test_pods_of_a_held_claim_leave_together_or_stay(*, whole: bool) -> None:
    held = claim("slice", "gpu-0", listed=[HOLD, entry("a"), entry("b")])
    move = MoveHeldClaims.WHOLE_UNIT if whole else MoveHeldClaims.NEVER
    made = planned(
        bad(),
        pod("a", "slice"),
        pod("b", "slice"),
        evictor=Evictor(move_held_claims=move),
        claims=(held,),
        reservations=(reservation(),),
    )
    both = dict.fromkeys(("a", "b"), ("node-0", "node-1"))
    assert moves(made) == (both if whole else {})
    assert len(made.reallocations) == int(whole)
    assert set(reasons(made).values()) == (set() if whole else {"PinnedByClaim"})
