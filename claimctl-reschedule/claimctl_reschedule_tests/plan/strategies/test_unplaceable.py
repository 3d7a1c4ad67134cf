"""UnplaceablePods: avoidances, evictions of stuck pods, the brake, and the removal of old pods."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from claimctl.wire.base import from_plain
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.traces import AVOID_TAINT, BRAKE_GATE
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.planning import plan
from claimctl_reschedule.plan.policy import Avoid, Evictor, Policy, Profile, UnplaceablePods
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.plan.refusals import AVOIDS
from claimctl_reschedule.shapes.records import Record, RecordedAvoidance
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support import devices, scheduling
from claimctl_reschedule_tests.support.devices import (
    HOLD,
    claim,
    entry,
    request,
    reservation,
    slice_,
)
from claimctl_reschedule_tests.support.scheduling import NOW, moves, node, pod, reasons
from tests.support.builders import after

NODES = tuple(node(f"node-{number}") for number in range(3))
OWNER = "uid-ReplicaSet-web"


def policy(**wanted: Any) -> Policy:
    return Policy(profiles=(Profile(deschedule=(UnplaceablePods(**wanted),)),))


def refused(
    name: str, on: str = "node-0", *, age: float = 1.0, reason: str = "OutOfcpu", **parts: Any
) -> SchedulingPod:
    return pod(name, on, phase="Failed", ready=False, age=age, status={"reason": reason}, **parts)


def braked(name: str, age: float = 0.0) -> SchedulingPod:
    gate = [{"name": BRAKE_GATE}]
    return pod(name, phase="Pending", ready=False, age=age, spec={"schedulingGates": gate})


def seen(*pods: SchedulingPod, **more: Any) -> Observed:
    """Three nodes, with the admission policy, and the ReplicaSets of the pods."""
    owners = {each.uid: each for one in pods if (each := one.metadata.controller())}
    headers = tuple(from_plain({"metadata": {"uid": uid}}, ObjectHeader) for uid in sorted(owners))
    nodes = more.pop("nodes", NODES)
    return scheduling.observed(*nodes, *pods, **{"owners": headers, "admission": True, **more})


def planned(*pods: SchedulingPod, wanted: Policy | None = None, **more: Any) -> Plan:
    return plan(seen(*pods, **more), wanted or policy())


def entry_of(made: Plan, owner: str = OWNER) -> RecordedAvoidance:
    return next(each.entry for each in made.avoidances if each.entry.owner_uid == owner)


def record(*entries: RecordedAvoidance) -> Record:
    return Record(avoidances=entries)


TWO = (refused("a"), refused("b"))


def test_one_refusal_is_normal() -> None:
    made = planned(refused("a"))
    assert entry_of(made).nodes == ()
    assert reasons(made) == {"a": Ground.REFUSED_BY_NODE}
    assert moves(made) == {}


def test_after_two_refusals_the_owner_avoids_the_node_and_nobody_else_does() -> None:
    """Scenario 24: the entry names one owner."""
    made = planned(*TWO, refused("c", owner="other"), pod("runs", "node-0", owner="third"))
    assert entry_of(made).nodes == ("node-0",)
    assert entry_of(made, "uid-ReplicaSet-other").nodes == ()
    assert len(made.avoidances) == 2
    assert (made.taints, made.moves) == ((), ())
    assert made.avoidances[-1].why == "its new pods avoid node-0: OutOfcpu"


def test_two_nodes_that_refuse_one_pod_each_are_not_avoided() -> None:
    assert entry_of(planned(refused("a"), refused("b", "node-1"))).nodes == ()


@pytest.mark.parametrize("reason", ["SysctlForbidden", "PodOSNotSupported"])
def test_a_fault_of_the_pod_is_only_reported(reason: str) -> None:
    made = planned(*(refused(name, reason=reason) for name in "ab"))
    assert made.avoidances == ()
    assert set(reasons(made).values()) == {Ground.REFUSED_FOR_ITSELF}


def test_pods_that_nothing_makes_again_are_left_alone() -> None:
    made = planned(refused("a", owner=None), refused("b", owner="agent", kind="DaemonSet"))
    assert (made.avoidances, made.skipped) == ((), ())


def test_what_is_planned_twice_changes_nothing() -> None:
    """A second run with the same pods finds the record as it wants it."""
    entry_ = entry_of(planned(*TWO))
    assert planned(*TWO, record=record(entry_)).avoidances == ()


# the last node


@pytest.mark.parametrize(
    "others",
    [
        (),
        (node("node-1", unschedulable=True), node("node-2", ready=False)),
        (node("node-1", cpu="50m"),),
    ],
)
def test_the_last_node_is_never_avoided(others: tuple[Any, ...]) -> None:
    """Scenario 29."""
    made = planned(*TWO, nodes=(NODES[0], *others))
    assert entry_of(made).nodes == ()
    assert Ground.NO_OTHER_NODE in reasons(made).values()


def test_a_node_on_which_the_owner_runs_counts_although_it_is_full() -> None:
    full = (NODES[0], node("node-1", cpu="100m"))
    made = planned(*TWO, pod("runs", "node-1"), nodes=full)
    assert entry_of(made).nodes == ("node-0",)


def test_an_avoidance_ends_when_the_other_nodes_are_gone() -> None:
    before = entry_of(planned(*TWO))
    made = planned(*TWO, nodes=NODES[:1], record=record(before))
    assert entry_of(made).nodes == ()
    assert "no other node fits" in made.avoidances[0].why


@given(
    st.lists(st.tuples(st.sampled_from(("web", "db")), st.integers(0, 3)), max_size=24),
    st.lists(st.sampled_from(range(4)), unique=True, max_size=3),
    st.booleans(),
)
def test_some_node_that_fits_is_never_avoided(
    refusals: list[tuple[str, int]], cordoned: list[int], again: bool
) -> None:
    nodes = tuple(node(f"node-{n}", unschedulable=n in cordoned) for n in range(4))
    pods = [
        refused(f"{owner}-{number}", f"node-{n}", owner=owner)
        for number, (owner, n) in enumerate(refusals)
    ]
    made = planned(*pods, nodes=nodes)
    if again:
        entries = [each.entry for each in made.avoidances]
        made = planned(*pods, nodes=nodes, record=record(*entries))
    open_ = {f"node-{n}" for n in range(4)} - {f"node-{n}" for n in cordoned}
    for each in made.avoidances:
        assert open_ - set(each.entry.nodes)


# means


def test_without_the_admission_policy_the_node_gets_a_hint_for_all_pods() -> None:
    (step,) = planned(*TWO, admission=False).avoidances
    (taint,) = step.taints
    assert (taint.node, taint.key, taint.effect) == ("node-0", AVOID_TAINT, "PreferNoSchedule")
    assert taint.value == f"claimctl-{OWNER}"
    assert taint.timeout_seconds == 600


def test_with_the_admission_policy_no_node_is_written() -> None:
    assert planned(*TWO).avoidances[0].taints == ()


@pytest.mark.parametrize(
    ("avoid", "admission", "nodes", "taints"),
    [
        (Avoid.ADMISSION, True, ("node-0",), 0),
        (Avoid.ADMISSION, False, (), 0),
        (Avoid.TAINT, True, ("node-0",), 1),
        (Avoid.REPORT, True, (), 0),
    ],
)
def test_the_policy_chooses_how_pods_are_kept_off(
    avoid: Avoid, admission: bool, nodes: tuple[str, ...], taints: int
) -> None:
    (step,) = planned(*TWO, wanted=policy(avoid=avoid), admission=admission).avoidances
    assert (step.entry.nodes, len(step.taints)) == (nodes, taints)


def test_pods_that_the_admission_policy_missed_bring_the_taint() -> None:
    """Scenario 28: the policy is there and does not act."""
    before = entry_of(planned(*TWO))
    late = NOW + timedelta(seconds=60)
    marked = refused("c", age=-45, annotations={AVOIDS: "node-0"})
    fine = plan(replace(seen(*TWO, marked, record=record(before)), now=late), policy())
    assert [each.taints for each in fine.avoidances] == [()]
    made = plan(
        replace(seen(*TWO, refused("c", age=-45), record=record(before)), now=late), policy()
    )
    assert [len(each.taints) for each in made.avoidances] == [1]
    assert ["does not act" in each.text for each in made.notes] == [True]


# forgetting


def test_a_node_that_has_changed_is_tried_again() -> None:
    before = entry_of(planned(*TWO))
    other = (node("node-0", cpu="9"), *NODES[1:])
    assert entry_of(planned(*TWO, nodes=other, record=record(before))).nodes == ("node-0",)
    assert planned(nodes=other, record=record(with_fields(before, kind="StatefulSet"))).avoidances[
        0
    ].entry == RecordedAvoidance(
        owner_uid=OWNER, kind="StatefulSet", namespace="team", name="web", refusals=before.refusals
    )


def test_an_owner_that_is_gone_is_forgotten() -> None:
    before = entry_of(planned(*TWO))
    made = planned(record=record(before))
    assert [each.entry for each in made.avoidances] == [RecordedAvoidance(owner_uid=OWNER)]


def test_a_policy_without_the_strategy_undoes_everything() -> None:
    before = entry_of(planned(*TWO))
    made = planned(braked("w"), wanted=Policy(), record=record(before))
    assert [each.entry for each in made.avoidances] == [RecordedAvoidance(owner_uid=OWNER)]
    assert [each.pod.name for each in made.releases] == ["w"]


# the brake

MANY = tuple(refused(f"p-{number}", f"node-{number % 3}") for number in range(5))


def test_the_brake_is_off_unless_the_policy_asks_for_it() -> None:
    made = planned(*MANY)
    assert not entry_of(made).braked
    assert any("brake is off" in each.text for each in made.notes)


def test_too_many_refused_pods_put_the_brake_on() -> None:
    made = planned(*MANY, wanted=policy(brake=True))
    assert (entry_of(made).braked, entry_of(made).nodes) == (True, ())
    assert made.next_look == NOW + timedelta(seconds=10)
    assert not entry_of(planned(*MANY[:4], wanted=policy(brake=True))).braked


def test_many_refusals_at_once_by_one_node_are_a_matter_of_avoidance() -> None:
    made = planned(*(refused(f"p-{number}") for number in range(9)), wanted=policy(brake=True))
    assert (entry_of(made).braked, entry_of(made).nodes) == (False, ("node-0",))


def test_an_owner_of_which_new_pods_run_is_not_braked() -> None:
    runs = pod("runs", "node-1", age=0)
    assert not entry_of(planned(*MANY, runs, wanted=policy(brake=True))).braked
    old = pod("runs", "node-1", age=60)
    assert entry_of(planned(*MANY, old, wanted=policy(brake=True))).braked


def test_a_pod_on_its_way_counts_against_the_budget() -> None:
    coming = pod("coming", "node-1", phase="Pending", ready=False)
    assert entry_of(planned(*MANY[:4], coming, wanted=policy(brake=True))).braked


def test_without_the_admission_policy_there_is_no_brake() -> None:
    made = planned(*MANY, wanted=policy(brake=True), admission=False)
    assert not entry_of(made).braked
    assert any("not installed" in each.text for each in made.notes)


def test_a_braked_owner_gets_a_probe_and_nothing_else() -> None:
    on = record(entry_of(planned(*MANY, wanted=policy(brake=True))))
    pods = (*MANY, braked("w"), braked("v"))
    later = replace(seen(*pods, record=on), now=NOW + timedelta(seconds=10))
    made = plan(later, policy(brake=True))
    assert [each.pod.name for each in made.releases] == ["v"]
    assert reasons(made)["w"] == Ground.BRAKED
    assert entry_of(made).nodes == ()


@pytest.mark.parametrize("change", ["brake: false", "policy removed"])
def test_the_brake_goes_when_it_is_not_wanted_or_cannot_act(change: str) -> None:
    on = record(entry_of(planned(*MANY, wanted=policy(brake=True))))
    wanted = policy(brake=change != "brake: false")
    made = planned(
        *MANY, braked("w"), record=on, wanted=wanted, admission=change != "policy removed"
    )
    assert not entry_of(made).braked
    assert [each.pod.name for each in made.releases] == ["w"]


def test_a_pod_with_the_gate_of_an_owner_that_is_not_braked_goes_on() -> None:
    """A process was killed after it had written the record."""
    made = planned(braked("w"))
    assert [each.pod.name for each in made.releases] == ["w"]
    assert made.avoidances == ()


# old pods


def test_the_newest_refused_pods_are_kept() -> None:
    """Scenario 27."""
    pods = [refused(f"p-{number}", age=10 - number) for number in range(5)]
    made = planned(*pods, wanted=policy(keep_refused=3))
    assert sorted(moves(made)) == ["p-0", "p-1"]
    assert all(move.cleans for move in made.moves)


def test_failed_pods_of_jobs_stay_and_so_do_all_without_a_limit() -> None:
    jobs = [refused(f"p-{number}", kind="Job") for number in range(5)]
    assert planned(*jobs, wanted=policy(keep_refused=0)).moves == ()
    pods = [refused(f"p-{number}") for number in range(5)]
    assert planned(*pods, wanted=policy(keep_refused=None)).moves == ()


# stuck pods

ERROR = "Failed to prepare dynamic resources: the driver is away"
SLICES = [slice_(f"gpu-{n}", node=f"node-{n}") for n in range(2)]


def stuck(name: str, *claims: str, age: float = 400, **fields: Any) -> SchedulingPod:
    since = after(-age).isoformat()
    bound = {"type": "PodScheduled", "status": "True", "lastTransitionTime": since}
    fields.setdefault("creationTimestamp", since)
    return devices.pod(name, *claims, phase="Pending", status={"conditions": [bound]}, **fields)


def stuck_plan(*pods: SchedulingPod, **fields: Any) -> Plan:
    unprepared = {each.metadata.uid: ERROR for each in pods if each.status.phase == "Pending"}
    owners = fields.pop("owners", None) or (
        from_plain({"metadata": {"uid": "uid-set"}}, ObjectHeader),
    )
    wanted = fields.pop("wanted", policy())
    return plan(
        devices.observed(
            pods=pods,
            slices=SLICES,
            nodes=tuple(devices.node(f"node-{n}", cpu="8") for n in range(2)),
            owners=owners,
            unprepared=unprepared,
            admission=True,
            **fields,
        ),
        wanted,
    )


HELD = claim("slice", "gpu-0", listed=[HOLD, entry("a")])


def test_a_stuck_pod_is_evicted_after_its_owner_avoids_the_node() -> None:
    made = stuck_plan(stuck("a", "slice"), claims=[claim("slice", "gpu-0", listed=[entry("a")])])
    assert list(moves(made)) == ["a"]
    assert entry_of(made, "uid-set").nodes == ("node-0",)
    assert made.reallocations == ()


def test_a_held_claim_is_given_up_by_the_controller() -> None:
    """Scenario 25."""
    made = stuck_plan(stuck("a", "slice"), claims=[HELD], reservations=[reservation()])
    assert list(moves(made)) == ["a"]
    (asked,) = made.reallocations
    assert (asked.claim_uid, asked.unit) == ("uid-slice", made.moves[0].unit)
    assert made.taints == ()


def test_a_stuck_pod_and_what_is_asked_of_its_held_claim_are_one_unit() -> None:
    held = claim("slice", "gpu-0", listed=[HOLD, entry("a")])
    made = stuck_plan(stuck("a", "slice"), claims=[held], reservations=[reservation()])
    (move,), (asked,) = made.moves, made.reallocations
    assert move.unit == asked.unit != ""


def test_all_stuck_pods_of_a_held_claim_leave_together() -> None:
    held = claim("slice", "gpu-0", listed=[HOLD, entry("a"), entry("b")])
    made = stuck_plan(
        stuck("a", "slice"), stuck("b", "slice"), claims=[held], reservations=[reservation()]
    )
    assert sorted(moves(made)) == ["a", "b"]
    (unit,) = {move.unit for move in made.moves}
    assert [each.unit for each in made.reallocations] == [unit] != [""]


def test_beside_a_pod_that_runs_a_stuck_pod_is_evicted_once() -> None:
    """Scenario 26."""
    held = claim("slice", "gpu-0", listed=[HOLD, entry("a"), entry("b")])
    runs = devices.pod("b", "slice")
    fields: dict[str, Any] = {"claims": [held], "reservations": [reservation()]}
    made = stuck_plan(stuck("a", "slice"), runs, **fields)
    assert list(moves(made)) == ["a"]
    assert (entry_of(made, "uid-set").nodes, made.reallocations) == ((), ())
    known = record(entry_of(made, "uid-set"))
    # killed before the eviction: the same pod is evicted by the successor
    again = stuck_plan(stuck("a", "slice"), runs, record=known, **fields)
    assert list(moves(again)) == ["a"]
    later = after(1).isoformat()
    made = stuck_plan(stuck("a", "slice", creationTimestamp=later), runs, record=known, **fields)
    assert (moves(made), reasons(made)) == ({}, {"a": Ground.STUCK_AGAIN})


def test_a_stuck_pod_stays_where_no_other_node_has_devices() -> None:
    taken = claim("other", "gpu-1", node="node-1", listed=[entry("x")])
    user = devices.pod("x", "other", node="node-1", workload="other")
    made = stuck_plan(stuck("a", "slice"), user, claims=[HELD, taken], reservations=[reservation()])
    assert moves(made) == {}
    assert reasons(made)["a"] == Ground.NO_OTHER_NODE


def test_a_hold_that_is_never_reallocated_keeps_a_stuck_pod() -> None:
    made = stuck_plan(stuck("a", "slice"), claims=[HELD], reservations=[reservation(timeout=None)])
    assert reasons(made) == {"a": Ground.NEVER_REALLOCATED}


def test_the_evictors_rules_hold_for_stuck_pods() -> None:
    wanted = Policy(
        profiles=(
            Profile(evictor=Evictor(min_pod_age_seconds=3600), deschedule=(UnplaceablePods(),)),
        )
    )
    made = stuck_plan(
        stuck("a", "slice"), claims=[HELD], reservations=[reservation()], wanted=wanted
    )
    assert reasons(made) == {"a": Ground.MIN_AGE}


def test_nothing_is_evicted_where_pods_cannot_be_kept_off() -> None:
    made = stuck_plan(
        stuck("a", "slice"),
        claims=[HELD],
        reservations=[reservation()],
        wanted=policy(avoid=Avoid.REPORT),
    )
    assert made.moves == ()


def test_a_request_for_devices_that_cannot_be_judged_keeps_the_pod() -> None:
    odd = claim("slice", "gpu-0", listed=[entry("a")], requests=[request("gpu", "device.f(1)")])
    made = stuck_plan(stuck("a", "slice"), claims=[odd])
    assert reasons(made) == {"a": Ground.FIT_UNKNOWN}
