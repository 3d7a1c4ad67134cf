"""Devices and claims after the moves that are chosen so far."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl_reschedule.plan.inventory import DeviceCount, Inventory, Placement
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.devices import (
    CLASS,
    DRIVER,
    GROUP,
    HOLD,
    TAINT,
    claim,
    device,
    device_class,
    entry,
    observed,
    pod,
    request,
    reservation,
    slice_,
    template,
)

SLICES = (
    slice_("gpu-0", "gpu-1", node="node-0"),
    slice_("gpu-0", node="node-1"),
    slice_("gpu-0", node="node-2"),
)
UNSCHEDULABLE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
TWO_EACH = tuple(slice_("gpu-0", "gpu-1", node=f"node-{number}") for number in range(3))


def inventory(*pods: SchedulingPod, **fields: Any) -> Inventory:
    return Inventory(observed(**{"slices": SLICES, "pods": pods, **fields}))


def id_(node: str, device: str = "gpu-0") -> tuple[str, str, str]:
    return DRIVER, node, device


def reason(found: Placement | Obstacle) -> Ground | None:
    return found.reason if isinstance(found, Obstacle) else None


def test_a_pod_without_claims_can_be_anywhere() -> None:
    assert inventory().place(pod("a"), "node-1") == Placement("uid-a", "node-1")


def test_a_generated_claim_goes_with_its_pod_and_devices_are_found_elsewhere() -> None:
    a = pod("a", generated="a-own")
    on = inventory(a, claims=[claim("a-own", "gpu-0", owner="a")])
    on.leave((a,))
    assert on.place(a, "node-1") == Placement("uid-a", "node-1", (id_("node-1"),))
    assert on.place(a, "node-0") == Placement("uid-a", "node-0", (id_("node-0"),))


def test_one_free_device_takes_one_of_ten_pods() -> None:
    pods = [pod(f"p{number}", generated=f"own-{number}") for number in range(10)]
    slices = (
        slice_(*(f"gpu-{number}" for number in range(10)), node="node-0"),
        slice_("gpu-0", node="node-1"),
    )
    claims = [claim(f"own-{n}", f"gpu-{n}", owner=f"p{n}") for n in range(10)]
    on = inventory(*pods, claims=claims, slices=slices)
    moved = 0
    for each in pods:
        on.leave((each,))
        found = on.place(each, "node-1")
        if isinstance(found, Placement):
            on.take(found)
            on.commit()
            moved += 1
        else:
            assert found.reason is Ground.NO_DEVICES
            on.undo()
    assert moved == 1
    assert on.usage(CLASS)["node-0"] == DeviceCount(9, 10)
    assert on.usage(CLASS)["node-1"] == DeviceCount(1, 1)


def test_undo_restores_what_was_before() -> None:
    a = pod("a", generated="a-own")
    on = inventory(a, claims=[claim("a-own", "gpu-0", owner="a")])
    before = dict(on.usage(CLASS))
    on.leave((a,))
    placed = on.place(a, "node-1")
    assert isinstance(placed, Placement)
    on.take(placed)
    assert on.usage(CLASS) != before
    on.undo()
    assert on.usage(CLASS) == before
    assert reason(on.place(a, "node-1")) is Ground.PINNED


SHARED = claim("slice", "gpu-0", listed=[entry("a"), entry("b"), HOLD])
PAIR = pod("a", "slice"), pod("b", "slice")


def test_a_named_claim_stays_while_its_node_is_open() -> None:
    on = inventory(*PAIR, claims=[SHARED])
    on.leave(PAIR)
    assert reason(on.place(PAIR[0], "node-1")) is Ground.PINNED
    assert on.place(PAIR[0], "node-0") == Placement("uid-a", "node-0", joins=(("ml", "slice"),))


def test_a_unit_leaves_a_closed_node_with_its_claim() -> None:
    on = inventory(*PAIR, claims=[SHARED], reservations=[reservation()])
    on.leave(PAIR, source_closed=True)
    first = on.place(PAIR[0], "node-1")
    key = ("ml", "slice")
    assert first == Placement(
        "uid-a", "node-1", (id_("node-1"),), allocates=((key, (id_("node-1"),)),)
    )
    assert isinstance(first, Placement)
    on.take(first)
    assert on.place(PAIR[1], "node-1") == Placement("uid-b", "node-1", joins=(key,))
    assert reason(on.place(PAIR[1], "node-2")) is Ground.PINNED
    assert on.usage(CLASS)["node-0"].used == 0


@pytest.mark.parametrize(
    "kept",
    [
        {"pods": (*PAIR, pod("c", "slice"))},
        {"reservations": [reservation(forceDeletedPods=[{"uid": "uid-x", "name": "x"}])]},
        {"reservations": []},
    ],
    ids=["another pod", "a ghost", "a hold of somebody else"],
)
def test_a_claim_that_something_else_keeps_is_not_free(kept: dict[str, Any]) -> None:
    fields = {"reservations": [reservation()], "pods": PAIR, **kept}
    on = inventory(claims=[SHARED], **fields)
    on.leave(PAIR, source_closed=True)
    assert reason(on.place(PAIR[0], "node-1")) is Ground.PINNED


def test_devices_that_several_nodes_reach_let_a_pod_move_with_its_claim() -> None:
    net = slice_("gpu-0", pool="net", allNodes=True)
    on = inventory(
        *PAIR, slices=[net], claims=[claim("slice", "gpu-0", node="net", everywhere=True)]
    )
    on.leave((PAIR[0],))
    assert on.place(PAIR[0], "node-2") == Placement("uid-a", "node-2", joins=(("ml", "slice"),))


def test_a_full_list_has_no_place_for_the_replacement() -> None:
    full = claim("slice", "gpu-0", listed=[entry("a"), *(entry(f"x{n}") for n in range(255))])
    on = inventory(*PAIR, claims=[full])
    on.leave((PAIR[0],))
    assert reason(on.place(PAIR[0], "node-0")) is Ground.NO_PLACE_IN_CLAIM
    on.undo()
    assert reason(on.place(PAIR[0], "node-0")) is None


@pytest.mark.parametrize(
    "sharing",
    [{"listed": [GROUP]}, {"listed": [HOLD], "reservedForAnyPod": True}],
    ids=["a PodGroup", "any pod"],
)
def test_pods_that_share_a_claim_without_an_entry_need_no_place(sharing: dict[str, Any]) -> None:
    listed = [*sharing.pop("listed"), *(entry(f"x{number}") for number in range(255))]
    on = inventory(*PAIR, claims=[claim("slice", "gpu-0", listed=listed, **sharing)])
    on.leave((PAIR[0],))
    assert reason(on.place(PAIR[0], "node-0")) is None


def test_devices_of_a_driver_that_publishes_nothing_count_as_usable() -> None:
    on = inventory(*PAIR, claims=[SHARED], slices=[])
    on.leave((PAIR[0],))
    assert reason(on.place(PAIR[0], "node-0")) is None


def test_each_move_takes_a_place_in_the_list() -> None:
    almost = claim("slice", "gpu-0", listed=[entry(f"x{number}") for number in range(255)])
    on = inventory(*PAIR, claims=[almost])
    on.leave(PAIR)
    first = on.place(PAIR[0], "node-0")
    assert isinstance(first, Placement)
    on.take(first)
    assert reason(on.place(PAIR[1], "node-0")) is Ground.NO_PLACE_IN_CLAIM


@pytest.mark.parametrize(
    "slices",
    [
        [slice_(device("gpu-0", taints=[TAINT]), node="node-0")],
        [slice_("gpu-1", node="node-0")],
    ],
    ids=["tainted", "not published"],
)
def test_devices_that_are_lost_are_the_controllers_task(slices: list[Any]) -> None:
    on = inventory(*PAIR, claims=[SHARED], slices=slices)
    on.leave((PAIR[0],))
    assert reason(on.place(PAIR[0], "node-0")) is Ground.CLAIM_UNREACHABLE


def test_a_pod_that_waits_gets_devices_by_its_claim_or_its_template() -> None:
    waiting = pod("w", "slice", node="", spec={"resourceClaims": [
        {"name": "slice", "resourceClaimName": "slice"},
        {"name": "own", "resourceClaimTemplateName": "template"},
    ]})  # fmt: skip
    on = inventory(waiting, claims=[claim("slice")], claim_templates=[template()])
    placed = on.place(waiting, "node-0")
    assert placed == Placement(
        "uid-w",
        "node-0",
        (id_("node-0", "gpu-0"), id_("node-0", "gpu-1")),
        allocates=((("ml", "slice"), (id_("node-0", "gpu-0"),)),),
    )
    assert reason(on.place(waiting, "node-1")) is Ground.NO_DEVICES


def test_what_was_not_read_is_unknown() -> None:
    waiting = pod("w", "slice", node="")
    assert reason(inventory(waiting).place(waiting, "node-0")) is Ground.FIT_UNKNOWN
    generated = pod("w", node="", generated="")
    generated = pod("w", node="", spec={"resourceClaims": [
        {"name": "own", "resourceClaimTemplateName": "template"}]})  # fmt: skip
    assert reason(inventory(generated).place(generated, "node-0")) is Ground.FIT_UNKNOWN


def test_a_selector_that_cannot_be_judged_is_unknown() -> None:
    a = pod("a", generated="a-own")
    odd = claim("a-own", "gpu-0", owner="a", requests=[request("gpu", "device.unheardOf")])
    on = inventory(a, claims=[odd])
    on.leave((a,))
    assert reason(on.place(a, "node-1")) is Ground.FIT_UNKNOWN


def test_idle_held_devices_and_those_of_ghosts_count_as_used() -> None:
    idle = claim("slice", "gpu-0", listed=[HOLD])
    ghost = claim("other", "gpu-1", listed=[HOLD])
    on = inventory(claims=[idle, ghost], reservations=[reservation(), reservation("other")])
    assert on.usage(CLASS)["node-0"] == DeviceCount(2, 2)


def test_undo_takes_back_what_was_taken_for_a_claim() -> None:
    on = inventory(*PAIR, claims=[SHARED], reservations=[reservation()])
    on.leave(PAIR, source_closed=True)
    placed = on.place(PAIR[0], "node-1")
    assert isinstance(placed, Placement)
    on.take(placed)
    on.undo()
    on.leave(PAIR, source_closed=True)
    assert reason(on.place(PAIR[1], "node-2")) is None


def test_undo_takes_back_places_in_lists() -> None:
    almost = claim("slice", "gpu-0", listed=[entry(f"x{number}") for number in range(255)])
    on = inventory(*PAIR, claims=[almost])
    for _ in range(2):
        on.leave((PAIR[0],))
        placed = on.place(PAIR[0], "node-0")
        assert isinstance(placed, Placement)
        on.take(placed)
        on.undo()


def test_a_request_for_all_devices_fails_beside_an_incomplete_pool() -> None:
    waiting = pod("w", "slice", node="")
    wanted = claim("slice", requests=[request(allocationMode="All")])
    half = slice_("gpu-9", node="node-1", pool="half", count=2)
    for slices, expected in ((SLICES, None), ((*SLICES, half), Ground.NO_DEVICES)):
        on = inventory(waiting, claims=[wanted], slices=slices)
        assert reason(on.place(waiting, "node-1")) is expected


def test_a_device_that_two_claims_have_is_free_when_both_are() -> None:
    pods = pod("a", generated="a-own"), pod("b", generated="b-own")
    claims = [claim("a-own", "gpu-0", owner="a"), claim("b-own", "gpu-0", owner="b")]
    on = inventory(*pods, claims=claims)
    for leaving, used in zip(pods, (1, 0), strict=True):
        on.leave((leaving,))
        assert on.usage(CLASS)["node-0"].used == used


def test_a_device_with_admin_access_is_not_used() -> None:
    result = {"request": "gpu", "driver": DRIVER, "pool": "node-0", "device": "gpu-0"}
    devices = {"results": [{**result, "adminAccess": True}]}
    on = inventory(claims=[claim("slice", allocated=True, devices=devices)])
    assert on.usage(CLASS)["node-0"] == DeviceCount(0, 2)


def test_usage_counts_what_the_class_selects_and_no_tainted_device() -> None:
    slices = [
        slice_(device("a", model="big"), device("b"), device("c", model="big", taints=[TAINT]))
    ]
    big = device_class("big", 'has(device.attributes["gpu.example.com"].model)')
    on = inventory(slices=slices, device_classes=(big, device_class()))
    assert on.usage("big") == {"node-0": DeviceCount(0, 1)}
    assert on.usage(CLASS) == {"node-0": DeviceCount(0, 2)}
    assert on.usage("none") == {}


def test_requested_counts_the_devices_that_a_pod_has() -> None:
    a = pod("a", "slice", generated="a-own")
    on = inventory(a, claims=[claim("slice", "gpu-0"), claim("a-own", "gpu-1", owner="a")])
    assert on.requested(a, CLASS) == 2
    assert on.requested(pod("b"), CLASS) == 0


def test_admin_access_takes_no_device() -> None:
    admin = claim("a-own", owner="a", requests=[request(adminAccess=True)])
    waiting = pod("a", generated="a-own", node="")
    on = inventory(waiting, claims=[admin, claim("slice", "gpu-0", node="node-1", listed=[HOLD])])
    assert on.place(waiting, "node-1") == Placement(
        "uid-a", "node-1", allocates=((("ml", "a-own"), (id_("node-1"),)),)
    )


def test_devices_of_several_nodes_are_no_place_while_a_pod_waits_for_devices() -> None:
    """It comes before the replacement as soon as a move makes room for it."""
    net = slice_("gpu-0", pool="net", allNodes=True)
    a = pod("a", generated="a-own")
    waiting = pod("w", "wanted", node="", status={"conditions": [UNSCHEDULABLE]})
    claims = [claim("a-own", "gpu-0", owner="a"), claim("wanted")]
    for pods, expected in (((a,), None), ((a, waiting), Ground.NO_DEVICES)):
        on = inventory(
            *pods, claims=claims, slices=(*SLICES[:1], net), claim_templates=[template()]
        )
        on.leave((a,))
        assert reason(on.place(a, "node-1")) is expected
    assert reason(on.place(waiting, "node-1")) is None
