"""Which pods move together, and what keeps a unit where it is."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.wire.base import from_plain
from claimctl.wire.reservations import DowngradePlan
from claimctl_reschedule.plan.claims import Claims
from claimctl_reschedule.plan.inventory import Inventory
from claimctl_reschedule.plan.plan import Reallocation
from claimctl_reschedule.plan.policy import Evictor, MoveHeldClaims
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.plan.units import ClaimUnits, Unit
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.devices import (
    GROUP,
    HOLD,
    TAINT,
    claim,
    device,
    entry,
    observed,
    pod,
    pod_group,
    reservation,
    slice_,
)
from tests.support.builders import after

NEVER = Evictor()
WHOLE = Evictor(move_held_claims=MoveHeldClaims.WHOLE_UNIT)
A, B, C = pod("a", "slice"), pod("b", "slice"), pod("c")
SLICES = (slice_("gpu-0", "gpu-1", node="node-0"), slice_("gpu-0", node="node-1"))
HELD = claim("slice", "gpu-0", listed=[entry("a"), entry("b"), HOLD])
FREE = claim("slice", "gpu-0", listed=[entry("a")])
NET = claim("slice", "gpu-0", node="net", everywhere=True, listed=[entry("a"), HOLD])


def unit(of: SchedulingPod, evictor: Evictor = NEVER, **fields: Any) -> Unit:
    seen = observed(**{"pods": (A, B, C), "slices": SLICES, **fields})
    claims = Claims(seen)
    return ClaimUnits(seen, claims, Inventory(seen, claims)).unit_of(of, evictor)


def names(found: Unit) -> list[str]:
    return [each.metadata.name for each in found.pods]


def against(found: Unit) -> Ground | None:
    return found.obstacle.reason if found.obstacle else None


def downgrade(**spec: Any) -> DowngradePlan:
    return from_plain({"metadata": {"name": "claimctl"}, "spec": spec}, DowngradePlan)


def test_a_pod_alone_is_a_unit_without_a_name() -> None:
    assert unit(C) == Unit((C,))


def test_a_pod_with_a_generated_claim_is_alone() -> None:
    one = pod("one", generated="own")
    assert unit(one, WHOLE, pods=(one,), claims=[claim("own", "gpu-0", owner="one")]) == Unit(
        (one,)
    )


@pytest.mark.parametrize(
    ("made", "owner", "pods", "expected"),
    [
        (HELD, "ReplicaSet", (A, B), Ground.PINNED),
        (FREE, "ReplicaSet", (A,), Ground.PINNED),
        (FREE, "Job", (A,), Ground.MAY_RETURN),
        (FREE, "StatefulSet", (A,), Ground.MAY_RETURN),
        (FREE, "StatefulSet", (A, B), Ground.PINNED),
        (NET, "ReplicaSet", (A, B), None),
    ],
    ids=["held", "last of a ReplicaSet", "of a Job", "of a StatefulSet", "shared", "reachable"],
)
def test_by_default_a_pinned_pod_stays(
    made: Any, owner: str, pods: tuple[SchedulingPod, ...], expected: Ground | None
) -> None:
    one = pod("a", "slice", owner=owner)
    reserved = [reservation()] if made is HELD or made is NET else []
    net = slice_("gpu-0", pool="net", allNodes=True)
    found = unit(
        one, claims=[made], pods=(one, *pods[1:]), reservations=reserved, slices=(*SLICES, net)
    )
    assert against(found) is expected
    assert names(found) == ["a"]
    assert not found.close_source


def test_a_whole_unit_leaves_with_its_held_claim() -> None:
    found = unit(B, WHOLE, claims=[HELD], reservations=[reservation()])
    asked = Reallocation(
        namespace="ml",
        reservation="slice",
        claim="slice",
        claim_uid="uid-slice",
        unit="ml/a",
        leader_since=after(-3600),
    )
    assert found == Unit((A, B), "ml/a", True, (asked,))


def test_a_unit_is_the_same_whichever_pod_is_asked_for() -> None:
    fields = {"claims": [HELD], "reservations": [reservation()]}
    assert unit(A, WHOLE, **fields) == unit(B, WHOLE, **fields)


def test_units_are_linked_over_several_claims() -> None:
    pods = pod("a", "x"), pod("b", "x", "y"), pod("c", "y"), pod("d", "z")
    made = [claim("x", "gpu-0"), claim("y", "gpu-1"), claim("z", "gpu-1")]
    assert names(unit(pods[0], WHOLE, pods=pods, claims=made)) == ["a", "b", "c"]


def test_a_claim_that_nothing_holds_needs_no_request() -> None:
    found = unit(A, WHOLE, claims=[FREE], pods=(A,))
    assert (found.close_source, found.reallocate, found.obstacle) == (True, (), None)


def test_each_reservation_of_a_claim_is_asked() -> None:
    reserved = [reservation(), reservation(name="other")]
    found = unit(A, WHOLE, claims=[HELD], reservations=reserved)
    assert [each.reservation for each in found.reallocate] == ["other", "slice"]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reservations": [reservation(timeout=None)]}, Ground.NEVER_REALLOCATED),
        ({"reservations": []}, Ground.PINNED),
        ({"reservations": [reservation(forceDeletedPods=[{"uid": "x"}])]}, Ground.PINNED),
        ({"downgrade_plans": [downgrade(namespaces=["ml"])]}, Ground.DOWNGRADE),
        ({"downgrade_plans": [downgrade(namespaces=["other"])]}, None),
        ({"downgrade_plans": [downgrade(action="Restore")]}, None),
        ({"slices": [slice_(device("gpu-0", taints=[TAINT]))]}, None),
        ({"slices": [slice_("gpu-1")]}, Ground.CLAIM_UNREACHABLE),
        ({"pods": (A, pod("b", "slice", node="node-1"))}, Ground.PINNED),
        (
            {"claims": [claim("slice", "gpu-0", listed=[GROUP])], "reservations": []},
            Ground.PINNED,
        ),
    ],
    ids=[
        "never",
        "another holder",
        "a ghost",
        "a downgrade",
        "a downgrade elsewhere",
        "a restore",
        "a tainted device",
        "a lost device",
        "pods on two nodes",
        "a PodGroup without a hold",
    ],
)
def test_what_keeps_a_whole_unit(fields: dict[str, Any], expected: Ground | None) -> None:
    found = unit(A, WHOLE, **{"claims": [HELD], "reservations": [reservation()], **fields})
    assert against(found) is expected
    assert found.close_source is (expected is None)


def test_a_lost_device_is_the_controllers_task_under_every_policy() -> None:
    found = unit(A, claims=[FREE], slices=[slice_("gpu-1")])
    assert against(found) is Ground.CLAIM_UNREACHABLE


def test_a_downgrade_does_not_concern_claims_that_nothing_holds() -> None:
    found = unit(A, claims=[FREE], pods=(A,), downgrade_plans=[downgrade(namespaces=["ml"])])
    assert against(found) is Ground.PINNED


MEMBERS = tuple(pod(f"m{number}", group="g", node=f"node-{number}") for number in range(3))


@pytest.mark.parametrize(
    ("spec", "of", "expected"),
    [
        ({"disruptionMode": "PodGroup"}, 2, 3),
        ({"disruptionMode": {"all": {}}}, 2, 3),
        ({"disruptionMode": "Pod"}, 2, 1),
        ({"disruptionMode": {"single": {}}}, 2, 1),
        ({"schedulingPolicy": {"gang": {"minCount": 3}}}, 2, 3),
        ({"schedulingPolicy": {"gang": {"minCount": 2}}}, 2, 1),
        ({"schedulingPolicy": {"gang": {"minCount": 2}}}, 1, 3),
        ({"schedulingPolicy": {"basic": {}}}, 1, 1),
        ({}, 1, 1),
    ],
)
def test_groups_that_leave_as_a_whole(spec: dict[str, Any], of: int, expected: int) -> None:
    found = unit(MEMBERS[of], pods=MEMBERS, pod_groups=[pod_group(**spec)])
    assert len(found.pods) == expected
    assert bool(found.id) is (expected > 1)


def test_finished_and_waiting_pods_are_no_members() -> None:
    more = pod("done", group="g", phase="Succeeded"), pod("waits", group="g", node="")
    group = pod_group(disruptionMode="PodGroup")
    found = unit(MEMBERS[0], pods=(*MEMBERS, *more), pod_groups=[group])
    assert names(found) == ["m0", "m1", "m2"]


def test_one_pinned_member_pins_its_group() -> None:
    members = pod("a", "slice", group="g"), pod("m", group="g")
    group = pod_group(disruptionMode="PodGroup")
    found = unit(members[1], pods=members, pod_groups=[group], claims=[FREE])
    assert names(found) == ["a", "m"]
    assert against(found) is Ground.PINNED
