"""Whole plans: order, determinism, memory, and what holds in any cluster."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from msgspec.structs import replace as changed

from claimctl.wire.base import decode, encode, from_plain
from claimctl.wire.device_classes import DeviceClass
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import PODS
from claimctl.wire.unreadable import Unreadable
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.planning import NOT_LISTED, UnknownPriorityClass, plan, plan_with
from claimctl_reschedule.plan.policy import (
    Evictor,
    LowNodeUtilization,
    Policy,
    PriorityThreshold,
    Profile,
    RemoveDuplicates,
    RunLimits,
)
from claimctl_reschedule.plan.spread import groups_of
from claimctl_reschedule.plan.world import World
from claimctl_reschedule.shapes.records import Record, RecordedMove, RecordedWorkload
from claimctl_reschedule.shapes.scheduling import PriorityClass, SchedulingNode, SchedulingPod
from claimctl_reschedule_tests.support.no_devices import NoDevices, PodsAlone
from claimctl_reschedule_tests.support.scheduling import (
    NOW,
    budget,
    moves,
    namespace,
    node,
    observed,
    pod,
    reasons,
)

DUPLICATES = Policy(profiles=(Profile(name="main", balance=(RemoveDuplicates(),)),))
LOW = {"cpu": 30.0, "memory": 100.0, "pods": 50.0}
HIGH = {"cpu": 60.0, "memory": 100.0, "pods": 80.0}
BOTH = Policy(
    profiles=(
        Profile(
            balance=(RemoveDuplicates(), LowNodeUtilization(thresholds=LOW, target_thresholds=HIGH))
        ),
    )
)
Objects = list[SchedulingNode | SchedulingPod]
CROWDED: Objects = [*(node(name) for name in "abc"), *(pod(f"p{n}", "a") for n in range(6))]


def settled(before: Observed, made: Plan) -> Observed:
    """The cluster after the plan, with each replacement where it was expected."""
    where = {move.pod.uid: move.destination for move in made.moves}

    def moved(each: SchedulingPod) -> SchedulingPod:
        node = where.get(each.metadata.uid)
        return each if node is None else changed(each, spec=changed(each.spec, node_name=node))

    return replace(before, pods=tuple(moved(each) for each in before.pods))


def test_a_limit_holds_over_all_strategies() -> None:
    profiles = (Profile(name="one", balance=(RemoveDuplicates(),)),) * 2
    limited = Policy(profiles=profiles, limits=RunLimits(total=3))
    assert len(plan(observed(*CROWDED), limited).moves) == 3


def test_owners_count_whose_kind_replaces_its_pods() -> None:
    objects: Objects = [
        node("a"),
        node("b"),
        *(pod(f"p{n}", "a", kind="CloneSet") for n in range(4)),
    ]
    told = frozenset({("apps", "CloneSet")})
    assert set(reasons(plan(observed(*objects), DUPLICATES)).values()) == {"NoOwnerThatReplacesIt"}
    assert len(plan(observed(*objects, replacing_kinds=told), DUPLICATES).moves) == 1
    unknown = plan(observed(*objects, replacing_kinds=None), DUPLICATES)
    assert (unknown.moves, [note.text for note in unknown.notes]) == ((), [NOT_LISTED])


def test_deschedule_of_all_profiles_comes_before_balance() -> None:
    first = Profile(name="first", balance=(RemoveDuplicates(),))
    second = Profile(name="second", deschedule=(RemoveDuplicates(),))
    made = plan(observed(*CROWDED), Policy(profiles=(first, second)))
    assert {move.profile for move in made.moves} == {"second"}


def test_a_strategy_sees_what_the_one_before_it_chose() -> None:
    """10 pods and 1 free place: 1 moves."""
    pods = [pod(f"p{number}", "a", cpu="1") for number in range(10)]
    made = plan(observed(node("a", cpu="10"), node("b", cpu="1"), *pods), DUPLICATES)
    assert len(made.moves) == 1
    assert len(made.skipped) == 9


def test_the_balance_strategies_go_on_until_none_finds_a_move() -> None:
    """The second owner's pods leave the room that the first one's need."""
    objects: Objects = [
        node("a", cpu="4"),
        node("b", cpu="4"),
        *(pod(f"x{n}", "a", "x", cpu="2") for n in range(2)),
        *(pod(f"y{n}", "b", "y", cpu="2") for n in range(2)),
    ]
    assert moves(plan(observed(*objects), DUPLICATES)) == {}
    made = plan(observed(*objects, node("c", cpu="2")), DUPLICATES)
    assert set(moves(made)) == {"x0", "y0"}


def pair(name: str, kind: str, namespace: str = "team", **spec: Any) -> Objects:
    """Two pods of one owner on node a."""
    return [
        pod(f"{name}{n}", "a", name, cpu="4", kind=kind, namespace=namespace, spec=spec)
        for n in range(2)
    ]


def waiting(*objects: SchedulingNode | SchedulingPod) -> dict[str, bool]:
    """Which moves wait for those before them, by the first letter of the pod."""
    return {move.pod.name[0]: move.waits for move in plan(observed(*objects), DUPLICATES).moves}


def test_a_move_that_late_replacements_do_not_touch_is_made_beside_them() -> None:
    ways = {"a": {"s": "", "r": ""}, "b": {"s": ""}, "c": {"r": ""}}
    nodes = [node(name, cpu="32", labels=labels) for name, labels in ways.items()]
    late = pair("s", "StatefulSet", "first", nodeSelector={"s": ""})
    assert waiting(*nodes, *late, *pair("r", "ReplicaSet", nodeSelector={"r": ""})) == {
        "s": False,
        "r": False,
    }


@pytest.mark.parametrize("kind", ["StatefulSet", "Job"])
def test_a_move_that_goes_elsewhere_without_a_late_replacement_waits_for_it(kind: str) -> None:
    """Without the first replacement on c, c is better than b for the second one, too."""
    nodes = [node("a", cpu="32"), node("b", cpu="12"), node("c", cpu="14")]
    objects = [*nodes, *pair("s", kind, "first"), *pair("r", "ReplicaSet")]
    made = plan(observed(*objects), DUPLICATES)
    assert moves(made) == {"s0": ("a", "c"), "r0": ("a", "b")}
    assert waiting(*objects) == {"s": False, "r": True}


def test_thresholds_by_the_name_of_a_class() -> None:
    evictor = Evictor(priority_threshold=PriorityThreshold(name="high"))
    policy = Policy(profiles=(Profile(evictor=evictor, balance=(RemoveDuplicates(),)),))
    high = from_plain({"metadata": {"name": "high"}, "value": 10}, PriorityClass)
    pods = [pod(f"p{number}", "a", priority=10) for number in range(2)]
    seen = observed(node("a"), node("b"), *pods, priority_classes=(high,))
    assert set(reasons(plan(seen, policy)).values()) == {"PriorityThreshold"}
    with pytest.raises(UnknownPriorityClass, match=r"priorityThreshold.name: .* high"):
        plan(replace(seen, priority_classes=()), policy)


def remembering(strategy: str, ago: timedelta, outcome: str = "UnderWay", **nodes: str) -> Record:
    past = RecordedMove(strategy=strategy, at=NOW - ago, outcome=outcome, **nodes)
    owner = "uid-ReplicaSet-web"
    return Record(workloads={owner: RecordedWorkload(uid=owner, moves=(past,))})


def test_the_record_makes_an_owner_rest() -> None:
    record = remembering("RemoveDuplicates", timedelta(minutes=1), source="a", predicted="b")
    made = plan(observed(*CROWDED, record=record), DUPLICATES)
    assert moves(made) == {}
    assert set(reasons(made).values()) == {"Cooldown"}


def test_the_record_forbids_a_move_back() -> None:
    record = remembering("Other", timedelta(hours=1), source="b", landed="a", outcome="Landed")
    objects: Objects = [node("a"), node("b"), pod("p0", "a"), pod("p1", "a")]
    made = plan(observed(*objects, record=record), DUPLICATES)
    assert moves(made) == {}
    assert set(reasons(made).values()) == {"WouldPingPong"}
    better = node("c", cpu="64", memory="256Gi")
    made = plan(observed(*objects, better, record=record), DUPLICATES)
    assert moves(made) == {"p0": ("a", "c")}


def test_the_workload_above_the_owner_is_known() -> None:
    above = {"uid": "deployment", "kind": "Deployment", "name": "web", "controller": True}
    metadata = {"uid": "uid-ReplicaSet-web", "ownerReferences": [above]}
    owner = from_plain({"metadata": metadata}, ObjectHeader)
    made = plan(observed(*CROWDED, owners=(owner,)), DUPLICATES)
    assert {move.owner.workload_uid for move in made.moves if move.owner} == {"deployment"}


@pytest.mark.parametrize("resource", ["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu"])
def test_a_resource_that_a_class_provides_need_not_be_on_a_node(resource: str) -> None:
    spec = {"extendedResourceName": "example.com/gpu"}
    gpus = from_plain({"metadata": {"name": "gpu"}, "spec": spec}, DeviceClass)
    pods = [pod(f"p{number}", "a", requests={resource: "1"}) for number in range(2)]
    seen = observed(node("a"), node("b"), *pods)
    known = replace(seen, device_classes=(gpus,))
    assert moves(plan_with(seen, DUPLICATES, NoDevices(), PodsAlone())) == {}
    assert len(moves(plan_with(known, DUPLICATES, NoDevices(), PodsAlone()))) == 1


def test_pods_with_claims_that_were_not_read_stay() -> None:
    claim = {"resourceClaims": [{"name": "g", "resourceClaimName": "gpu"}]}
    pods = [pod(f"p{number}", "a", spec=claim) for number in range(2)]
    assert moves(plan(observed(node("a"), node("b"), *pods), DUPLICATES)) == {}


def test_a_node_with_a_pod_that_cannot_be_read_gets_no_pods() -> None:
    raw = b'{"spec": {"nodeName": "b", "containers": 7}}'
    broken = Unreadable(PODS, "no list", namespace="team", name="x", uid="u", raw=raw)
    made = plan(observed(*CROWDED, unreadable=(broken,)), DUPLICATES)
    assert {destination for _, destination in moves(made).values()} == {"c"}


def test_a_pod_whose_node_cannot_be_read_either_closes_none() -> None:
    broken = Unreadable(PODS, "no JSON", raw=b"{")
    made = plan(observed(*CROWDED, unreadable=(broken,)), DUPLICATES)
    assert {destination for _, destination in moves(made).values()} == {"b", "c"}


def test_node_fit_cannot_be_switched_off() -> None:
    evictor = Evictor(node_fit=False)
    policy = Policy(profiles=(Profile(name="main", evictor=evictor),))
    (note,) = plan(observed(*CROWDED), policy).notes
    assert note.text.startswith("nodeFit: false has no effect")


def test_the_plan_reads_back_as_it_was_written() -> None:
    made = plan(observed(*CROWDED), DUPLICATES)
    again = decode(encode(made), Plan)
    assert again == made
    assert again.computed_digest() == made.digest
    assert (made.cluster_uid, made.made_at) == ("cluster", NOW)


# what holds in any cluster


def random_cluster(seed: int) -> Observed:
    dice = random.Random(seed)
    zones = ("x", "y", "z")[: dice.randint(1, 3)]
    nodes = [_random_node(dice, f"n{number}", zones) for number in range(dice.randint(2, 7))]
    pods = [
        each
        for owner in range(dice.randint(1, 6))
        for each in _random_owner(dice, f"o{owner}", [one.metadata.name for one in nodes])
    ]
    dice.shuffle(pods)
    budgets = [
        budget(f"b{owner}", dice.randint(0, 3), {"matchLabels": {"app": f"o{owner}"}})
        for owner in range(6)
        if dice.random() < 0.3
    ]
    return observed(*nodes, *pods, *budgets, namespaces=(namespace("team"),))


def _random_node(dice: random.Random, name: str, zones: tuple[str, ...]) -> SchedulingNode:
    return node(
        name,
        cpu=str(dice.randint(2, 8)),
        pods=dice.randint(4, 20),
        labels={"zone": dice.choice(zones)},
        unschedulable=dice.random() < 0.1,
        ready=dice.random() < 0.95,
        taints=(("k", dice.choice(("NoSchedule", "PreferNoSchedule"))),) * (dice.random() < 0.15),
    )


def _random_owner(dice: random.Random, owner: str, nodes: list[str]) -> list[SchedulingPod]:
    spec = _random_spec(dice, owner)
    cpu = dice.choice((None, "100m", "500m", "1", "2"))
    kind = dice.choice(("ReplicaSet", "ReplicaSet", "StatefulSet", "Job", "DaemonSet"))
    favourite = dice.choice(nodes)
    return [
        pod(
            f"{owner}-{number}",
            favourite if dice.random() < 0.6 else dice.choice(nodes),
            owner,
            cpu,
            kind=kind,
            spec=spec,
            priority=dice.choice((0, 0, 5, 2_000_000_000)),
            qos=dice.choice(("BestEffort", "Burstable", "Guaranteed")),
            ready=dice.random() < 0.9,
            age=float(dice.randint(1, 10_000)),
            deleting=dice.random() < 0.05,
            phase=dice.choice(("Running",) * 9 + ("Succeeded",)),
        )
        for number in range(dice.randint(1, 9))
    ]


def _random_spec(dice: random.Random, owner: str) -> dict[str, Any]:
    meant = {"labelSelector": {"matchLabels": {"app": owner}}}
    key = dice.choice(("zone", "kubernetes.io/hostname"))
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    choices: list[dict[str, Any]] = [
        {},
        {},
        {"nodeSelector": {"zone": "x"}},
        {"tolerations": [{"operator": "Exists"}]},
        {"topologySpreadConstraints": [{"topologyKey": key, **meant}]},
        {"affinity": {"podAntiAffinity": {required: [{"topologyKey": key, **meant}]}}},
        {"affinity": {"podAffinity": {required: [{"topologyKey": key, **meant}]}}},
    ]
    return dice.choice(choices)


SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_any_cluster(seed: int) -> None:
    seen = random_cluster(seed)
    dice = random.Random(seed)
    limits = RunLimits(per_node=dice.choice((None, 2)), total=dice.choice((None, None, 4)))
    policy = replace(BOTH, limits=limits)
    made = plan(seen, policy)
    assert_same_in_any_order(seen, policy, made, dice)
    assert_limits(seen, limits, made)
    assert_one_reason(made)
    assert_gain(seen, made)
    assert_room(made, settled(seen, made))


def assert_same_in_any_order(
    seen: Observed, policy: Policy, made: Plan, dice: random.Random
) -> None:
    shuffled = replace(
        seen,
        pods=tuple(dice.sample(seen.pods, len(seen.pods))),
        nodes=tuple(dice.sample(seen.nodes, len(seen.nodes))),
        budgets=tuple(dice.sample(seen.budgets, len(seen.budgets))),
    )
    assert plan(shuffled, policy) == made


def assert_limits(seen: Observed, limits: RunLimits, made: Plan) -> None:
    assert limits.total is None or len(made.moves) <= limits.total
    from_nodes = Counter(move.pod.node for move in made.moves)
    assert limits.per_node is None or max(from_nodes.values(), default=0) <= limits.per_node
    for each in seen.budgets:
        wanted = (each.spec.selector.match_labels or {}) if each.spec.selector else {}
        charged = [
            move
            for move in made.moves
            if dict(move.facts.labels).get("app") == wanted["app"] and move.facts.ready
        ]
        assert len(charged) <= each.status.disruptions_allowed


def assert_one_reason(made: Plan) -> None:
    moved = [move.pod.uid for move in made.moves]
    skipped = [each.pod.uid for each in made.skipped]
    assert len({*moved, *skipped}) == len(moved) + len(skipped)


def overload(seen: Observed) -> tuple[int, float]:
    """The potential: how uneven duplicates are, then what nodes have above their targets."""
    world = World(seen.nodes, seen.pods, {})
    squares = 0
    for group in groups_of(world).values():
        squares += sum(count**2 for count in Counter(each.node for each in group).values())
    above = 0.0
    for each in world.nodes.values():
        for resource, percent in HIGH.items():
            capacity = each.allocatable[resource]
            used = each.used.get(resource, 0) * 100 / capacity
            above += max(0.0, used - percent) ** 2
    return squares, above


def assert_gain(seen: Observed, made: Plan) -> None:
    """Every single move lowers the potential."""
    done: list[Any] = []
    before = overload(seen)
    for move in made.moves:
        done.append(move)
        after = overload(settled(seen, changed(made, moves=tuple(done))))
        assert after < before, move
        before = after


def assert_room(made: Plan, after: Observed) -> None:
    world = World(after.nodes, after.pods, {})
    for move in made.moves:
        there = world.nodes[move.destination]
        for resource in ("pods", *(name for name, _ in move.facts.requests)):
            assert there.used[resource] <= there.allocatable[resource], (move, resource)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_second_run_moves_nothing(seed: int) -> None:
    seen = replace(random_cluster(seed), budgets=())
    made = plan(seen, BOTH)
    assert moves(plan(settled(seen, made), BOTH)) == {}


def test_the_random_clusters_are_worth_it() -> None:
    """They have moves, and most of the reasons."""
    made = [plan(random_cluster(seed), BOTH) for seed in SEEDS]
    assert sum(len(each.moves) for each in made) > 60
    assert sum(bool(each.moves) for each in made) > 20
    found = {str(each.reason) for one in made for each in one.skipped}
    assert {
        "CriticalPod",
        "DaemonSetPod",
        "DisruptionBudget",
        "NoBetterNode",
        "NoOtherNode",
        "WouldReturn",
    } <= found
