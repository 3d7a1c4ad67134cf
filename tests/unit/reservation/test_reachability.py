"""Which allocations pods can still reach."""

from __future__ import annotations

from dataclasses import replace as replace_state
from datetime import datetime

import pytest
from msgspec.structs import replace

from claimctl.reservation.reachability import admits, reachable, stuck_since
from claimctl.reservation.snapshot import Held, Snapshot
from claimctl.reservation.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import (
    Device,
    DeviceTaint,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.nodes import Node, NodeSpec, Taint, Toleration
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservationStatus
from tests.support.builders import (
    NOW,
    after,
    allocation,
    claim,
    node,
    pending,
    pod_ref,
    reservation,
    running,
)
from tests.support.claim_cases import (
    ACTIVE,
    HOLD,
    NATIVE,
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)

NODE = node()
LABELLED = Node(metadata=ObjectMeta(name="x", labels={"zone": "a", "gen": "3"}))


def seen(
    *nodes: Node, slices: tuple[ResourceSlice, ...] = (), pods: tuple[object, ...] = ()
) -> Snapshot:
    return Snapshot(
        now=NOW,
        namespace="train",
        name="slice",
        claim=claim(),
        nodes={n.metadata.name: n for n in nodes},
        slices=slices,
        pods=pods,  # type: ignore[arg-type]  # builders give pods; object keeps the table short
    )


def pool(*devices: Device, generation: int = 1, count: int = 1) -> ResourceSlice:
    return ResourceSlice(
        spec=ResourceSliceSpec(
            driver="gpu.example.com",
            pool=ResourcePool(name="node-0", generation=generation, resource_slice_count=count),
            devices=devices,
        )
    )


def waiting(name: str, *tolerations: Toleration) -> Pod:
    pod = pending(name, unschedulable_at=after(5))
    return replace(pod, spec=replace(pod.spec, tolerations=tolerations))


TOLERANT = waiting("a", Toleration(key="example.com/team", effect="NoSchedule", operator="Exists"))
GOOD = Device(name="gpu-0")
TAINTED = Device(name="gpu-0", taints=(DeviceTaint(key="broken", effect="NoSchedule"),))


def tainted(key: str, effect: str = "NoSchedule") -> Node:
    return replace(NODE, spec=NodeSpec(taints=(Taint(key=key, effect=effect),)))


@pytest.mark.parametrize(
    ("snapshot", "expected"),
    [
        (seen(NODE), True),
        (seen(), False),
        (seen(node("node-1")), False),
        (seen(node(cordoned=True)), False),
        (seen(tainted("node.kubernetes.io/unreachable")), False),
        (seen(tainted("example.com/maintenance")), False),
        (seen(tainted("example.com/team")), True),
        (seen(tainted("example.com/team", "NoExecute")), False),
        (seen(tainted("example.com/maintenance"), node("node-1")), False),
        (seen(tainted("node.kubernetes.io/unreachable", "PreferNoSchedule")), True),
        (seen(NODE, slices=(pool(GOOD),)), True),
        (seen(NODE, slices=(pool(TAINTED),)), False),
        (seen(NODE, slices=(pool(Device(name="gpu-1")),)), False),
        (seen(NODE, slices=(pool(GOOD), pool(Device(name="gpu-1"), generation=2))), False),
        (seen(NODE, slices=(pool(Device(name="gpu-1"), count=2),)), True),
        (seen(NODE, slices=(replace(pool(GOOD), spec=ResourceSliceSpec(driver="d")),)), True),
    ],
)
def test_an_allocation_is_reachable(snapshot: Snapshot, expected: bool) -> None:
    assert reachable(allocation(), snapshot, [TOLERANT.spec.tolerations, ()]) is expected


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="team", operator="Exists"), True),
        (Toleration(key="team", value="a"), True),
        (Toleration(key="team", operator="Equal", value="b"), False),
        (Toleration(key="team", value="a", effect="NoSchedule"), True),
        (Toleration(key="team", value="a", effect="NoExecute"), False),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(value="a"), False),
        (Toleration(key="team", operator="Unheard", value="b"), True),
    ],
)
def test_a_taint_is_tolerated(toleration: Toleration, expected: bool) -> None:
    taint = Taint(key="team", value="a", effect="NoSchedule")
    assert admits((taint,), (toleration,)) is expected


def test_a_device_with_a_taint_that_its_claim_tolerates_is_reachable() -> None:
    tolerated = Toleration(key="broken", operator="Exists")
    result = replace(allocation().devices.results[0], tolerations=(tolerated,))  # type: ignore[index]  # one device
    chosen = replace(allocation(), devices=replace(allocation().devices, results=(result,)))
    snapshot = seen(NODE, slices=(pool(TAINTED),))
    assert reachable(chosen, snapshot, [()])


