"""Room for critical pods: which pods, which node and which victims."""

from __future__ import annotations

from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claimctl.wire.base import from_plain, to_plain
from claimctl_reschedule.plan.observed import ActingController
from claimctl_reschedule.plan.plan import Plan, Skipped
from claimctl_reschedule.plan.planning import plan
from claimctl_reschedule.plan.policy import (
    DEFAULT_PROTECTIONS,
    CriticalPods,
    Evictor,
    Policy,
    Profile,
    Protection,
    RunLimits,
)
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.shapes.devices import SchedulingClaim
from claimctl_reschedule.shapes.records import (
    MoveOutcome,
    Record,
    RecordedAttempts,
    RecordedMove,
    RecordedTaint,
    RecordedWorkload,
)
from claimctl_reschedule.shapes.scheduling import PodDisruptionBudget, SchedulingPod
from claimctl_reschedule_tests.support.devices import (
    HOLD,
    claim,
    entry,
    node,
    observed,
    pod,
    request,
    reservation,
    slice_,
)
from tests.support.builders import NOW, after

TOLERATION = {"key": "CriticalAddonsOnly", "operator": "Exists"}
MARK = "scheduler.alpha.kubernetes.io/critical-pod"
WAITING = {
    "conditions": [
        {
            "type": "PodScheduled",
            "status": "False",
            "reason": "Unschedulable",
            "lastTransitionTime": after(-60).isoformat(),
        }
    ]
}
POLICY = Policy(profiles=(Profile(deschedule=(CriticalPods(),)),))


def critical(
    *claims: str,
    name: str = "addon",
    cpu: str = "",
    status: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    namespace: str = "ml",
    **spec: Any,
) -> SchedulingPod:
    """A critical pod that waits, with the toleration."""
    body = {
        "priorityClassName": "system-cluster-critical",
        "priority": 2_000_000_000,
        "tolerations": [TOLERATION],
        **requesting(cpu),
        **spec,
    }
    return pod(
        name,
        *claims,
        node="",
        spec=body,
        status={**WAITING, **(status or {})},
        annotations=annotations or {},
        namespace=namespace,
    )


def requesting(cpu: str) -> dict[str, Any]:
    return {"containers": [{"resources": {"requests": {"cpu": cpu}}}]} if cpu else {}


def victim(name: str, *claims: str, cpu: str = "1", **fields: Any) -> SchedulingPod:
    """A pod of the workload before the dash in its name."""
    return pod(name, *claims, workload=name.partition("-")[0], spec=requesting(cpu), **fields)


WANTED = claim("wanted", requests=[request(count=2)])
SLICE = slice_("gpu-0", "gpu-1", node="node-0")
NODES = (node("node-0", cpu="4"), node("node-1", cpu="4"))
UNIT = tuple(victim(f"a-{number}", "slice", cpu="100m") for number in range(6))
HELD = claim("slice", "gpu-0", "gpu-1", listed=[HOLD, *(entry(f"a-{n}") for n in range(6))])


def planned(*pods: SchedulingPod, policy: Policy = POLICY, **fields: Any) -> Plan:
    seen = {
        "pods": pods,
        "nodes": NODES,
        "slices": [SLICE],
        "claims": [WANTED, HELD],
        "reservations": [reservation()],
        "pod_groups": (),
        **fields,
    }
    return plan(observed(**seen), policy)


def victims(made: Plan) -> list[str]:
    return [each.pod.name for each in made.moves]


def only(made: Plan) -> Skipped:
    (skipped,) = made.skipped
    assert (made.moves, made.taints, made.reallocations) == ((), (), ())
    return skipped


