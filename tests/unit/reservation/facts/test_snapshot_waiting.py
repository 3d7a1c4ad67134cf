"""Pods that wait in vain, and devices that evict pods."""

from __future__ import annotations

from dataclasses import replace as replace_state
from datetime import datetime

import pytest
from msgspec.structs import replace

from claimctl.reservation.facts.pods import evicts_a_pod
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import (
    Device,
    ResourceClaim,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from claimctl.wire.meta import Condition
from claimctl.wire.nodes import Taint
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservationStatus
from tests.support.builders import (
    NOW,
    after,
    claim,
    pending,
    pod_ref,
    reservation,
    running,
)
from tests.support.claim_cases import (
    ACTIVE,
    GONE,
    HOLD,
    IDLE,
    NATIVE,
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)


def seen(*pods: Pod, claimed: ResourceClaim | None = None, **facts: object) -> Snapshot:
    made = Snapshot(now=NOW, namespace="train", name="slice", claim=claimed or claim(), pods=pods)
    return replace_state(made, **facts)  # type: ignore[arg-type]  # a table of fields


def stuck(name: str, *, nominated: str = "") -> Pod:
    pod = pending(name, unschedulable_at=after(5))
    return replace(pod, status=replace(pod.status, nominated_node_name=nominated))


def test_pods_are_stuck_only_while_unschedulable_and_no_pod_uses_the_claim() -> None:
    def since(*pods: Pod) -> datetime | None:
        return seen(*pods).stuck_since

    assert since(stuck("a")) == after(5)
    assert since(stuck("a"), pending("b")) == after(5)
    assert since(stuck("a"), running("b")) is None
    assert since(pending("a")) is None
    assert since(stuck("a", nominated="node-0")) is None


def pool(*taints: Taint, device: str = "gpu-0", name: str = "node-0") -> ResourceSlice:
    return ResourceSlice(
        spec=ResourceSliceSpec(
            driver="gpu.example.com",
            pool=ResourcePool(name=name),
            devices=(Device(name=device, taints=taints),),
        )
    )


BROKEN = Taint(key="broken", effect="NoExecute")


def evicted(name: str, reason: str = "DeletionByDeviceTaintManager") -> Pod:
    pod = running(name)
    taken = Condition(type="DisruptionTarget", status="True", reason=reason)
    return replace(pod, status=replace(pod.status, conditions=(taken,)))


def test_an_evicted_pod_in_the_list_shows_that_a_device_evicts() -> None:
    """That is how the taint of a DeviceTaintRule shows."""
    for pod, listed, expected in (
        (evicted("a"), (pod_ref("a"),), True),
        (evicted("a", "PreemptionByScheduler"), (pod_ref("a"),), False),
        (evicted("a"), (), False),
    ):
        assert evicts_a_pod(claim(*listed), (pod,)) is expected


def test_no_hold_stays_beside_a_pod_that_its_device_evicts() -> None:
    on = stage(claim(pod_ref("a"), WORKLOAD), ACTIVE)
    on.put(evicted("a"), pending("b"))
    assert lists(on.settle(seconds=60)) == [((pod_ref("a"),), False)]
    assert condition(on, "Reserved") == ("False", "DeviceTainted")
    on.remove("a")
    on.claim = claim(pod_ref("b"), version="30")
    on.put(running("b"))
    assert lists(on.settle(seconds=60)) == []
    on.claim = claim(allocated=False, version="31")
    on.settle(seconds=1)
    on.claim = claim(pod_ref("b"), version="32")
    assert lists(on.settle(seconds=1)) == [((pod_ref("b"), WORKLOAD), False)]


@pytest.mark.parametrize("timeout", [60, None])
def test_an_unused_device_that_evicts_is_given_up_at_once_unless_it_is_never_to_be(
    timeout: int | None,
) -> None:
    reserved = reservation(status=held_status(), reallocate_timeout_seconds=timeout)
    on = stage(claim(WORKLOAD), ACTIVE, reserved=reserved)
    on.slices = (pool(BROKEN),)
    on.put(pending("a"))
    assert lists(on.settle(seconds=1)) == ([((), True)] if timeout else [])


@pytest.mark.parametrize(
    ("told", "unused_age", "expected"),
    [
        pytest.param(after(20), 10.0, after(-10), id="written by a clock that is ahead"),
        pytest.param(after(-86_400), 10.0, after(-10), id="written by a clock that is behind"),
        pytest.param(after(-20), None, after(-20), id="only the record knows"),
        pytest.param(None, None, after(-60), id="never used"),
    ],
)
def test_the_last_consumer_went_when_this_process_saw_it(
    told: datetime | None, unused_age: float | None, expected: datetime
) -> None:
    status = ClaimReservationStatus(last_consumer_time=told, allocation_time=after(-90))
    held = Held(
        reservation(status=status),
        WorkloadState(WorkloadPhase.ACTIVE, "uid"),
        unused_age=unused_age,
    )
    pods = (pending("a", unschedulable_at=after(-60)),)
    snapshot = replace_state(seen(*pods), reservations=(held,))
    assert snapshot.stuck_since == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [(after(30), after(30)), (after(86_400), after(-60)), (after(-90), after(-60))],
)
def test_a_time_that_a_clock_far_ahead_wrote_does_not_count(
    written: datetime, expected: datetime
) -> None:
    held = Held(
        reservation(status=ClaimReservationStatus(allocation_time=written)),
        WorkloadState(WorkloadPhase.ACTIVE, "uid"),
    )
    snapshot = replace_state(seen(pending("a", unschedulable_at=after(-60))), reservations=(held,))
    assert snapshot.stuck_since == expected


