"""The witness of devices, on tables of driver calls and allocations."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.real.nodes.devices import FOREVER, NodeCall, judge, uses_of
from kube_in_process.storage.store import Revision, encode

ONE, TWO = "uid-1", "uid-2"


def number_at(at: float) -> int:
    """The number of the revision that is written at a time."""
    return int(at * 10)


def prepare(
    claim: str, at: float, device: str = "node-0/dev-0", error: str = "", node: str = "node-0"
) -> NodeCall:
    devices = () if error else (device,)
    version = number_at(at)
    return NodeCall("prepare", node, claim, f"team/{claim}", devices, at, at + 0.1, error, version)


def unprepare(claim: str, at: float, error: str = "", node: str = "node-0") -> NodeCall:
    return NodeCall("unprepare", node, claim, f"team/{claim}", (), at, at + 0.1, error)


def write(
    claim: str, at: float, *, allocated: bool, deleted: bool = False, late: float = 0.0
) -> Revision:
    """A revision that is written at a time, and reported some seconds later."""
    body: dict[str, Any] = {
        "metadata": {"name": claim, "namespace": "team", "uid": claim, "resourceVersion": "1"},
        "spec": {},
        "status": {"allocation": {"devices": {"results": []}}} if allocated else {},
    }
    return Revision(
        number=number_at(at),
        type="DELETED" if deleted else "MODIFIED",
        group="resource.k8s.io",
        plural="resourceclaims",
        namespace="team",
        name=claim,
        data=encode(body),
        previous=None,
        actor="",
        verb="update",
        at=at + late,
    )


def given(claim: str, at: float) -> Revision:
    return write(claim, at, allocated=True)


def taken(claim: str, at: float) -> Revision:
    return write(claim, at, allocated=False)


FINE = {
    "unprepared before it is deallocated": (
        [prepare(ONE, 2), unprepare(ONE, 8)],
        [given(ONE, 1), taken(ONE, 9)],
    ),
    "prepared twice for two pods, unprepared once": (
        [prepare(ONE, 2), prepare(ONE, 2.05), unprepare(ONE, 8)],
        [given(ONE, 1), taken(ONE, 9)],
    ),
    "still prepared, still allocated": ([prepare(ONE, 2)], [given(ONE, 1)]),
    "a device that changes hands": (
        [prepare(ONE, 2), unprepare(ONE, 4), prepare(TWO, 7), unprepare(TWO, 9)],
        [given(ONE, 1), taken(ONE, 5), given(TWO, 6), taken(TWO, 10)],
    ),
    "the watch reports the allocation much later": (
        [prepare(ONE, 2), unprepare(ONE, 8)],
        [write(ONE, 1, allocated=True, late=6), taken(ONE, 9)],
    ),
    "a preparation that failed uses nothing": (
        [prepare(ONE, 2, error="no such device")],
        [given(ONE, 1), taken(ONE, 3)],
    ),
    "allocated a second time": (
        [prepare(ONE, 2), unprepare(ONE, 4), prepare(ONE, 7)],
        [given(ONE, 1), taken(ONE, 5), given(ONE, 6)],
    ),
    "two claims, two devices": (
        [prepare(ONE, 2), prepare(TWO, 3, "node-0/dev-1")],
        [given(ONE, 1), given(TWO, 1)],
    ),
    "unprepared without having been prepared": ([unprepare(ONE, 2)], [given(ONE, 1)]),
}
FAULTY = {
    "deallocated while prepared": (
        [prepare(ONE, 2), unprepare(ONE, 9)],
        [given(ONE, 1), taken(ONE, 5)],
        [("DeallocatedInUse", 4.1)],
    ),
    "removed while prepared": (
        [prepare(ONE, 2), unprepare(ONE, 9)],
        [given(ONE, 1), write(ONE, 5, allocated=True, deleted=True)],
        [("DeallocatedInUse", 4.1)],
    ),
    "deallocated while the driver still unprepares": (
        [prepare(ONE, 2), NodeCall("unprepare", "node-0", ONE, "", (), 4, 9)],
        [given(ONE, 1), taken(ONE, 5)],
        [("DeallocatedInUse", 4.0)],
    ),
    "an unpreparation that failed ends nothing": (
        [prepare(ONE, 2), unprepare(ONE, 4, error="busy"), unprepare(ONE, 8)],
        [given(ONE, 1), taken(ONE, 5)],
        [("DeallocatedInUse", 3.1)],
    ),
    "never unprepared": (
        [prepare(ONE, 2)],
        [given(ONE, 1), taken(ONE, 5)],
        [("DeallocatedInUse", FOREVER)],
    ),
    "given to another claim while prepared": (
        [prepare(ONE, 2), prepare(TWO, 7), unprepare(ONE, 9)],
        [given(ONE, 1), taken(ONE, 5), given(TWO, 6)],
        [("DeallocatedInUse", 4.1), ("PreparedTwice", 2.1)],
    ),
    "allocated to two claims at once": (
        [prepare(ONE, 2), prepare(TWO, 3, node="node-1"), unprepare(ONE, 4)],
        [given(ONE, 1), given(TWO, 1)],
        [("AllocatedTwice", 1.1)],
    ),
    "allocated to two claims at once, but not when they were prepared": (
        [prepare(ONE, 2), prepare(TWO, 7), unprepare(TWO, 8), unprepare(ONE, 9)],
        [given(ONE, 1), taken(ONE, 5), given(TWO, 6), taken(TWO, 8.5), given(ONE, 7.5)],
        [("DeallocatedInUse", 4.1), ("PreparedTwice", 1.1)],
    ),
    "prepared after it was deallocated": (
        [prepare(ONE, 6), unprepare(ONE, 8)],
        [given(ONE, 1), taken(ONE, 5)],
        [("PreparedUnallocated", 2.1)],
    ),
    "prepared after it was deallocated, and the watch reports that later": (
        [prepare(ONE, 6), unprepare(ONE, 8)],
        [given(ONE, 1), write(ONE, 5, allocated=False, late=2)],
        [("PreparedUnallocated", 2.1)],
    ),
    "prepared and never allocated": (
        [prepare(ONE, 6), unprepare(ONE, 8)],
        [],
        [("PreparedUnallocated", 2.1)],
    ),
}


@pytest.mark.parametrize("name", FINE)
def test_a_device_that_is_used_as_it_was_given_is_no_fault(name: str) -> None:
    calls, history = FINE[name]
    assert judge(calls, history) == []


@pytest.mark.parametrize("name", FAULTY)
def test_a_device_that_is_given_away_while_in_use_is_a_fault(name: str) -> None:
    calls, history, expected = FAULTY[name]
    found = judge(calls, history)
    assert [each.rule for each in found] == [rule for rule, _ in expected]
    assert [each.seconds for each in found] == pytest.approx([each for _, each in expected])


def test_other_objects_are_no_claims() -> None:
    calls = [prepare(ONE, 2)]
    pod = Revision(1, "MODIFIED", "", "pods", "team", ONE, b"{}", None, "", "", 1.0)
    assert [each.rule for each in judge(calls, [pod])] == ["PreparedUnallocated"]


def test_a_use_lasts_from_the_begin_of_a_call_to_the_end_of_another() -> None:
    (use,) = uses_of([prepare(ONE, 2), unprepare(ONE, 4)])
    assert [use.since, use.until] == pytest.approx([2, 4.1])
    assert use.devices == ("node-0/dev-0",)


def test_a_claim_is_used_on_each_node_on_its_own() -> None:
    uses = uses_of([prepare(ONE, 2), prepare(ONE, 3, node="node-1"), unprepare(ONE, 4)])
    assert [each.node for each in uses] == ["node-0", "node-1"]
    assert [each.until for each in uses] == pytest.approx([4.1, FOREVER])


def test_a_fault_says_what_happened_for_how_long() -> None:
    calls, history, _ = FAULTY["deallocated while prepared"]
    (fault,) = judge(calls, history)
    assert str(fault) == "DeallocatedInUse: node-0/dev-0 of team/uid-1, for 4.1 s"
    calls, history, _ = FAULTY["never unprepared"]
    (fault,) = judge(calls, history)
    assert str(fault) == "DeallocatedInUse: node-0/dev-0 of team/uid-1, to the end"
