"""Late holds: which list a claim has whose driver wants it for the pods alone."""

from __future__ import annotations

from dataclasses import replace as with_fields
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claimctl.controller.caches.slim import slim_slice
from claimctl.reservation.facts.decision import WriteList
from claimctl.reservation.facts.pods import DISRUPTED
from claimctl.reservation.facts.snapshot import Rules
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.base import Present
from claimctl.wire.claims import Device, Reference, ResourcePool, ResourceSlice, ResourceSliceSpec
from claimctl.wire.meta import Condition
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ForceDeletedPod
from tests.support.builders import (
    NOW,
    claim,
    deployment_ref,
    finished,
    gated,
    node,
    pending,
    pod_ref,
    reservation,
    running,
    tomb,
    written_by_claimctl,
)
from tests.support.claim_cases import condition, held_status
from tests.support.stage import DecisionStage

HOLD = deployment_ref()
OTHER = Reference(api_group="example.com", resource="things", name="t", uid="uid-t")
LATE = Rules("hold", one_pod_drivers=frozenset({"gpu.example.com"}))
ACTIVE = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1)
IDLE = WorkloadState(WorkloadPhase.IDLE, "uid-train")


def stage(
    *listed: Reference, rules: Rules = LATE, workload: WorkloadState = ACTIVE
) -> DecisionStage:
    own = {entry.uid for entry in listed if entry.resource in ("deployments", "finishedpods")}
    made = reservation(status=held_status())
    on = DecisionStage(
        written_by_claimctl(claim(*listed), own),
        {made.metadata.name: (made, workload)},
        rules=rules,
    )
    on.written = set(own)
    return on


def lists(on: DecisionStage, seconds: float = 1.0) -> list[tuple[str, ...]]:
    """The names in the lists that follow, one tuple a write."""
    return [
        tuple(entry.name for entry in write.reserved_for)
        for write in on.settle(seconds=seconds)
        if isinstance(write, WriteList)
    ]


def preempted(pod: Pod) -> Pod:
    why = Condition(type=DISRUPTED, status="True", reason="PreemptionByScheduler")
    return replace(pod, status=replace(pod.status, conditions=(why,)))


LEAVING = running("a", deleting=True)
ENDED = finished("a", deleting=True)
CASES = [
    pytest.param((), [], [], id="at rest: nobody writes"),
    pytest.param((), [pending("a")], [], id="a pod comes: the scheduler lists it"),
    pytest.param(("a",), [pending("a")], [], id="a pod is listed"),
    pytest.param(("a",), [running("a")], [], id="a pod runs"),
    pytest.param(("a", HOLD), [running("a")], [("a",)], id="a hold from before goes"),
    pytest.param((HOLD, "a"), [pending("a")], [("a",)], id="a pod was listed beside the hold"),
    pytest.param((HOLD,), [pending("a")], [()], id="the hold goes before the pod is listed"),
    pytest.param((HOLD,), [gated(pending("a"))], [()], id="also for a pod with a gate"),
    pytest.param((HOLD,), [], [()], id="a hold alone goes"),
    pytest.param(("a",), [LEAVING], [("a", "train")], id="the last pod leaves: the hold joins it"),
    pytest.param(("a", "b"), [LEAVING, running("b")], [], id="another pod runs"),
    pytest.param(("a", "b"), [LEAVING, pending("b")], [], id="another pod is about to be bound"),
    pytest.param(("a",), [LEAVING, pending("b")], [("a", "train")], id="the next pod may wait"),
    pytest.param(("a", "b"), [LEAVING], [], id="the next one is listed, and the cache lacks it"),
    pytest.param(("a", HOLD, "b"), [LEAVING, running("b")], [("a", "b")], id="the next is there"),
    pytest.param(("a", HOLD), [LEAVING], [], id="the hold waits for the last pod's end"),
    pytest.param(("a", HOLD), [ENDED], [()], id="the last pod has ended: both leave"),
    pytest.param((HOLD,), [ENDED], [()], id="the same after KCM has removed the pod"),
    pytest.param(("a", HOLD, "b"), [ENDED, running("b")], [("b",)], id="the next one came first"),
    pytest.param(("a",), [ENDED], [], id="too late: KCM deallocates"),
    pytest.param(("a",), [preempted(LEAVING)], [], id="a preempted pod takes the device along"),
    pytest.param((), [finished("a")], [], id="a pod that ended by itself"),
    pytest.param((HOLD,), [finished("a")], [("train", "a")], id="KCM would list it again"),
    pytest.param(
        (HOLD, tomb("a")), [finished("a"), pending("b")], [()], id="no tombstone beside a start"
    ),
    pytest.param((HOLD, OTHER), [running("a")], [("t",)], id="another client's entry stays"),
]