def test_a_unit_of_six_gives_its_two_held_devices_up_for_a_critical_pod() -> None:
    made = planned(critical("wanted"), *UNIT)
    assert victims(made) == [f"a-{number}" for number in range(6)]
    (taint,) = made.taints
    assert (taint.node, taint.node_uid, taint.effect) == ("node-0", "uid-node-0", "NoSchedule")
    assert (taint.key, taint.value) == ("CriticalAddonsOnly", "claimctl-uid-addon")
    assert taint.pod is not None
    assert taint.pod.name == "addon"
    assert taint.timeout_seconds == 600
    (asked,) = made.reallocations
    assert (asked.reservation, asked.claim_uid) == ("slice", "uid-slice")
    assert {taint.unit, asked.unit, *(move.unit for move in made.moves)} == {taint.unit}
    assert {move.closes for move in made.moves} == {"node-0"}
    assert made.skipped == ()


def test_pods_with_claims_of_their_own_are_single_victims() -> None:
    pods = [victim(f"a-{n}", generated=f"own-{n}") for n in range(2)]
    claims = [
        claim("wanted"),
        *(claim(f"own-{n}", f"gpu-{n}", owner=f"a-{n}") for n in range(2)),
    ]
    made = planned(critical("wanted"), *pods, claims=claims, reservations=[])
    assert len(victims(made)) == 1
    assert made.reallocations == ()


@pytest.mark.parametrize(
    ("waiting", "reason"),
    [
        (critical("wanted", status={"nominatedNodeName": "node-0"}), Ground.SCHEDULER_PREEMPTS),
        (critical(cpu="4"), Ground.SCHEDULER_PREEMPTS),
        (critical(cpu="5"), Ground.SCHEDULER_PREEMPTS),
        (critical("wanted", tolerations=[]), Ground.TOLERATION_MISSING),
        (
            critical("wanted", tolerations=[{**TOLERATION, "operator": "Equal", "value": "x"}]),
            Ground.TOLERATION_MISSING,
        ),
        (critical("wanted", cpu="5"), Ground.DOES_NOT_FIT_EVEN_EMPTY),
        (critical("wanted", nodeSelector={"zone": "a"}), Ground.DOES_NOT_FIT_EVEN_EMPTY),
        (critical("missing"), Ground.FIT_UNKNOWN),
    ],
    ids=[
        "nominated",
        "cpu only",
        "too much cpu only",
        "no toleration",
        "a toleration of another value",
        "too large",
        "no such node",
        "a claim that was not read",
    ],
)
def test_claimctl_does_not_act(waiting: SchedulingPod, reason: Ground) -> None:
    assert only(planned(waiting, *UNIT)).reason is reason


@pytest.mark.parametrize(
    "waiting",
    [
        critical("wanted", schedulerName="other"),
        critical("wanted", schedulingGates=[{"name": "gate"}]),
        critical("wanted", priorityClassName="high", priority=1000),
        critical("wanted", status={"conditions": []}),
        critical("wanted", nodeName="node-0"),
        critical("wanted", priorityClassName="", priority=0, annotations={MARK: ""}),
        critical(
            "wanted",
            priorityClassName="",
            priority=0,
            annotations={MARK: "no"},
            namespace="kube-system",
        ),
    ],
    ids=[
        "another scheduler",
        "gated",
        "not critical",
        "not unschedulable",
        "bound",
        "marked outside the system",
        "marked by another value",
    ],
)
def test_other_pods_are_not_looked_at(waiting: SchedulingPod) -> None:
    made = planned(waiting, *UNIT)
    assert (made.moves, made.skipped) == ((), ())


def test_a_pod_that_waits_for_a_moment_is_not_looked_at() -> None:
    patient = Policy(profiles=(Profile(deschedule=(CriticalPods(unschedulable_seconds=61),)),))
    made = planned(critical("wanted"), *UNIT, policy=patient)
    assert (made.moves, made.skipped) == ((), ())


def test_free_devices_are_left_to_the_scheduler() -> None:
    made = planned(critical("wanted", cpu="4"), *UNIT, claims=[WANTED], slices=[SLICE])
    assert only(made).reason is Ground.SCHEDULER_PREEMPTS