def test_devices_that_pods_cannot_use_are_given_up_after_the_timeout() -> None:
    """Whatever the cause is: the node is fine here."""
    for rules, shared in ((NATIVE, True), (HOLD, False)):
        created_for = WORKLOAD if shared else None
        on = stage(claim(WORKLOAD, shared=shared, created_for=created_for), ACTIVE, rules)
        on.put(pending("a", unschedulable_at=after(0)))
        assert on.settle(seconds=59) == []
        assert lists(on.settle(seconds=68))[-1] == ((), True)
        assert condition(on, "Released") == ("True", "Reallocated")


@pytest.mark.parametrize("what", ["a bound pod", "no timeout", "a pod that is being bound"])
def test_devices_are_not_given_up_while(what: str) -> None:
    timeout = None if what == "no timeout" else 60
    reserved = reservation(status=held_status(), reallocate_timeout_seconds=timeout)
    on = stage(claim(WORKLOAD), ACTIVE, reserved=reserved)
    on.put(stuck("a", nominated="node-0" if what == "a pod that is being bound" else ""))
    if what == "a bound pod":
        on.put(running("b"))
    assert on.settle(seconds=3600) == []


def test_an_idle_hold_does_not_stay_longer_because_of_a_pod_that_it_keeps_out() -> None:
    reserved = reservation(status=held_status(), reallocate_timeout_seconds=600)
    on = stage(claim(WORKLOAD), IDLE, reserved=reserved)
    on.put(stuck("a"))
    assert lists(on.settle(seconds=59)) == []
    assert lists(on.settle(seconds=3)) == [((), True)]


@pytest.mark.parametrize(
    ("workload", "annotations", "seconds"),
    [
        pytest.param(GONE, {}, 1, id="its workload has ended"),
        pytest.param(IDLE, {}, 61, id="its workload is idle for the timeout"),
        pytest.param(
            ACTIVE, {"claimctl.io/release": "uid-slice"}, 1, id="its release is asked for"
        ),
    ],
)
def test_a_hold_that_ends_is_not_kept_by_a_pod_that_it_keeps_out(
    workload: WorkloadState, annotations: dict[str, str], seconds: int
) -> None:
    """No timeout gives the devices up here: the hold and the pod would wait for each other."""
    reserved = reservation(
        status=held_status(), annotations=annotations, reallocate_timeout_seconds=None
    )
    on = stage(claim(WORKLOAD), workload, reserved=reserved)
    on.put(stuck("a"))
    assert lists(on.settle(seconds=seconds)) == [((), True)]
