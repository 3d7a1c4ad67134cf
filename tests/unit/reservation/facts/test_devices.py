"""What the slices say about an allocated device, and what becomes of a claim by it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.controller.caches.slim import slim_slice
from claimctl.reservation.facts.devices import judge
from claimctl.reservation.facts.memory import Memory
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.wire.base import decode
from claimctl.wire.claims import (
    BasicDevice,
    Device,
    DeviceRequestAllocationResult,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from claimctl.wire.nodes import Taint, Toleration
from claimctl.wire.reservations import (
    ClaimReservation,
    ForceDeletedPod,
    ReleaseProgress,
    WorkloadRef,
)
from tests.support.builders import NOW, claim, pending, pod_ref, reservation, running
from tests.support.claim_cases import (
    ACTIVE,
    IDLE,
    NATIVE,
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)
from tests.support.stage import DecisionStage

RESULT = DeviceRequestAllocationResult(driver="gpu.example.com", pool="node-0", device="gpu-0")
CLOSED, EVICTS = Taint(key="xid", value="79", effect="NoSchedule"), Taint(effect="NoExecute")
NOTED = Taint(key="xid", value="43", effect="None")
PUBLISHED, TAINTED, GONE, UNKNOWN = "published", "tainted", "gone", "unknown"


def piece(
    *names: str,
    generation: int = 1,
    count: int = 1,
    taints: tuple[Taint, ...] = (),
    driver: str = "gpu.example.com",
    pool: str = "node-0",
    node: str = "",
) -> ResourceSlice:
    """A slice with these devices, as it is kept."""
    devices = tuple(Device(name=name, taints=taints or None) for name in names)
    at = ResourcePool(name=pool, generation=generation, resource_slice_count=count)
    return slim_slice(
        ResourceSlice(
            spec=ResourceSliceSpec(driver=driver, pool=at, node_name=node, devices=devices)
        )
    )


def basic(*taints: Taint) -> ResourceSlice:
    """As v1beta1 has it."""
    device = Device(name="gpu-0", basic=BasicDevice(taints=taints or None))
    made = piece()
    return slim_slice(replace(made, spec=replace(made.spec, devices=(device,))))


CASES = {
    "published": (PUBLISHED, piece("gpu-1", "gpu-0")),
    "published in v1beta1": (PUBLISHED, basic()),
    "published in the second slice": (
        PUBLISHED,
        piece("gpu-1", count=2),
        piece("gpu-0", count=2),
    ),
    "published in a pool that is not complete": (PUBLISHED, piece("gpu-0", count=2)),
    "a taint that says nothing": (PUBLISHED, piece("gpu-0", taints=(NOTED,))),
    "no new pods": (TAINTED, piece("gpu-0", taints=(NOTED, CLOSED))),
    "no pods": (TAINTED, piece("gpu-0", taints=(EVICTS,))),
    "no new pods, in v1beta1": (TAINTED, basic(CLOSED)),
    "tainted in a pool that is not complete": (
        TAINTED,
        piece("gpu-0", count=2, taints=(CLOSED,)),
    ),
    "not in its pool": (GONE, piece("gpu-1")),
    "an empty pool": (GONE, piece()),
    "in neither of two slices": (GONE, piece("gpu-1", count=2), piece("gpu-2", count=2)),
    "in an older generation alone": (GONE, piece("gpu-0"), piece("gpu-1", generation=2)),
    "its taint is of an older generation": (
        PUBLISHED,
        piece("gpu-0", taints=(EVICTS,)),
        piece("gpu-0", generation=2),
    ),
    "no slices": (UNKNOWN,),
    "slices of another pool": (UNKNOWN, piece("gpu-1", pool="node-1")),
    "slices of another driver": (UNKNOWN, piece("gpu-1", driver="cpu.example.com")),
    "a slice is missing": (UNKNOWN, piece("gpu-1", count=2)),
    "a slice too many": (UNKNOWN, piece("gpu-1"), piece("gpu-2")),
    "a newer generation is not complete": (
        UNKNOWN,
        piece("gpu-1"),
        piece("gpu-1", generation=2, count=2),
    ),
    "slices that do not agree": (UNKNOWN, piece("gpu-1", count=2), piece("gpu-2", count=3)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_device_is_judged_by_the_newest_generation_of_its_pool(
    case: tuple[str | ResourceSlice, ...],
) -> None:
    expected, *slices = case
    for order in (slices, slices[::-1]):
        assert state(RESULT, *order) == expected  # type: ignore[arg-type]  # the rest of the case


def state(result: DeviceRequestAllocationResult, *slices: ResourceSlice) -> str:
    (judged,) = judge((result,), slices)
    if judged.device is None:
        assert judged.taint is None
        return GONE if judged.gone else UNKNOWN
    assert not judged.gone
    return PUBLISHED if judged.taint is None else TAINTED


@pytest.mark.parametrize(
    ("taints", "toleration", "expected"),
    [
        ((CLOSED,), Toleration(operator="Exists"), PUBLISHED),
        ((CLOSED,), Toleration(key="xid", operator="Exists"), PUBLISHED),
        ((CLOSED,), Toleration(key="xid", value="48"), TAINTED),
        ((CLOSED,), Toleration(operator="Exists", effect="NoExecute"), TAINTED),
        ((CLOSED, EVICTS), Toleration(operator="Exists", effect="NoExecute"), TAINTED),
    ],
)
def test_a_taint_that_the_claim_tolerates_does_not_count(
    taints: tuple[Taint, ...], toleration: Toleration, expected: str
) -> None:
    result = replace(RESULT, tolerations=(toleration,))
    assert state(result, piece("gpu-0", taints=taints)) == expected


def test_a_device_that_its_driver_hides_while_a_pod_uses_it_is_never_gone() -> None:
    hidden = replace(RESULT, driver="dra.net")
    assert state(hidden, piece("gpu-1", driver="dra.net")) == UNKNOWN


def test_the_taint_that_evicts_is_the_one_that_is_told() -> None:
    evicts = replace(EVICTS, key="lost")
    (judged,) = judge((RESULT,), (piece("gpu-0", taints=(CLOSED, evicts)),))
    assert judged.problem == (
        "device gpu-0 of pool node-0 (driver gpu.example.com) has the taint lost:NoExecute"
    )


@pytest.mark.parametrize(
    ("piece", "age", "bound", "timeout", "expected"),
    [
        (piece("gpu-0"), 0, False, 60, "nothing"),
        (piece(count=2), 99, False, 60, "nothing"),
        (piece(), 0, False, 60, 5),
        (piece(), 4, False, 60, 1),
        (piece(), 5, False, 60, 0),
        (piece(), 5, True, 60, 25),
        (piece(), 99, True, 60, 0),
        (piece(), 99, False, None, None),
        (piece("gpu-0", taints=(CLOSED,)), 0, True, 60, 0),
        (piece("gpu-0", taints=(CLOSED,)), 0, True, None, None),
        (piece("gpu-0", taints=(EVICTS,)), 0, True, None, 0),
    ],
)
def test_a_device_counts_as_lost_after_a_while(
    piece: ResourceSlice, age: float, bound: bool, timeout: int | None, expected: object
) -> None:
    seen = Snapshot(
        now=NOW,
        namespace="train",
        name="slice",
        claim=claim(),
        reservations=(Held(reservation(reallocate_timeout_seconds=timeout), ACTIVE),),
        pods=(running("a"),) if bound else (),
        slices=(piece,),
        memory=Memory(gone_age={("gpu.example.com", "node-0", "gpu-0"): age}),
    )
    assert (seen.loss.after if seen.loss is not None else "nothing") == expected


STATEFUL = WorkloadRef(api_group="apps", kind="StatefulSet", name="train")
MOVES, STORM = "the next pod may get another device", "are evicted in turn, without end"


@pytest.mark.parametrize(
    ("others", "word"),
    [((), STORM), ((STATEFUL,), STORM), (None, MOVES)],
    ids=["Deployment", "both", "StatefulSet"],
)
@pytest.mark.parametrize(
    ("slices", "evicting"),
    [((piece("gpu-0", taints=(EVICTS,)),), False), ((), True)],
    ids=["slice", "rule"],
)
def test_what_becomes_of_evicted_pods_depends_on_when_the_next_pod_is_made(
    others: tuple[WorkloadRef, ...] | None,
    word: str,
    slices: tuple[ResourceSlice, ...],
    evicting: bool,
) -> None:
    refs = (STATEFUL,) if others is None else (reservation().spec.workload_ref, *others)
    held = tuple(
        Held(replace(made, spec=replace(made.spec, workload_ref=ref)), ACTIVE)
        for made, ref in ((reservation(f"r{number}"), ref) for number, ref in enumerate(refs))
    )
    seen = Snapshot(
        now=NOW,
        namespace="train",
        name="slice",
        claim=claim(),
        reservations=held,
        slices=slices,
        memory=Memory(evicting=evicting),
    )
    assert seen.loss is not None
    assert word in seen.loss.message
    assert ("the Deployment" in seen.loss.message) is (word == STORM)


def test_a_kept_slice_has_the_names_of_its_devices_once() -> None:
    body = b"""{"metadata": {"name": "s-%d", "uid": "u", "resourceVersion": "7",
      "labels": {"a": "b"}},
      "spec": {"driver": "d", "nodeName": "n", "pool": {"name": "n", "resourceSliceCount": 1},
      "devices": [{"name": "gpu-0", "attributes": {"x": {"string": "y"}}},
                  {"name": "gpu-1", "taints": [{"key": "k", "effect": "NoSchedule"}]}]}}"""
    one, two = (slim_slice(decode(body % number, ResourceSlice)) for number in range(2))
    first, second = one.spec.devices or ()
    assert (first, second.taints) == (
        Device(name="gpu-0"),
        (Taint(key="k", effect="NoSchedule"),),
    )
    assert first is (two.spec.devices or ())[0]
    assert (one.metadata.uid, one.metadata.resource_version) == ("u", "7")
    assert one.metadata.labels is None


def beside_a_pod(*slices: ResourceSlice, timeout: int | None = 60) -> DecisionStage:
    reserved = reservation(status=held_status(), reallocate_timeout_seconds=timeout)
    on = stage(claim(pod_ref("a"), WORKLOAD), ACTIVE, reserved=reserved)
    on.put(running("a"))
    on.slices = slices
    return on


def alone(*slices: ResourceSlice, timeout: int | None = 60) -> DecisionStage:
    reserved = reservation(
        status=held_status(), reallocate_timeout_seconds=timeout, idle_timeout_seconds=3600
    )
    on = stage(claim(WORKLOAD), IDLE, reserved=reserved)
    on.slices = slices
    return on


SOUND, WITHOUT = piece("gpu-0"), piece("gpu-1")
ONLY_PODS, BOTH = ((pod_ref("a"),), False), ((pod_ref("a"), WORKLOAD), False)


def test_a_hold_leaves_a_device_that_is_gone_for_30_s_and_returns_with_it() -> None:
    on = beside_a_pod(WITHOUT)
    assert lists(on.settle(seconds=29)) == []
    assert lists(on.settle(seconds=2)) == [ONLY_PODS]
    assert condition(on, "Reserved") == ("False", "DeviceGone")
    assert message(on, "Reserved") == (
        "the claim is not held beside its pods: device gpu-0 of pool node-0 (driver "
        "gpu.example.com) is not published any more"
    )
    on.come(pending("b"))
    assert lists(on.settle(seconds=60)) == []
    on.remove("b")
    on.slices = (SOUND,)
    assert lists(on.settle(seconds=2)) == [BOTH]


def message(on: DecisionStage, type_: str) -> str:
    conditions = on.reservations["train-slice"][0].status.conditions
    return next(each.message for each in conditions if each.type == type_)


def test_a_hold_leaves_a_device_at_once_that_takes_no_new_pods_and_returns_without_the_taint() -> (
    None
):
    on = beside_a_pod(piece("gpu-0", taints=(CLOSED,)))
    assert lists(on.settle(seconds=1)) == [ONLY_PODS]
    assert condition(on, "Reserved") == ("False", "DeviceTainted")
    assert "has the taint xid=79:NoSchedule" in message(on, "Reserved")
    assert "has the taint xid=79:NoSchedule" in message(on, "Released")
    on.slices = (SOUND,)
    assert lists(on.settle(seconds=1)) == [BOTH]


def test_an_unused_claim_is_given_up_after_5_s_without_its_device() -> None:
    on = alone(WITHOUT)
    assert lists(on.settle(seconds=4)) == []
    assert lists(on.settle(seconds=2)) == [((), True)]
    assert condition(on, "Released") == ("True", "Reallocated")


def test_an_unused_claim_is_given_up_at_once_when_its_device_takes_no_new_pods() -> None:
    on = alone(piece("gpu-0", taints=(CLOSED,)))
    assert lists(on.settle(seconds=0)) == [((), True)]


@pytest.mark.parametrize("back", [(SOUND,), (), (piece("gpu-1", count=2),)])
def test_the_time_begins_anew_when_the_device_is_seen_or_its_pool_is_not_complete(
    back: tuple[ResourceSlice, ...],
) -> None:
    for on, patience in ((alone(WITHOUT), 5), (beside_a_pod(WITHOUT), 30)):
        on.settle(seconds=patience - 1)
        on.slices = back
        assert lists(on.settle(seconds=100)) == []
        on.slices = (WITHOUT,)
        assert lists(on.settle(seconds=patience - 1)) == []
        assert len(lists(on.settle(seconds=2))) == 1


def test_a_hold_does_not_come_back_to_a_lost_device_while_its_slices_are_away() -> None:
    """As while a kubelet is restarted: its driver then publishes what it has, without the
    device."""
    on = beside_a_pod(WITHOUT)
    assert lists(on.settle(seconds=31)) == [ONLY_PODS]
    on.slices = ()
    assert lists(on.settle(seconds=13)) == []
    assert condition(on, "Reserved") == ("False", "DeviceGone")
    assert "is not published any more" in message(on, "Reserved")
    on.slices = (WITHOUT,)
    assert lists(on.settle(seconds=60)) == []
    on.slices = (SOUND,)
    assert lists(on.settle(seconds=2)) == [BOTH]


def test_a_claim_that_a_vanished_pod_may_use_waits_for_it() -> None:
    on = alone(WITHOUT)
    on.ghosts = {
        "uid-a": (ForceDeletedPod(name="a", uid="uid-a", node_name="node-0", since=NOW), 0.0)
    }
    assert lists(on.settle(seconds=100)) == []
    on.ghosts.clear()
    assert lists(on.settle(seconds=1)) == [((), True)]


@pytest.mark.parametrize("slices", [(WITHOUT,), (piece("gpu-0", taints=(CLOSED,)),)])
def test_a_device_is_kept_that_is_never_to_be_given_up(slices: tuple[ResourceSlice, ...]) -> None:
    for on in (alone(*slices, timeout=None), beside_a_pod(*slices, timeout=None)):
        assert lists(on.settle(seconds=600)) == []
        assert condition(on, "Reserved") == ("True", "Reserved")
        assert "device gpu-0 of pool node-0" in message(on, "Reserved")


def test_a_claim_stays_while_one_of_its_reservations_never_gives_it_up() -> None:
    on = alone(WITHOUT)
    other: ClaimReservation = reservation(
        name="other", status=held_status(), reallocate_timeout_seconds=None
    )
    on.reservations["other"] = (other, IDLE)
    assert lists(on.settle(seconds=100)) == []


def test_a_release_that_another_controller_has_begun_goes_on() -> None:
    """That controller saw the device go earlier."""
    record = ReleaseProgress(step="Intent", reason="Reallocated", claim_uid="uid-slice", since=NOW)
    on = alone(WITHOUT)
    made, workload = on.reservations["train-slice"]
    begun = replace(made, status=replace(made.status, release=record))
    on.reservations["train-slice"] = (begun, workload)
    assert lists(on.settle(seconds=0)) == [((), True)]


def test_in_native_an_unused_claim_is_given_up_too() -> None:
    reserved = reservation(status=held_status(), idle_timeout_seconds=3600)
    made = claim(WORKLOAD, shared=True, created_for=WORKLOAD)
    on = stage(made, IDLE, NATIVE, reserved=reserved)
    on.slices = (WITHOUT,)
    assert lists(on.settle(seconds=4)) == []
    assert lists(on.settle(seconds=60))[-1] == ((), True)