@pytest.mark.parametrize(
    "waiting",
    [
        critical(cpu="4", preemptionPolicy="Never"),
        critical(
            cpu="4",
            priorityClassName="",
            priority=0,
            annotations={MARK: ""},
            namespace="kube-system",
        ),
        critical(
            cpu="4",
            priorityClassName="",
            priority=0,
            annotations={MARK: "true"},
            namespace="kube-system",
        ),
    ],
    ids=["preemptionPolicy Never", "marked by annotation", "marked as in 2018"],
)
def test_room_is_made_for_pods_that_the_scheduler_does_not_preempt_for(
    waiting: SchedulingPod,
) -> None:
    pods = victim("a-0", cpu="2"), victim("b-0", cpu="2"), victim("c-0", node="node-1", cpu="3")
    made = planned(waiting, *pods, claims=[], reservations=[])
    assert victims(made) == ["c-0"]


BOTH = (SLICE, slice_("gpu-0", "gpu-1", node="node-1"))


def two_nodes(first: list[SchedulingPod], second: list[SchedulingPod], **fields: Any) -> Plan:
    """Each node has a held claim on both devices. Its pods have to go."""
    claims = [WANTED, HELD, claim("other", "gpu-0", "gpu-1", node="node-1", listed=[HOLD])]
    reserved = [reservation(), reservation("other")]
    return planned(
        critical("wanted"),
        *first,
        *second,
        **{"slices": BOTH, "claims": claims, "reservations": reserved, **fields},
    )


def there(name: str, priority: int = 0, **fields: Any) -> SchedulingPod:
    return victim(name, "other", cpu="100m", node="node-1", priority=priority, **fields)


def here(name: str, priority: int = 0, **fields: Any) -> SchedulingPod:
    return victim(name, "slice", cpu="100m", priority=priority, **fields)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        pytest.param([here("a-0", 5)], [there("b-0", 4), there("b-1")], "node-1", id="priority"),
        pytest.param([here("a-0"), here("c-0")], [there("b-0"), there("b-1")], "node-1",
                     id="workloads"),
        pytest.param([here("a-0"), here("a-1")], [there("b-0")], "node-1", id="pods"),
        pytest.param(
            [here("a-0", creationTimestamp=after(-100).isoformat())],
            [there("b-0", creationTimestamp=after(-50).isoformat())],
            "node-1",
            id="the younger",
        ),
        pytest.param([here("a-0")], [there("b-0")], "node-0", id="the name"),
    ],
)  # fmt: skip
def test_the_least_loss_is_taken(
    first: list[SchedulingPod], second: list[SchedulingPod], expected: str
) -> None:
    made = two_nodes(first, second)
    assert [taint.node for taint in made.taints] == [expected]


def test_a_hold_weighs_more_than_workloads_and_pods() -> None:
    own = [
        claim("own-0", "gpu-0", node="node-1", owner="b-0"),
        claim("own-1", "gpu-1", node="node-1", owner="c-0"),
    ]
    free = [
        victim("b-0", generated="own-0", node="node-1"),
        victim("c-0", generated="own-1", node="node-1"),
    ]
    claims = [WANTED, HELD, *own]
    made = two_nodes([here("a-0")], free, claims=claims, reservations=[reservation()])
    assert [taint.node for taint in made.taints] == ["node-1"]


def test_victims_that_are_not_needed_stay() -> None:
    pods = victim("a-0", cpu="1", priority=9), victim("b-0", cpu="1"), victim("c-0", cpu="2")
    waiting = critical(cpu="2", preemptionPolicy="Never")
    made = planned(waiting, *pods, claims=[], nodes=[node("node-0", cpu="4")])
    assert victims(made) == ["c-0"]