@pytest.mark.parametrize(("listed", "pods", "expected"), CASES)
def test_the_list_belongs_to_the_pods(
    listed: tuple[str | Reference, ...], pods: list[Pod], expected: list[tuple[str, ...]]
) -> None:
    entries = [pod_ref(entry) if isinstance(entry, str) else entry for entry in listed]
    on = stage(*entries)
    on.put(*pods)
    assert lists(on) == expected
    assert on.claim is not None
    assert on.claim.status.allocation is not None


def test_any_other_driver_gets_the_hold_beside_its_pods() -> None:
    on = stage(pod_ref("a"), rules=Rules("hold"))
    on.put(running("a"))
    assert lists(on) == [("a", "train")]


def test_a_driver_that_was_seen_to_refuse_gets_the_list_too() -> None:
    on = stage(
        pod_ref("a"), HOLD, rules=Rules("hold", refusing_drivers=frozenset({"gpu.example.com"}))
    )
    on.put(running("a"))
    assert lists(on) == [("a",)]
    on.settle(seconds=30)
    assert condition(on, "Reserved") == ("True", "DriverRefusesHold")


def test_two_drivers_of_which_one_wants_one_pod() -> None:
    on = stage(pod_ref("a"), HOLD)
    assert on.claim is not None
    allocation = on.claim.status.allocation
    assert allocation is not None
    results = allocation.devices.results or ()
    both = (replace(results[0], driver="nic.example.com"), *results)
    devices = replace(allocation.devices, results=both)
    status = replace(on.claim.status, allocation=replace(allocation, devices=devices))
    on.claim = replace(on.claim, status=status)
    on.put(running("a"))
    assert lists(on) == [("a",)]


@pytest.mark.parametrize("mapped", [{"node_allocatable_resource_mappings": {"cpu": Present()}}, {}])
def test_a_device_for_one_pod_gets_the_list_too(mapped: dict[str, Any]) -> None:
    """From Kubernetes 1.37 on, the scheduler lets no pod beside a hold use it (KEP-5517)."""
    on = stage(pod_ref("a"), HOLD, rules=Rules("hold"))
    spec = ResourceSliceSpec(
        driver="gpu.example.com",
        pool=ResourcePool(name="node-0", generation=1, resource_slice_count=1),
        devices=(Device(name="gpu-0", **mapped),),
    )
    on.slices = (slim_slice(ResourceSlice(spec=spec)),)
    on.put(running("a"))
    assert lists(on) == ([("a",)] if mapped else [])


def test_a_life_has_two_writes_of_the_list_and_one_status_that_says_why() -> None:
    on = stage()
    assert lists(on, 30) == []
    assert condition(on, "Reserved") == ("True", "HeldBetweenPods")
    on.put(pending("a"))
    on.gain_entries("a")
    on.put(running("a"))
    assert lists(on, 30) == []
    on.put(LEAVING)
    assert lists(on) == [("a", "train")]
    on.put(ENDED)
    assert lists(on) == [()]
    on.remove("a")
    assert lists(on, 30) == []
    assert condition(on, "Reserved") == ("True", "HeldBetweenPods")


def test_while_a_vanished_pod_may_run_the_hold_stays_until_a_pod_comes() -> None:
    on = stage(pod_ref("a"), HOLD)
    ghost = ForceDeletedPod(uid="uid-a", name="a", node_name="node-0", since=NOW)
    on.ghosts["uid-a"] = (ghost, 0.0)
    assert lists(on, 30) == [("train",)]
    on.put(pending("b"))
    assert lists(on) == [()]