@pytest.mark.parametrize(
    ("key", "operator", "values", "expected"),
    [
        ("zone", "In", ("a", "b"), True),
        ("zone", "NotIn", ("a",), False),
        ("rack", "NotIn", ("a",), True),
        ("zone", "Exists", (), True),
        ("rack", "Exists", (), False),
        ("rack", "DoesNotExist", (), True),
        ("gen", "Gt", ("2",), True),
        ("gen", "Lt", ("2",), False),
        ("zone", "Gt", ("2",), False),
        ("zone", "Unheard", (), True),
    ],
)
def test_a_node_selector_matches(
    key: str, operator: str, values: tuple[str, ...], expected: bool
) -> None:
    rule = NodeSelectorRequirement(key=key, operator=operator, values=values)
    selector = NodeSelector(node_selector_terms=(NodeSelectorTerm(match_expressions=(rule,)),))
    chosen = replace(allocation(), node_selector=selector)
    assert reachable(chosen, seen(LABELLED), [()]) is expected


def test_pods_are_stuck_only_while_unschedulable_and_nobody_uses_the_claim() -> None:
    stuck = pending("a", unschedulable_at=after(5))

    def since(*pods: object) -> object:
        snapshot = seen(node(cordoned=True), pods=pods)
        return stuck_since(snapshot, snapshot.consumers())

    assert since(stuck) == after(5)
    assert since(stuck, running("b")) is None
    assert since(pending("a")) is None


@pytest.mark.parametrize(
    ("workload", "stuck"),
    [
        (WorkloadState(WorkloadPhase.IDLE, "uid", tolerations=TOLERANT.spec.tolerations), False),
        (WorkloadState(WorkloadPhase.IDLE, "uid"), True),
        (WorkloadState(WorkloadPhase.ENDED, "uid", tolerations=TOLERANT.spec.tolerations), True),
    ],
    ids=["its own pods could run there", "its own pods could not either", "it makes no more pods"],
)
def test_a_hold_is_not_given_up_for_a_strangers_pod_that_lacks_a_toleration(
    workload: WorkloadState, stuck: bool
) -> None:
    stranger = pending("stranger", unschedulable_at=after(5))
    held = Held(reservation(), workload)
    snapshot = replace_state(
        seen(tainted("example.com/team"), pods=(stranger,)), reservations=(held,)
    )
    assert (stuck_since(snapshot, snapshot.consumers()) is not None) is stuck


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
    status = ClaimReservationStatus(last_consumer_time=told)
    held = Held(
        reservation(status=status),
        WorkloadState(WorkloadPhase.ACTIVE, "uid"),
        unused_age=unused_age,
    )
    pods = (pending("a", unschedulable_at=after(-60)),)
    snapshot = replace_state(seen(node(cordoned=True), pods=pods), reservations=(held,))
    assert stuck_since(snapshot, snapshot.consumers()) == expected


def test_devices_that_pods_cannot_reach_are_given_up_after_the_timeout() -> None:
    for rules, shared in ((NATIVE, True), (HOLD, False)):
        created_for = WORKLOAD if shared else None
        on = stage(claim(WORKLOAD, shared=shared, created_for=created_for), ACTIVE, rules)
        on.nodes = {"node-0": node(cordoned=True), "node-1": node("node-1")}
        on.put(pending("a", unschedulable_at=after(0)))
        assert on.settle(seconds=59) == []
        assert lists(on.settle(seconds=68))[-1] == ((), True)
        assert condition(on, "Released") == ("True", "Reallocated")


@pytest.mark.parametrize(
    "what", ["a bound pod", "a usable node", "no timeout", "a listed pending pod"]
)
def test_devices_are_not_given_up_while(what: str) -> None:
    timeout = None if what == "no timeout" else 60
    reserved = reservation(status=held_status(), reallocate_timeout_seconds=timeout)
    refs = (pod_ref("b"), WORKLOAD) if what == "a listed pending pod" else (WORKLOAD,)
    on = stage(claim(*refs), ACTIVE, reserved=reserved)
    on.nodes = {"node-0": node(cordoned=what != "a usable node")}
    on.put(pending("a", unschedulable_at=after(0)))
    if what == "a listed pending pod":
        on.put(pending("b"))
    if what == "a bound pod":
        on.put(running("b"))
    assert on.settle(seconds=3600) == []