@pytest.mark.parametrize(
    ("kept", "reason"),
    [
        ({"priority": 2_000_000_000}, Ground.DOES_NOT_FIT_EVEN_EMPTY),
        ({"annotations": {"karpenter.sh/do-not-disrupt": "true"}}, Ground.VICTIMS_STAY),
    ],
    ids=["critical itself", "not to be disrupted"],
)
def test_a_unit_with_a_pod_that_may_not_go_stays_as_a_whole(
    kept: dict[str, Any], reason: Ground
) -> None:
    made = planned(critical("wanted"), *UNIT[:5], victim("a-5", "slice", **kept))
    assert only(made).reason is reason


def budget(allowed: int) -> PodDisruptionBudget:
    body = {
        "metadata": {"name": "budget", "namespace": "ml"},
        "spec": {"selector": {}},
        "status": {"disruptionsAllowed": allowed, "currentHealthy": 6, "desiredHealthy": 1},
    }
    return from_plain(body, PodDisruptionBudget)


READY = {"conditions": [{"type": "Ready", "status": "True"}]}
READY_UNIT = tuple(victim(f"a-{n}", "slice", cpu="100m", status=READY) for n in range(6))


@pytest.mark.parametrize(("allowed", "moved"), [(5, 0), (6, 6)])
def test_no_budget_is_violated(allowed: int, moved: int) -> None:
    made = planned(critical("wanted"), *READY_UNIT, budgets=[budget(allowed)])
    assert len(made.moves) == moved


@pytest.mark.parametrize(("total", "moved"), [(5, 0), (6, 6)])
def test_limits_hold_for_the_whole_unit(total: int, moved: int) -> None:
    policy = Policy(profiles=POLICY.profiles, limits=RunLimits(total=total))
    assert len(planned(critical("wanted"), *UNIT, policy=policy).moves) == moved


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"reservations": [reservation(timeout=None)]}, Ground.VICTIMS_STAY),
        ({"reservations": []}, Ground.DOES_NOT_FIT_EVEN_EMPTY),
        (
            {"reservations": [reservation(forceDeletedPods=[{"uid": "x", "name": "x"}])]},
            Ground.DOES_NOT_FIT_EVEN_EMPTY,
        ),
        ({"controller": ActingController()}, Ground.VICTIMS_STAY),
        ({"controller": ActingController(after(-299))}, Ground.VICTIMS_STAY),
    ],
    ids=["never reallocated", "held by another", "a ghost", "no controller", "a new controller"],
)
def test_devices_that_the_controller_does_not_give_up_are_no_room(
    fields: dict[str, Any], reason: Ground
) -> None:
    assert only(planned(critical("wanted"), *UNIT, **fields)).reason is reason


def test_the_reason_says_which_pods_stay_and_why() -> None:
    detail = only(
        planned(critical("wanted"), *UNIT, controller=ActingController(detail="gone"))
    ).detail
    assert detail == "on node-0: 6 ControllerAway (gone)"


@pytest.mark.parametrize(
    ("leads", "moved"),
    [(-300, 6), (-299, 0)],
    ids=["longer than its grace", "not yet as long as its grace"],
)
def test_a_held_claim_is_given_up_only_by_a_controller_that_knows_it(
    leads: float, moved: int
) -> None:
    made = planned(critical("wanted"), *UNIT, controller=ActingController(after(leads)))
    assert len(made.moves) == moved


def test_a_claim_that_was_made_under_this_controller_is_known_to_it() -> None:
    young = from_plain(
        {
            **to_plain(HELD),
            "metadata": {
                **to_plain(HELD.metadata),
                "creationTimestamp": after(-20).isoformat(),
            },
        },
        SchedulingClaim,
    )
    for leads, moved in ((-21, 6), (-19, 0)):
        made = planned(
            critical("wanted"),
            *UNIT,
            claims=[WANTED, young],
            controller=ActingController(after(leads)),
        )
        assert len(made.moves) == moved


