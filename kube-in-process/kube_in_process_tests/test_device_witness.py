"""The witness of devices, on tables of driver calls and allocations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from kube_in_process.containers import FOREVER
from kube_in_process.device_witness import judge, uses_of
from kube_in_process.habits.call import Call
from kube_in_process.storage.store import Revision, encode
from msgspec.structs import replace

Object = dict[str, Any]
ONE, TWO = "uid-1", "uid-2"


def number_at(at: float) -> int:
    """The number of the revision that is written at a time."""
    return int(at * 10)


def prepare(
    claim: str, at: float, device: str = "node-0/dev-0", error: str = "", node: str = "node-0"
) -> Call:
    devices = () if error else (device,)
    version = number_at(at)
    name = f"team/{claim}"
    return Call("prepare", name, claim, node, at, at + 0.1, error, devices, version)


def unprepare(claim: str, at: float, error: str = "", node: str = "node-0") -> Call:
    return Call("unprepare", f"team/{claim}", claim, node, at, at + 0.1, error)


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
        [prepare(ONE, 2), Call("unprepare", "", ONE, "node-0", 4, 9)],
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
    faults = judge(calls, history)
    assert [fault.rule for fault in faults] == [rule for rule, _ in expected]
    assert [fault.seconds for fault in faults] == pytest.approx([fault for _, fault in expected])


# Containers


def clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(at: float, *states: Object, name: str = "p1", deleted: bool = False, **meta: Any) -> Object:
    """A version of a pod with a container, or with some, in the given states."""
    body = {
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", **meta},
        "spec": {
            "nodeName": "node-0",
            "resourceClaims": [{"name": "c", "resourceClaimName": ONE}],
        },
        "status": {
            "containerStatuses": [
                {"name": f"c{index}", **state} for index, state in enumerate(states)
            ]
        },
    }
    return {"at": at, "body": body, "deleted": deleted}


def running(since: float, **more: Any) -> Object:
    return {"state": {"running": {"startedAt": clock(since)}}, **more}


def ended(at: float) -> Object:
    return {"terminated": {"finishedAt": clock(at), "startedAt": clock(0)}}


def versions(*pods: Object) -> list[Revision]:
    return [
        Revision(
            number=number_at(pod["at"]),
            type="DELETED" if pod["deleted"] else "MODIFIED",
            group="",
            plural="pods",
            namespace="team",
            name=pod["body"]["metadata"]["name"],
            data=encode(pod["body"]),
            previous=None,
            actor="",
            verb="update",
            at=pod["at"],
        )
        for pod in pods
    ]


def has_device(at: float) -> Revision:
    """The claim ONE gets a device."""
    given_one = given(ONE, at)
    body = given_one.object()
    body["status"]["allocation"]["devices"]["results"] = [{"device": "dev-0"}]
    return replace(given_one, data=encode(body))


PREPARED = [prepare(ONE, 2.0), unprepare(ONE, 20.0)]

RAN_WELL: dict[str, tuple[list[Call], list[Object]]] = {
    "it ends before its device is unprepared": (
        PREPARED,
        [pod(3, running(3)), pod(21, {"state": ended(19)})],
    ),
    "it ends in the second of the unprepare": (
        PREPARED,
        [pod(3, running(3)), pod(22, {"state": ended(20)})],
    ),
    "it is being deleted, and nobody says when it ended": (
        PREPARED,
        [
            pod(3, running(3)),
            pod(19, running(3), deletionTimestamp=clock(49), deletionGracePeriodSeconds=30),
        ],
    ),
    "it was never started": (
        [],
        [pod(9, {"state": {"terminated": {"finishedAt": None, "startedAt": None}}})],
    ),
    "it was deleted by force": (
        PREPARED,
        [pod(3, running(3)), pod(40, running(3), deleted=True)],
    ),
    "it is restarted, and ends": (
        PREPARED,
        [
            pod(3, running(3)),
            pod(9, running(9, lastState=ended(8))),
            pod(21, {"state": ended(20), "lastState": ended(8)}),
        ],
    ),
    "it waits after it has ended": (
        PREPARED,
        [pod(3, running(3)), pod(21, {"state": {"waiting": {}}, "lastState": ended(19)})],
    ),
    "it has ended when its device is unprepared, and starts again when it is prepared again": (
        [*PREPARED, prepare(ONE, 25.0)],
        [pod(3, running(3)), pod(27, running(26, lastState=ended(19)))],
    ),
    "its device is still prepared": ([prepare(ONE, 2.0)], [pod(3, running(3))]),
    "a kubelet prepares the device again": (
        [prepare(ONE, 2.0), prepare(ONE, 9.0)],
        [pod(3, running(3))],
    ),
}
RAN_BADLY: dict[str, tuple[list[Call], list[Object], list[tuple[float, float]]]] = {
    "the device is unprepared while it runs": (
        PREPARED,
        [pod(3, running(3)), pod(31, {"state": ended(30)})],
        [(20.1, 9.9)],
    ),
    "it starts beside an unprepare": (
        PREPARED,
        [pod(19, running(18), name="p2")],
        [(20.1, FOREVER)],
    ),
    "the device is prepared again for another pod": (
        [*PREPARED, prepare(ONE, 25.0)],
        [pod(19, running(18), name="p2")],
        [(20.1, 4.9)],
    ),
    "the device was never prepared": (
        [],
        [pod(3, running(3)), pod(9, {"state": ended(8)})],
        [(4, 4)],
    ),
    "the prepare came later than its start": (
        [prepare(ONE, 9.0)],
        [pod(3, running(3))],
        [(4.0, 5.0)],
    ),
    "the device is prepared on another node": (
        [prepare(ONE, 2.0, node="node-1")],
        [pod(3, running(3)), pod(9, {"state": ended(8)})],
        [(4.0, 4.0)],
    ),
    "only one of two containers ended": (
        PREPARED,
        [pod(3, running(3), running(3)), pod(21, {"state": ended(19)}, running(3))],
        [(20.1, FOREVER)],
    ),
    "it was restarted after its device was unprepared": (
        [*PREPARED, prepare(ONE, 30.0)],
        [pod(3, running(3)), pod(32, running(31, lastState=ended(28)))],
        [(20.1, 7.9)],
    ),
    "it runs until it is deleted": (
        PREPARED,
        [
            pod(3, running(3)),
            pod(26, running(3), deletionTimestamp=clock(55), deletionGracePeriodSeconds=30),
        ],
        [(20.1, 4.9)],
    ),
}


@pytest.mark.parametrize("name", RAN_WELL)
def test_a_container_that_runs_while_its_device_is_prepared_is_no_fault(name: str) -> None:
    calls, pods = RAN_WELL[name]
    assert judge(calls, [has_device(1), *versions(*pods)]) == []


@pytest.mark.parametrize("name", RAN_BADLY)
def test_a_container_that_runs_without_its_device_is_a_fault(name: str) -> None:
    calls, pods, expected = RAN_BADLY[name]
    faults = judge(calls, [has_device(1), *versions(*pods)])
    assert {fault.rule for fault in faults} == {"RanUnprepared"}
    spans = [(fault.since, fault.seconds) for fault in faults]
    assert spans == [pytest.approx(fault) for fault in expected]


def test_a_driver_is_judged_by_the_claims_with_its_devices() -> None:
    claim = has_device(1).object()
    claim["status"]["allocation"]["devices"]["results"] = [{"driver": "gpu", "device": "dev-0"}]
    history = [replace(has_device(1), data=encode(claim)), *versions(pod(3, running(3)))]
    assert {fault.rule for fault in judge([], history, driver="gpu")} == {"RanUnprepared"}
    assert judge([], history, driver="nic") == []


def test_the_containers_of_a_node_end_when_it_dies() -> None:
    calls, pods, _ = RAN_BADLY["it starts beside an unprepare"]
    history = [has_device(1), *versions(*pods)]
    assert judge(calls, history, {"node-0": [19.5]}) == []
    assert judge(calls, history, {"node-1": [19.5], "node-0": [3.0]}) != []


def test_a_use_ends_with_its_node_until_it_is_prepared_again() -> None:
    calls = [prepare(ONE, 2), prepare(ONE, 3, node="node-1"), prepare(ONE, 7), unprepare(ONE, 9)]
    uses = uses_of(calls, {"node-0": [1.0, 5.0]})
    spans = [(use.node, use.since, use.until) for use in uses]
    assert spans == [
        ("node-0", 2, 5.0),
        ("node-0", 7, pytest.approx(9.1)),
        ("node-1", 3, FOREVER),
    ]
    (late,) = uses_of([prepare(ONE, 2)], {"node-0": [5.0]})
    assert late.until == 5.0


def test_a_claim_without_devices_is_not_prepared() -> None:
    pods = versions(pod(3, running(3)))
    assert judge([], [given(ONE, 1), *pods]) == []


def test_a_fault_names_the_claim_and_the_pod() -> None:
    calls, pods, _ = RAN_BADLY["the device is unprepared while it runs"]
    (fault,) = judge(calls, [has_device(1), *versions(*pods)])
    assert str(fault) == "RanUnprepared: node-0/dev-0 of team/uid-1 in team/p1, for 9.9 s"


def test_other_objects_are_no_claims() -> None:
    calls = [prepare(ONE, 2)]
    other = Revision(1, "MODIFIED", "", "nodes", "", ONE, b"{}", None, "", "", 1.0)
    assert [fault.rule for fault in judge(calls, [other])] == ["PreparedUnallocated"]


def test_a_use_lasts_from_the_begin_of_a_call_to_the_end_of_another() -> None:
    (use,) = uses_of([prepare(ONE, 2), unprepare(ONE, 4)])
    assert [use.since, use.until] == pytest.approx([2, 4.1])
    assert use.devices == ("node-0/dev-0",)


def test_a_claim_is_used_on_each_node_on_its_own() -> None:
    uses = uses_of([prepare(ONE, 2), prepare(ONE, 3, node="node-1"), unprepare(ONE, 4)])
    assert [use.node for use in uses] == ["node-0", "node-1"]
    assert [use.until for use in uses] == pytest.approx([4.1, FOREVER])


def test_a_fault_says_what_happened_for_how_long() -> None:
    calls, history, _ = FAULTY["deallocated while prepared"]
    (fault,) = judge(calls, history)
    assert str(fault) == "DeallocatedInUse: node-0/dev-0 of team/uid-1, for 4.1 s"
    calls, history, _ = FAULTY["never unprepared"]
    (fault,) = judge(calls, history)
    assert str(fault) == "DeallocatedInUse: node-0/dev-0 of team/uid-1, to the end"
