"""Room for resizes: for whom, on which node, and which victims."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import pytest

from claimctl.wire.base import from_plain
from claimctl_reschedule.plan.observed import Gate
from claimctl_reschedule.plan.plan import Plan, Skipped
from claimctl_reschedule.plan.planning import plan
from claimctl_reschedule.plan.policy import (
    DEFAULT_PROTECTIONS,
    DeferredResizes,
    Evictor,
    MoveHeldClaims,
    Policy,
    Profile,
    Protection,
    RunLimits,
    StandBack,
)
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.shapes.records import Record, RecordedResize
from claimctl_reschedule.shapes.scheduling import SchedulingNode, SchedulingPod, SchedulingPodGroup
from claimctl_reschedule_tests.support import devices
from claimctl_reschedule_tests.support.alpha import alpha_victims, fit, held_by, least_victims
from claimctl_reschedule_tests.support.resizes import Sizes, grows, sized
from claimctl_reschedule_tests.support.scheduling import NOW, budget, node, observed

GROUP = {"schedulingGroup": {"podGroupName": "gang"}}


def policy(stand_back: StandBack = StandBack.AUTO, **evictor: Any) -> Policy:
    wanted = DeferredResizes(stand_back=stand_back)
    profile = Profile(deschedule=(wanted,), evictor=Evictor(**evictor))
    return Policy(profiles=(profile,))


def planned(*objects: Any, given: Policy | None = None, cpu: str = "4", **fields: Any) -> Plan:
    known = [each for each in objects if isinstance(each, SchedulingNode)]
    nodes = () if known else (node("n", cpu=cpu, memory="64Gi"),)
    return plan(observed(*nodes, *objects, **fields), given or policy())


def victims(made: Plan) -> list[str]:
    return [each.pod.name for each in made.moves]


def reason(made: Plan, pod: str = "big-0") -> Ground:
    """The reason why no room is made."""
    found = {each.pod.name: each for each in made.skipped}
    assert (made.moves, made.resizes, made.taints) == ((), (), ())
    return found[pod].reason


def only(made: Plan) -> Skipped:
    (skipped,) = made.skipped
    return skipped


def small(number: int = 0, cpu: int = 1000, **sizes: Any) -> SchedulingPod:
    return sized(f"small{number}-0", cpu, **sizes)


BIG = grows("big-0", 1000, 3000)
WAITS: Sizes = {"wants": 3000, "reason": "Deferred", "priority": 1000}
FULL = (BIG, small(0), small(1), small(2))
"""On a node with 4 cpus: the resize needs the room of two."""


# the case of the KEP


def kep() -> list[SchedulingPod]:
    """A node with 2 cpus, where a pod wants one; three pods want two each and have a half."""
    waiting: Sizes = {"wants": 2000, "reason": "Deferred"}
    lower = [sized(f"low{number}-0", 500, **waiting) for number in range(3)]
    return [grows("big-0", 500, 1000), *lower]


def test_the_kep_needs_one_victim_where_the_scheduler_takes_three() -> None:
    big, *lower = kep()
    made = planned(big, *lower, cpu="2")
    assert len(victims(made)) == 1
    taken = alpha_victims(big, lower, (2000, 64))
    assert taken is not None
    assert len(taken) == 3


# which victims


def test_the_fewest_pods_leave_and_the_plan_says_for_whom() -> None:
    made = planned(*FULL)
    assert len(victims(made)) == 2
    (step,) = made.resizes
    assert (step.pod.name, step.generation, step.unit) == ("big-0", 2, made.moves[0].unit)
    assert {move.unit for move in made.moves} == {step.unit}
    assert step.victims == tuple(sorted(move.pod.uid for move in made.moves))
    assert (step.free_cpu, step.free_memory) == (2000, 64 * 2**30)
    assert made.moves[0].why == "team/big-0 is to grow on n: 2 victims"
    assert {move.destination for move in made.moves} == {""}
    assert made.taints == ()


def test_a_single_victim_is_taken_rather_than_two_smaller_ones() -> None:
    made = planned(BIG, small(0), small(1, 2000), cpu="4")
    assert victims(made) == ["small1-0"]


def test_of_equal_numbers_the_lowest_priority_leaves() -> None:
    made = planned(BIG, small(0, 2000, priority=10), small(1, 2000, priority=5), cpu="5")
    assert victims(made) == ["small1-0"]
    made = planned(BIG, small(0, 2000, priority=5), small(1, 2000, priority=10), cpu="5")
    assert victims(made) == ["small0-0"]


def test_of_equal_priorities_the_youngest_leaves() -> None:
    old = small(0, 2000, more={"owner": "a", "age": 9000.0})
    young = small(1, 2000, more={"owner": "b", "age": 100.0})
    assert victims(planned(BIG, old, young, cpu="5")) == ["small1-0"]


@pytest.mark.parametrize("priority", [1000, 2000])
def test_pods_of_the_same_or_a_higher_priority_stay(priority: int) -> None:
    pods = [small(number, priority=priority) for number in range(3)]
    assert reason(planned(BIG, *pods)) is Ground.NOT_ENOUGH


def test_pods_of_other_nodes_stay() -> None:
    nodes = [node("n", cpu="4"), node("m", cpu="4")]
    pods = [small(0, 3000, priority=5000), small(1, 3000, on="m")]
    assert reason(planned(BIG, *pods, *nodes)) is Ground.NOT_ENOUGH


def test_what_a_pod_wants_does_not_help_only_what_it_holds() -> None:
    """A pod that holds little and wants much is no victim: its room is not there."""
    wants = small(0, 100, wants=3000)
    made = planned(BIG, wants, small(1, 900), small(2, 2000))
    assert victims(made) == ["small2-0"]


def test_memory_is_freed_too() -> None:
    big = grows("big-0", 1000, 1000, memory=(40, 8))
    cpu, memory = small(0, 2000), small(1, 100, memory=(30, 30))
    assert victims(planned(big, cpu, memory)) == ["small1-0"]


def test_bare_pods_and_those_of_a_daemon_set_stay() -> None:
    bare = small(0, more={"owner": None})
    daemon = small(1, more={"owner": "agent", "kind": "DaemonSet"})
    made = planned(BIG, bare, daemon, small(2))
    assert reason(made) is Ground.NOT_ENOUGH


def test_a_protection_can_be_lifted() -> None:
    daemon = small(1, 2000, more={"owner": "agent", "kind": "DaemonSet"})
    on = DEFAULT_PROTECTIONS - {Protection.DAEMON_SETS}
    assert victims(planned(BIG, daemon, small(0), given=policy(protections=on))) == ["small1-0"]


def test_budgets_are_kept() -> None:
    labels = {"matchLabels": {"app": "web"}}
    pods = [small(n, more={"owner": f"o{n}", "labels": {"app": "web"}}) for n in range(3)]
    assert reason(planned(BIG, *pods, budget("b", 1, labels))) is Ground.NOT_ENOUGH
    assert len(victims(planned(BIG, *pods, budget("b", 2, labels)))) == 2


def test_another_pod_leaves_where_a_budget_is_spent() -> None:
    labels = {"matchLabels": {"app": "web"}}
    kept = [
        small(n, cpu, more={"owner": f"o{n}", "labels": {"app": "web"}})
        for n, cpu in enumerate((600, 700, 700))
    ]
    other = small(3, 2000, priority=900)
    made = planned(BIG, *kept, other, budget("b", 1, labels), cpu="5")
    assert victims(made) == ["small3-0"]


def test_limits_are_kept() -> None:
    given = Policy(profiles=policy().profiles, limits=RunLimits(total=1))
    assert reason(planned(*FULL, given=given)) is Ground.NOT_ENOUGH


def test_pods_of_a_group_leave_together_and_count_each() -> None:
    group = from_plain(
        {"metadata": {"name": "gang", "namespace": "team"}, "spec": {"disruptionMode": "PodGroup"}},
        SchedulingPodGroup,
    )
    gang = [small(n, 700, spec=GROUP, more={"owner": "gang"}) for n in range(3)]
    made = planned(BIG, *gang, small(3, 900), cpu="4", pod_groups=(group,))
    assert sorted(victims(made)) == ["small0-0", "small1-0", "small2-0"]
    made = planned(BIG, *gang, small(3, 2000), pod_groups=(group,), cpu="5100m")
    assert victims(made) == ["small3-0"]


def test_a_group_with_one_pod_of_a_high_priority_stays() -> None:
    group = from_plain(
        {"metadata": {"name": "gang", "namespace": "team"}, "spec": {"disruptionMode": "PodGroup"}},
        SchedulingPodGroup,
    )
    gang = [
        small(n, 1500, spec=GROUP, more={"owner": "gang"}, priority=priority)
        for n, priority in enumerate((0, 1000))
    ]
    assert reason(planned(BIG, *gang, pod_groups=(group,))) is Ground.NOT_ENOUGH


@pytest.mark.parametrize("moved", MoveHeldClaims)
def test_pods_that_a_held_claim_keeps_on_the_node_stay(moved: MoveHeldClaims) -> None:
    """Their replacements would have no place, even where the policy moves whole units."""
    requests = {"containers": [{"resources": {"requests": {"cpu": "1500m"}}}]}
    pods = [devices.pod(f"a-{n}", "slice", workload="a", spec=requests) for n in range(2)]
    listed = [devices.HOLD, *(devices.entry(f"a-{n}") for n in range(2))]
    seen = devices.observed(
        pods=(grows("big-0", 1000, 3000, on="node-0"), *pods),
        nodes=[devices.node("node-0", cpu="4"), devices.node("node-1", cpu="4")],
        slices=[devices.slice_("gpu-0", node="node-0"), devices.slice_("gpu-1", node="node-1")],
        claims=[devices.claim("slice", "gpu-0", listed=listed)],
        reservations=[devices.reservation()],
        pod_groups=(),
    )
    made = plan(replace(seen, now=NOW), policy(move_held_claims=moved))
    assert reason(made) is Ground.NOT_ENOUGH


# two resizes


def test_two_resizes_get_room_one_after_the_other() -> None:
    first = grows("first-0", 500, 1500)
    second = grows("second-0", 500, 1500, priority=500)
    made = planned(first, second, small(0), small(1), small(2), cpu="4")
    assert [step.pod.name for step in made.resizes] == ["first-0", "second-0"]
    assert len(victims(made)) == 2


def test_room_goes_to_the_first_even_if_nobody_leaves_for_it() -> None:
    """The first never preempts, and still takes the room that the second would get."""
    first = grows("first-0", 500, 1500, spec={"preemptionPolicy": "Never"})
    second = grows("big-0", 500, 1500, priority=500)
    made = planned(first, second, small(0), small(1), small(2, priority=800), cpu="4")
    assert sorted(victims(made)) == ["small0-0", "small1-0"]
    made = planned(first, second, small(0), small(1, priority=800), small(2, priority=800))
    assert reason(made) is Ground.NOT_ENOUGH


# when claimctl does not act


def test_the_policy_names_the_strategy_or_nothing_happens() -> None:
    made = planned(*FULL, given=Policy(profiles=(Profile(),)))
    assert (made.moves, made.skipped) == ((), ())


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ({"waits": 59.0}, Ground.RESIZE_YOUNG),
        ({"seen": 1}, Ground.RESIZE_NOT_OBSERVED),
        ({"spec": {"preemptionPolicy": "Never"}}, Ground.NEVER_PREEMPTS),
        ({"priority": 2_000_000_000}, Ground.KUBELET_PREEMPTS),
    ],
)
def test_some_resizes_wait_on(sizes: Sizes, wanted: Ground) -> None:
    given: Sizes = {**WAITS, **sizes}
    big = sized("big-0", 1000, **given)
    assert reason(planned(big, *FULL[1:])) is wanted


def test_an_infeasible_resize_is_not_looked_at() -> None:
    made = planned(grows("big-0", 1000, 3000, reason="Infeasible"), *FULL[1:])
    assert (made.moves, made.skipped) == ((), ())


def test_a_kubelet_that_reports_no_generation_is_believed() -> None:
    assert len(victims(planned(grows("big-0", 1000, 3000, seen=0), *FULL[1:]))) == 2


def test_a_resize_that_fits_needs_no_victim() -> None:
    assert reason(planned(BIG, small())) is Ground.ROOM_IS_COMING


def test_pods_that_are_being_deleted_are_waited_for() -> None:
    going = [small(n, more={"owner": "x", "deleting": True}) for n in (0, 1)]
    assert reason(planned(BIG, *going, small(2))) is Ground.ROOM_IS_COMING
    assert len(victims(planned(BIG, going[0], small(1), small(2)))) == 1


def test_a_node_that_is_not_ready_grants_nothing() -> None:
    made = planned(*FULL, node("n", cpu="4", ready=False))
    assert reason(made) is Ground.NODE_NOT_READY


def test_a_cordoned_node_grants_resizes() -> None:
    assert len(victims(planned(*FULL, node("n", cpu="4", unschedulable=True)))) == 2


def forbidding() -> SchedulingNode:
    found = {"name": "n", "uid": "uid-n", "labels": {}}
    body = {
        "metadata": found,
        "spec": {"podPreemptionPolicy": {"disableResizePreemption": ["scheduler"]}},
        "status": {
            "allocatable": {"cpu": "4", "memory": "64Gi", "pods": "100"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return from_plain(body, SchedulingNode)


NEVER_BACK = policy(StandBack.NEVER)


def test_a_node_can_forbid_it() -> None:
    assert reason(planned(*FULL, forbidding())) is Ground.NODE_FORBIDS
    assert len(victims(planned(*FULL, forbidding(), given=NEVER_BACK))) == 2


@pytest.mark.parametrize(
    ("gate", "wanted"), [(Gate.ON, Ground.SCHEDULER_PREEMPTS), (Gate.UNKNOWN, Ground.GATE_UNKNOWN)]
)
def test_the_scheduler_makes_the_room_where_its_gate_is_on(gate: Gate, wanted: Ground) -> None:
    assert reason(planned(*FULL, resize_gate=gate)) is wanted
    assert len(victims(planned(*FULL, resize_gate=gate, given=NEVER_BACK))) == 2


def test_a_policy_can_say_to_report_only() -> None:
    always = policy(StandBack.ALWAYS)
    assert reason(planned(*FULL, given=always)) is Ground.LEFT_TO_SCHEDULER


def test_a_pod_whose_requests_cannot_be_read_stops_the_whole_node() -> None:
    odd = sized("odd-0", 100)
    broken = from_plain(
        {
            "metadata": {"name": "odd", "namespace": "team", "uid": "odd"},
            "spec": {
                "nodeName": "n",
                "containers": [{"name": "c", "resources": {"requests": {"cpu": "x"}}}],
            },
            "status": {"phase": "Running"},
        },
        SchedulingPod,
    )
    assert reason(planned(*FULL, odd, broken)) is Ground.UNREADABLE


# rounds


def past(seconds: float, *gone: str, generation: int = 2, free: int = 2000) -> Record:
    made = RecordedResize(
        pod_uid="uid-team-big-0",
        generation=generation,
        since=NOW - timedelta(seconds=seconds),
        victims=tuple(f"uid-team-{name}" for name in gone),
        free_cpu=free,
        free_memory=64 * 2**30,
    )
    return Record(rounds={made.pod_uid: made})


def test_a_second_round_waits_until_the_first_has_settled() -> None:
    made = planned(*FULL, record=past(200, "small0-0"))
    assert reason(made) is Ground.ROOM_ALREADY_MADE


def test_a_round_that_was_broken_off_is_made_again_later() -> None:
    made = planned(*FULL, record=past(220, "small0-0", "gone-0"))
    assert len(victims(made)) == 2


def test_a_round_in_vain_is_not_made_again_as_long_as_nothing_has_changed() -> None:
    assert reason(planned(*FULL, record=past(9000, "gone-0", free=0))) is Ground.ROOM_ALREADY_MADE
    # a pod of 500 thousandths has gone since
    pods = [BIG, small(0), small(1), small(2, 500)]
    assert len(victims(planned(*pods, record=past(9000, "gone-0", free=0)))) == 2


def test_another_size_of_the_pod_is_a_new_round() -> None:
    assert len(victims(planned(*FULL, record=past(10, "small0-0", generation=1)))) == 2


def test_a_round_of_another_clock_far_ahead_is_old() -> None:
    made = planned(*FULL, record=past(-7200, "small0-0"))
    assert len(victims(made)) == 2
    assert reason(planned(*FULL, record=past(-30, "small0-0"))) is Ground.ROOM_ALREADY_MADE


def test_a_victim_with_a_long_grace_period_is_the_only_one() -> None:
    """600 seconds after the round it is still going."""
    going = small(0, 2000, more={"owner": "x", "deleting": True})
    made = planned(BIG, going, small(1), cpu="4", record=past(600, "small0-0"))
    assert reason(made) is Ground.ROOM_IS_COMING


# random nodes

SEEDS = range(200)


def random_node(seed: int) -> tuple[SchedulingPod, list[SchedulingPod], tuple[int, int]]:
    """A node whose pods hold at most what it has, on which one wants more than is left."""
    rng = Random(seed)
    while True:
        there = (rng.choice((4, 8, 16)) * 1000, rng.choice((8, 16, 32)))
        others = [_random_pod(rng, number, there) for number in range(rng.randint(3, 11))]
        has = (rng.randint(1, 10) * 100, rng.randint(1, 2))
        wants = (rng.randint(has[0], there[0]), rng.randint(has[1], there[1]))
        big = grows("big-0", has[0], wants[0], memory=(wants[1], has[1]))
        fits = fit([held_by(pod) for pod in (big, *others)], there)
        if fits and least_victims(big, others, there) not in (None, 0):
            return big, others, there


def _random_pod(rng: Random, number: int, there: tuple[int, int]) -> SchedulingPod:
    cpu = rng.randint(1, there[0] // 300) * 100
    memory = rng.randint(1, max(there[1] // 4, 1))
    wants = rng.choice((cpu, cpu, cpu * 2, cpu * 4, max(cpu // 2, 100)))
    actual = rng.choice((cpu, cpu, cpu, cpu + 100))
    sizes: Sizes = {
        "wants": wants,
        "actual": actual,
        "memory": (rng.choice((memory, memory * 2)), memory),
        "priority": rng.choice((0, 10, 100, 1000)),
        "more": {"owner": f"o{number}", "age": float(rng.randint(60, 90_000))},
    }
    return sized(f"pod{number}-0", cpu, **sizes)


def test_no_more_victims_than_the_scheduler_takes_and_the_fewest_of_all_sets() -> None:
    """On 200 random nodes: the fewest of all sets on every one of them."""
    least = 0
    compared = 0
    for seed in SEEDS:
        big, others, there = random_node(seed)
        made = planned(big, *others, node("n", cpu=str(there[0] // 1000), memory=f"{there[1]}Gi"))
        count = len(victims(made))
        assert count, seed
        taken = alpha_victims(big, others, there)
        if taken is not None:
            compared += 1
            assert count <= len(taken), seed
        least += count == least_victims(big, others, there)
    assert compared >= 50
    assert least == 200


def test_the_order_in_which_pods_are_listed_has_no_influence() -> None:
    for seed in range(20):
        big, others, there = random_node(seed)
        here = node("n", cpu=str(there[0] // 1000), memory=f"{there[1]}Gi")
        pods = [big, *others]
        made = planned(*pods, here)
        Random(seed).shuffle(pods)
        assert planned(*pods, here).digest == made.digest


def test_where_nothing_helps_no_set_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 sets of a hundred pods would take a second for each pod that waits."""

    def looks(*_: Any) -> None:
        raise AssertionError("a set was looked at")

    monkeypatch.setattr("claimctl_reschedule.plan.strategies.resizes.fewest", looks)
    pods = [small(number, 10) for number in range(100)]
    filler = small(200, 2000, priority=5000)
    assert reason(planned(BIG, *pods, filler)) is Ground.NOT_ENOUGH