def test_owners_whose_pods_made_room_a_moment_ago_do_not_rest_from_the_next_rescue() -> None:
    """Their replacements find no room in a full cluster: that must not forbid the next rescue."""
    earlier = RecordedMove(
        strategy="CriticalPods", at=after(-1), source="node-0", outcome=MoveOutcome.PENDING
    )
    owner = UNIT[0].metadata.controller()
    assert owner is not None
    memory = {owner.uid: RecordedWorkload(uid=owner.uid, moves=(earlier,) * 6)}
    made = planned(critical("wanted"), *UNIT, record=Record(workloads=memory))
    assert len(made.moves) == 6


def test_budgets_and_limits_count_the_sum_of_all_units() -> None:
    pods = [victim(f"{name}-0", cpu="2", status=READY) for name in "ab"]
    waiting = critical(cpu="4", preemptionPolicy="Never")
    made = planned(waiting, *pods, claims=[], nodes=NODES[:1], budgets=[budget(1)])
    assert only(made).reason is Ground.VICTIMS_STAY


def test_what_one_rescue_spends_of_a_budget_the_next_one_lacks() -> None:
    pods = [victim(f"{name}-0", cpu="4", node=at, status=READY) for name, at in PLACES]
    waiting = [critical(name=name, cpu="4", preemptionPolicy="Never") for name in "xy"]
    for allowed in (1, 2):
        made = planned(*waiting, *pods, claims=[], budgets=[budget(allowed)])
        assert len(made.moves) == allowed


PLACES = (("a", "node-0"), ("b", "node-1"))


def test_a_unit_is_no_victim_for_one_of_its_pods() -> None:
    """Where the policy lifts the protection of critical pods, their priority still counts."""
    lifted = Evictor(protections=DEFAULT_PROTECTIONS - {Protection.SYSTEM_CRITICAL})
    policy = Policy(profiles=(Profile(evictor=lifted, deschedule=(CriticalPods(),)),))
    equal = victim("a-5", "slice", priority=2_000_000_000)
    made = planned(critical("wanted"), *UNIT[:5], equal, policy=policy)
    assert only(made).reason is Ground.DOES_NOT_FIT_EVEN_EMPTY
    lower = victim("a-5", "slice", priority=1_999_999_999)
    assert len(planned(critical("wanted"), *UNIT[:5], lower, policy=policy).moves) == 6


def test_a_pod_whose_claim_cannot_follow_it_is_no_victim() -> None:
    """Its replacement would wait for the claim, which a ghost may use."""
    ghost = reservation(forceDeletedPods=[{"uid": "x", "name": "x"}])
    waiting = critical(cpu="4", preemptionPolicy="Never")
    made = planned(waiting, victim("a-0", "slice"), reservations=[ghost], nodes=NODES[:1])
    assert only(made).reason is Ground.VICTIMS_STAY


def test_room_that_was_made_for_one_pod_is_not_there_for_the_next() -> None:
    pods = [victim(f"{name}-0", cpu="1") for name in "abcd"]
    waiting = [critical(name=name, cpu="1", preemptionPolicy="Never") for name in "xy"]
    made = planned(*waiting, *pods, claims=[], nodes=NODES[:1])
    assert len(made.moves) == len(made.taints) == 1
    assert [each.pod.name for each in made.skipped] == ["y"]


def test_a_device_that_was_freed_for_one_pod_is_not_there_for_the_next() -> None:
    net = slice_("gpu-0", pool="net", allNodes=True)
    own = claim("own", "gpu-0", node="net", everywhere=True, owner="a-0")
    waiting = [critical(each, name=each) for each in ("first", "second")]
    claims = [own, claim("first"), claim("second")]
    made = planned(
        *waiting, victim("a-0", generated="own"), claims=claims, slices=[net], reservations=[]
    )
    assert victims(made) == ["a-0"]
    (skipped,) = made.skipped
    assert (skipped.pod.name, skipped.reason) == ("second", Ground.ROOM_FOR_ANOTHER)


