"""LeaveBadNodes: pods with claims on nodes and devices that would not take them any more."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.planning import plan
from claimctl_reschedule.plan.policy import Evictor, LeaveBadNodes, MoveHeldClaims, Policy, Profile
from claimctl_reschedule.shapes.records import Record, RecordedMove, RecordedWorkload
from claimctl_reschedule.shapes.scheduling import SchedulingNode, SchedulingPod
from claimctl_reschedule_tests.support.devices import (
    DRIVER,
    HOLD,
    TAINT,
    claim,
    device,
    entry,
    node,
    observed,
    pod,
    reservation,
    slice_,
    taint_rule,
    template,
)
from claimctl_reschedule_tests.support.scheduling import moves, reasons
from tests.support.builders import after

GOOD = node("node-1", cpu="8")
SLICES = (slice_("gpu-0", "gpu-1"), slice_("gpu-0", "gpu-1", node="node-1"))
PLANNED = {"type": "MaintenancePlanned", "status": "True"}
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
        (
            node("node-0", cpu="8", conditions=[PLANNED], unschedulable=True),
            using(),
            "node-0 is cordoned, and its maintenance is planned",
        ),
    ],
    ids=["a taint", "NoExecute", "a label", "maintenance"],
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
        (node("node-0", cpu="8", conditions=[PLANNED]), using()),
        (
            node("node-0", cpu="8", conditions=[PLANNED | {"status": "False"}], unschedulable=True),
            using(),
        ),
        (bad(), using(spec={"tolerations": [{"operator": "Exists"}]})),
        (bad(), pod("a")),
        (bad(), using(node="")),
    ],
    ids=["a hint", "ill", "ours", "cordoned", "open", "over", "tolerated", "no claim", "no node"],
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


FINE = node("node-0", cpu="8")
BROKEN = slice_(device("gpu-0", taints=[TAINT]), "gpu-1")
RULE = taint_rule({"pool": "node-0", "device": "gpu-0"})
WHY = "device gpu-0 of claim own has the taint broken, which it does not tolerate"


@pytest.mark.parametrize(
    "more",
    [{"slices": (BROKEN, SLICES[1])}, {"taint_rules": (RULE,)}],
    ids=["by its driver", "by a rule"],
)
def test_a_pod_leaves_a_device_that_is_tainted(more: dict[str, Any]) -> None:
    """Here its node is full as long as the pod ends there."""
    large = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "5"}}}]}
    made = planned(FINE, using(spec=large), evictor=Evictor(), **more)
    assert moves(made) == {"a": ("node-0", "node-1")}
    assert made.moves[0].why == WHY


@pytest.mark.parametrize(
    ("member", "more"),
    [
        (using(), {"taint_rules": (taint_rule({"pool": "node-1"}),)}),
        (using(), {"taint_rules": (taint_rule({}, effect="None"),)}),
        (pod("a"), {"taint_rules": (RULE,)}),
    ],
    ids=["another device", "no effect yet", "no claim"],
)
def test_a_pod_that_has_nothing_against_its_devices_stays(
    member: SchedulingPod, more: dict[str, Any]
) -> None:
    made = planned(FINE, member, evictor=Evictor(), **more)
    assert (moves(made), reasons(made)) == ({}, {})


def test_a_claim_that_tolerates_the_taint_stays() -> None:
    result = {"driver": DRIVER, "pool": "node-0", "device": "gpu-0"}
    tolerating = {**result, "tolerations": [{"key": TAINT["key"], "operator": "Exists"}]}
    own = claim(
        "own", owner="a", listed=[entry("a")], devices={"results": [tolerating]}, allocated=True
    )
    made = planned(FINE, using(), evictor=Evictor(), claims=(own,), taint_rules=(RULE,))
    assert (moves(made), reasons(made)) == ({}, {})


def test_a_pod_may_get_another_device_of_its_node() -> None:
    """Once a day for an owner: a scheduler that knows no rules gives it the same device again."""
    only = node("node-1", cpu="8", unschedulable=True)
    given = {"nodes": (FINE, only), "taint_rules": (RULE,)}
    made = planned(FINE, using(), evictor=Evictor(), **given)
    assert moves(made) == {"a": ("node-0", "node-0")}
    past = RecordedMove(at=after(-3600), source="node-0", predicted="node-0", landed="node-0")
    record = Record(workloads={"uid-set": RecordedWorkload(uid="uid-set", moves=(past,))})
    again = planned(FINE, using(), evictor=Evictor(), **given, record=record)
    assert reasons(again) == {"a": "WouldPingPong"}


def test_all_pods_of_an_owner_may_get_other_devices_in_one_run() -> None:
    """As long as there are some."""
    three = slice_("gpu-0", "gpu-1", "gpu-2", "gpu-3", "gpu-4")
    own = [claim(f"of-{name}", f"gpu-{n}", owner=name) for n, name in enumerate("abc")]
    pods = [pod(name, generated=f"of-{name}") for name in "abc"]
    rules = [taint_rule({"device": f"gpu-{number}"}) for number in range(3)]
    made = planned(
        FINE,
        *pods,
        evictor=Evictor(),
        nodes=(FINE,),
        slices=(three,),
        claims=own,
        taint_rules=rules,
    )
    assert moves(made) == dict.fromkeys("ab", ("node-0", "node-0"))
    assert reasons(made) == {"c": "NoFreeDevices"}


def test_pods_of_a_tainted_claim_that_is_held_leave_together() -> None:
    held = claim("slice", "gpu-0", listed=[HOLD, entry("a"), entry("b")])
    made = planned(
        FINE,
        pod("a", "slice"),
        pod("b", "slice"),
        evictor=Evictor(move_held_claims=MoveHeldClaims.WHOLE_UNIT),
        claims=(held,),
        reservations=(reservation(),),
        taint_rules=(RULE,),
    )
    assert moves(made) == dict.fromkeys(("a", "b"), ("node-0", "node-1"))
    assert len(made.reallocations) == 1