def test_while_a_vanished_pod_may_run_the_hold_leaves_no_release_to_others() -> None:
    """Without the hold, kube-controller-manager would deallocate with the dead pod's entry."""
    on = stage(pod_ref("a"), HOLD)
    ghost = ForceDeletedPod(uid="uid-a", name="a", node_name="node-0", since=NOW)
    on.ghosts["uid-a"] = (ghost, 0.0)
    on.nodes = {"node-0": node(cordoned=True), "node-1": node("node-1")}
    on.put(stuck("b"))
    assert lists(on, 1) == []
    on.put(pending("b"))
    assert lists(on) == [()]


def test_a_plan_of_a_downgrade_adds_no_hold() -> None:
    on = stage(pod_ref("a"))
    on.frozen = True
    on.put(LEAVING)
    assert lists(on) == []


def test_a_hold_leaves_the_pod_that_starts_also_in_a_claim_that_is_being_deleted() -> None:
    on = stage(HOLD, pod_ref("a"))
    assert on.claim is not None
    deleting = replace(on.claim.metadata, deletion_timestamp=NOW)
    on.claim = replace(on.claim, metadata=deleting)
    on.put(running("a"))
    assert lists(on, 30) == [("a",)]


def stuck(name: str) -> Pod:
    return pending(name, unschedulable_at=NOW - timedelta(days=1))


def test_pods_that_no_scheduler_binds_do_not_wait_for_each_other() -> None:
    on = stage(pod_ref("a"), pod_ref("b"))
    on.put(stuck("a"), stuck("b"))
    assert lists(on, 59) == []
    assert lists(on, 2) == [("a", "b", "train"), ("train",)]
    on.settle(seconds=61)
    assert on.claim is not None
    assert on.claim.status.allocation is None


def test_the_hold_stays_while_a_pod_whose_entry_was_taken_out_may_be_bound() -> None:
    on = stage(pod_ref("a"), pod_ref("b"))
    on.put(stuck("a"), stuck("b"))
    assert lists(on, 61)[-1] == ("train",)
    on.put(running("a"))
    on.gain_entries("a")
    assert lists(on, 30) == []
    assert lists(on, 30) == [("a",)]


def test_an_idle_claim_at_rest_is_released() -> None:
    on = stage(workload=IDLE)
    assert lists(on, 59) == []
    on.settle(seconds=10)
    assert on.claim is not None
    assert on.claim.status.allocation is None


def test_a_list_that_somebody_emptied_gets_its_hold_back_unless_it_is_late() -> None:
    assert lists(stage(rules=Rules("hold"))) == [("train",)]
    assert lists(stage()) == []


PODS = st.sampled_from(
    [
        pending,
        running,
        finished,
        lambda name: running(name, deleting=True),
        lambda name: finished(name, deleting=True),
    ]
)
NAMES = st.sampled_from("abc")


@given(st.dictionaries(NAMES, PODS, max_size=3), st.sets(NAMES))
def test_no_pod_starts_beside_an_entry_of_claimctl(
    makers: dict[str, Any], listed: set[str]
) -> None:
    """Whatever is there, the list settles without a hold or a tombstone beside a living pod that is
    not the last to leave, and stays so."""
    on = stage(*(pod_ref(name) for name in sorted(listed)), HOLD)
    on.put(*(make(name) for name, make in makers.items()))
    on.settle(seconds=30)
    assert on.claim is not None
    entries = on.claim.status.reserved_for
    alive = on.snapshot().consumers.alive
    starting = [e for e in entries if e.uid in alive and not alive[e.uid].metadata.deleting]
    assert not starting or all(entry.resource == "pods" for entry in entries)
    assert on.claim.status.allocation is not None
    assert lists(on, 60) == []


def test_the_rule_is_a_matter_of_the_claim_and_not_of_the_cluster() -> None:
    grouped = with_fields(LATE, dialect="podgroup")
    on = stage(pod_ref("a"), HOLD, rules=grouped)
    on.put(running("a"))
    assert lists(on) == [("a",)]