def test_two_critical_pods_get_different_nodes() -> None:
    claims = [
        WANTED,
        claim("wanted-2", requests=[request(count=2)]),
        HELD,
        claim("other", "gpu-0", "gpu-1", node="node-1", listed=[HOLD]),
    ]
    made = planned(
        critical("wanted"),
        critical("wanted-2", name="second"),
        *UNIT,
        there("b-0"),
        slices=BOTH,
        claims=claims,
        reservations=[reservation(), reservation("other")],
    )
    assert {taint.node for taint in made.taints} == {"node-0", "node-1"}
    assert len({move.pod.uid for move in made.moves}) == len(made.moves) == 7


def taint(value: str) -> dict[str, Any]:
    return {"taints": [{"key": "CriticalAddonsOnly", "value": value, "effect": "NoSchedule"}]}


@pytest.mark.parametrize(("value", "acts"), [("claimctl-uid-other", False), ("", True)])
def test_a_node_on_which_room_is_made_for_another_pod_is_not_taken(value: str, acts: bool) -> None:
    """An administrator's taint does not matter: the pod tolerates it."""
    made = planned(critical("wanted"), *UNIT, nodes=[node("node-0", cpu="4", **taint(value))])
    assert bool(made.moves) is acts


def tried(count: int, seconds: int) -> Record:
    last = RecordedAttempts(pod_uid="uid-addon", count=count, last=after(seconds))
    return Record(attempts={"uid-addon": last})


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (tried(3, -86_400), Ground.ATTEMPTS_SPENT),
        (tried(1, -599), Ground.BACKING_OFF),
        (tried(1, -600), None),
        (tried(2, -1199), Ground.BACKING_OFF),
        (tried(2, -1200), None),
        (
            Record(
                taints=(
                    RecordedTaint(
                        node="node-0",
                        node_uid="uid-node-0",
                        key="CriticalAddonsOnly",
                        value="claimctl-uid-addon",
                        pod_namespace="ml",
                        pod_name="addon",
                        pod_uid="uid-addon",
                        since=NOW,
                        deadline=NOW + timedelta(minutes=10),
                    ),
                )
            ),
            Ground.BACKING_OFF,
        ),
    ],
    ids=["three attempts", "one", "one, long ago", "two", "two, long ago", "under way"],
)
def test_attempts_are_limited(record: Record, reason: Ground | None) -> None:
    made = planned(critical("wanted"), *UNIT, record=record)
    assert (made.skipped[0].reason if made.skipped else None) is reason
    assert bool(made.moves) is (reason is None)


@given(
    sizes=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=5),
    needed=st.integers(1, 8),
)
def test_the_victims_are_enough_and_none_of_them_is_too_many(
    sizes: list[tuple[int, int]], needed: int
) -> None:
    pods = [
        victim(f"v{number}-0", cpu=str(cpu), priority=priority)
        for number, (cpu, priority) in enumerate(sizes)
    ]
    room = 8 - sum(cpu for cpu, _ in sizes)
    waiting = critical(cpu=str(needed), preemptionPolicy="Never")
    made = planned(waiting, *pods, claims=[], nodes=[node("node-0", cpu="8")])
    chosen = [sizes[int(name[1])] for name in victims(made)]
    freed = room + sum(cpu for cpu, _ in chosen)
    if needed <= room:
        assert only(made).reason is Ground.SCHEDULER_PREEMPTS
        return
    assert freed >= needed
    assert all(freed - cpu < needed for cpu, _ in chosen)
    highest = min(
        max(priority for _, priority in some)
        for count in range(1, len(sizes) + 1)
        for some in combinations(sizes, count)
        if room + sum(cpu for cpu, _ in some) >= needed
    )
    assert max(priority for _, priority in chosen) == highest


def test_the_order_of_the_observed_objects_does_not_matter() -> None:
    one = two_nodes([here("a-0")], [there("b-0"), there("b-1")])
    other = two_nodes(
        [here("a-0")], [there("b-1"), there("b-0")], nodes=NODES[::-1], slices=BOTH[::-1]
    )
    assert one == other
