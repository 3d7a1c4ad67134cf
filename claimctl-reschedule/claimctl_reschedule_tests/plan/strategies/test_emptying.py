"""HighNodeUtilization: which nodes are emptied, whole or not at all, and what is closed for it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest
from msgspec.structs import replace as changed

from claimctl.label_selectors import LabelSelector
from claimctl.wire.base import from_plain
from claimctl_reschedule.plan.observed import ActingController, Observed
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.planning import plan
from claimctl_reschedule.plan.policy import (
    Evictor,
    HighNodeUtilization,
    MoveHeldClaims,
    Namespaces,
    Policy,
    Profile,
    RemoveDuplicates,
    RunLimits,
)
from claimctl_reschedule.plan.strategies import emptying
from claimctl_reschedule.shapes.devices import ClaimTemplate, SchedulingClaim
from claimctl_reschedule.shapes.records import Record, RecordedMove, RecordedWorkload
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support import devices
from claimctl_reschedule_tests.support.scheduling import (
    NOW,
    budget,
    moves,
    node,
    observed,
    owner_of,
    pod,
    reasons,
)

GPU = f"deviceclass.resource.kubernetes.io/{devices.CLASS}"
WHOLE = Evictor(move_held_claims=MoveHeldClaims.WHOLE_UNIT)
Objects = list[Any]


def policy(evictor: Evictor = WHOLE, **args: Any) -> Policy:
    wanted = HighNodeUtilization(**({"thresholds": {"cpu": 30.0}} | args))
    return Policy(profiles=(Profile(evictor=evictor, balance=(wanted,)),))


def planned(*objects: Any, evictor: Evictor = WHOLE, **args: Any) -> Plan:
    return plan(observed(*objects), policy(evictor, **args))


def emptied(made: Plan) -> list[str]:
    """The nodes in their order."""
    return list(dict.fromkeys(move.pod.node for move in made.moves))


def closed(made: Plan) -> dict[str, str]:
    """The unit for which each node is closed; '' if it is only kept empty."""
    return {taint.node: taint.unit for taint in made.taints}


def some(where: str, count: int, cpu: str = "1", **parts: Any) -> Objects:
    """Pods of different owners."""
    return [pod(f"{where}{n}", where, f"{where}{n}", cpu, **parts) for n in range(count)]


FULL = [node("a"), node("b"), *some("a", 1), *some("b", 4)]
"""Of 8 cpu each, one is used on a, and four on b."""


def test_the_pods_go_to_the_node_that_stays_in_use() -> None:
    made = planned(*FULL, node("empty"))
    assert moves(made) == {"a0": ("a", "b")}
    assert closed(made) == {"a": "node a", "empty": ""}
    assert made.moves[0].why == "a is under-used, and is emptied"


def test_only_empty_nodes_that_fit_are_closed() -> None:
    full = [node("small", cpu="500m"), node("tainted", taints=(("x", "NoSchedule"),))]
    assert closed(planned(*FULL, *full)) == {"a": "node a"}


BLOCKING: dict[str, tuple[Any, str]] = {
    "protected": (
        pod("x", "a", spec={"volumes": [{"name": "s", "emptyDir": {}}]}),
        "LocalStorage",
    ),
    "of nobody": (pod("x", "a", owner=None), "NoOwnerThatReplacesIt"),
    "no room elsewhere": (pod("x", "a", cpu="5", requests={"memory": "30Gi"}), "NoBetterNode"),
    "only this node": (
        pod("x", "a", spec={"nodeSelector": {"kubernetes.io/hostname": "a"}}),
        "NoBetterNode",
    ),
    "excluded": (pod("x", "a", namespace="other"), "NamespaceExcluded"),
    "tolerates the taint": (
        pod("x", "a", spec={"tolerations": [{"operator": "Exists"}]}),
        "WouldReturn",
    ),
}


@pytest.mark.parametrize("case", BLOCKING)
def test_a_pod_that_stays_keeps_all_of_its_node(case: str) -> None:
    blocking, reason = BLOCKING[case]
    thresholds = {"cpu": 90.0}
    names = Namespaces(exclude=("other",))
    made = planned(*FULL, blocking, thresholds=thresholds, evictable_namespaces=names)
    assert "a" not in emptied(made)
    assert reasons(made)["x"] == reason
    assert reasons(made)["a0"] in ("UnitNotMovable", reason)


def test_pods_of_the_node_itself_do_not_count() -> None:
    agent = pod("agent", "a", "agent", kind="DaemonSet")
    mirror = pod("mirror", "a", None, annotations={"kubernetes.io/config.mirror": "x"})
    static = changed(mirror, metadata=changed(mirror.metadata, annotations={}, name="static"))
    owner = from_plain(owner_of("a", "Node"), type(agent.metadata.owner_references[0]))
    static = changed(
        static, metadata=changed(static.metadata, owner_references=(owner,), uid="static")
    )
    going = pod("going", "a", deleting=True)
    assert moves(planned(*FULL, agent, mirror, static, going)) == {"a0": ("a", "b")}


def test_the_node_that_costs_least_comes_first() -> None:
    nodes = [node("a"), node("b"), node("c"), node("d")]
    pods = [*some("a", 2), *some("b", 1, priority=5), *some("c", 1), *some("d", 4)]
    assert emptied(planned(*nodes, *pods)) == ["c", "a", "b"]
    one = policy()
    limited = replace(one, limits=RunLimits(total=1))
    assert emptied(plan(observed(*nodes, *pods), limited)) == ["c"]


def test_all_nodes_under_used() -> None:
    """Unlike the descheduler (#725): those that cost most stay in use."""
    pods = [*some("a", 1), *some("b", 2), *some("c", 1)]
    made = planned(node("a"), node("b"), node("c"), *pods, thresholds={"cpu": 50.0})
    assert moves(made) == {"a0": ("a", "b"), "c0": ("c", "b")}


def test_number_of_nodes() -> None:
    made = planned(*FULL, number_of_nodes=1)
    notes = [note.text for note in made.notes]
    assert (moves(made), notes) == (
        {},
        ["numberOfNodes is 1: 1 under-used node is not enough to act"],
    )
    assert planned(*FULL, node("c"), number_of_nodes=1).moves
    assert [note.text for note in planned(node("b"), *some("b", 4)).notes] == [
        "no node is under-used"
    ]
    assert len(planned(*FULL, thresholds={}).notes) == 1


def test_a_pod_elsewhere_may_decide_where_one_fits() -> None:
    """With others of its owner beside it: then nothing is certain."""
    zone = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": [zone]}
    spread = {**zone, "maxSkew": 3, "whenUnsatisfiable": "DoNotSchedule"}
    specs: list[dict[str, Any]] = [
        {"affinity": {"podAntiAffinity": rule}},
        {"affinity": {"podAffinity": rule}},
        {"topologySpreadConstraints": [spread]},
    ]
    for spec in specs:
        nodes = [node(name, labels={"zone": name}) for name in "ab"]
        web = pod("web", "a", "web", labels={"app": "web"}, spec=spec)
        made = planned(*nodes, web, *some("a", 1), *some("b", 4))
        assert (moves(made), reasons(made)["web"]) == ({}, "FitUnknown")
    by_host = {"topologyKey": "kubernetes.io/hostname", **{"labelSelector": zone["labelSelector"]}}
    apart = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [by_host]}}
    web = pod("web", "a", "web", labels={"app": "web"}, spec={"affinity": apart})
    assert planned(node("a"), node("b"), web, *some("a", 1), *some("b", 4)).moves
    soft = {**spread, "whenUnsatisfiable": "ScheduleAnyway"}
    web = pod("web", "a", "web", spec={"topologySpreadConstraints": [soft]})
    assert planned(node("a"), node("b"), web, *some("a", 1), *some("b", 4)).moves


def test_room_is_certain_wherever_the_others_go() -> None:
    """The small pod may take the only place for the large one."""
    nodes = [node("a", cpu="20"), node("b"), node("c")]
    pods = [*some("b", 4), *some("c", 6), pod("large", "a", "l", "4"), pod("small", "a", "s", "2")]
    made = planned(*nodes, *pods, thresholds={"cpu": 40.0})
    assert (moves(made), reasons(made)["large"]) == ({}, "NoBetterNode")
    more = node("d"), *some("d", 4)
    assert emptied(planned(*nodes, *pods, *more, thresholds={"cpu": 40.0})) == ["a"]


def test_the_nodes_that_are_looked_at_are_those_of_the_selector() -> None:
    """No pod may go to an empty node that claimctl must not close."""
    ours = LabelSelector(match_labels={"pool": "ours"})
    own = [node(name, labels={"pool": "ours"}) for name in "ab"]
    pods = [*some("a", 1), *some("b", 4), *some("c", 1)]
    wanted = replace(policy(), node_selector=ours)
    assert emptied(plan(observed(*own, node("c"), *pods), wanted)) == ["a"]
    made = plan(observed(*own, node("c"), *pods[:-1]), wanted)
    assert reasons(made) == {"a0": "NoBetterNode"}


def test_budgets_limits_and_rest() -> None:
    pods = [pod(f"w{n}", where, "web", "1") for n, where in enumerate("ac")]
    nodes = [node("a"), node("b"), node("c")]
    known = budget("web", 1, {"matchLabels": {"app": "web"}})
    made = planned(*nodes, *pods, *some("b", 4), known)
    assert (emptied(made), reasons(made)) == (["a"], {"w1": "DisruptionBudget"})
    past = RecordedMove(strategy="HighNodeUtilization", at=NOW, source="x", outcome="Landed")
    memory = RecordedWorkload(uid="uid-ReplicaSet-web", moves=(past,))
    resting = Record(workloads={memory.uid: memory})
    made = plan(observed(*nodes, *pods, *some("b", 4), record=resting), policy())
    assert reasons(made) == {"w0": "Cooldown", "w1": "Cooldown"}


def test_remove_duplicates_gets_no_more_to_do() -> None:
    pods = [pod("w0", "a", "web", "1"), pod("w1", "b", "web", "4")]
    one = HighNodeUtilization(thresholds={"cpu": 30.0})
    for balance, expected in (((one,), ["a"]), ((RemoveDuplicates(), one), [])):
        wanted = Policy(profiles=(Profile(balance=balance),))
        assert emptied(plan(observed(node("a"), node("b"), *pods), wanted)) == expected


def test_so_many_nodes_in_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emptying, "MOST_EMPTIED", 1)
    nodes, pods = [node("a"), node("b"), node("c")], [*some("a", 1), *some("c", 1), *some("b", 4)]
    assert len(emptied(planned(*nodes, *pods))) == 1
    monkeypatch.setattr(emptying, "MOST_CLOSED", 1)
    assert reasons(planned(*nodes, *pods, node("d"), node("e"))) == {
        "a0": "NoBetterNode",
        "c0": "NoBetterNode",
    }


def test_many_pods_on_a_node() -> None:
    nodes = [node("a"), node("b"), node("c", cpu="16"), node("d")]
    pods = [*some("a", 9, "100m"), *some("b", 7, "900m"), *some("d", 7, "900m")]
    assert emptied(planned(*nodes[:2], nodes[3], *pods)) == ["a"]
    assert emptied(planned(*nodes[:2], *pods[:-7])) == ["a"]
    assert emptied(planned(nodes[0], nodes[1], *some("a", 9, "200m"), *pods[9:16])) == []


def test_a_unit_that_is_on_two_nodes_stays() -> None:
    group = devices.pod_group(disruptionMode="PodGroup")
    group = changed(group, metadata=changed(group.metadata, namespace="team"))
    spec = {"schedulingGroup": {"podGroupName": "g"}}
    pods = [pod("g0", "a", "g", "1", spec=spec), pod("g1", "b", "g", "4", spec=spec)]
    seen = observed(node("a"), node("b"), *pods, pod_groups=(group,))
    assert reasons(plan(seen, policy())) == {"g0": "UnitNotMovable"}


# devices


def on(where: str, *names: str, **parts: Any) -> tuple[Objects, list[SchedulingClaim]]:
    """Pods that have a device of the node each."""
    pods = [pod(n, where, parts.get("owner", n), "1", spec=OWN, status=given(n)) for n in names]
    return pods, [claim(p.metadata.name, where, f"d{i}", (p,), p) for i, p in enumerate(pods)]


OWN: dict[str, Any] = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}
REQUEST = {"requests": [devices.request()]}
TEMPLATE = from_plain(
    {"metadata": {"namespace": "team", "name": "t"}, "spec": {"spec": {"devices": REQUEST}}},
    ClaimTemplate,
)


def given(name: str) -> dict[str, Any]:
    return {"resourceClaimStatuses": [{"name": "g", "resourceClaimName": f"{name}-g"}]}


def claim(
    name: str,
    where: str,
    device: str,
    users: tuple[SchedulingPod, ...],
    owner: SchedulingPod | None = None,
) -> SchedulingClaim:
    meta: dict[str, Any] = {"namespace": "team", "name": name if owner is None else f"{name}-g"}
    meta["uid"] = f"claim-{name}"
    if owner is not None:
        meta["ownerReferences"] = [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": owner.metadata.name,
                "uid": owner.metadata.uid,
                "controller": True,
            }
        ]
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [where]}]}]
    result = {"request": "gpu", "driver": devices.DRIVER, "pool": where, "device": device}
    consumers = [
        {"resource": "pods", "name": user.metadata.name, "uid": user.metadata.uid} for user in users
    ]
    return from_plain(
        {
            "metadata": meta,
            "spec": {"devices": REQUEST},
            "status": {
                "allocation": {
                    "devices": {"results": [result]},
                    "nodeSelector": {"nodeSelectorTerms": terms},
                },
                "reservedFor": consumers,
            },
        },
        SchedulingClaim,
    )


def with_devices(
    count: dict[str, int], *groups: tuple[Objects, list[SchedulingClaim]], more: Sequence[Any] = ()
) -> Observed:
    slices = [
        devices.slice_(*(f"d{each}" for each in range(number)), node=name)
        for name, number in count.items()
        if number
    ]
    return observed(
        *(node(name, cpu="64") for name in count),
        *(each for pods, _ in groups for each in pods),
        *more,
        slices=tuple(slices),
        claims=tuple(each for _, claims in groups for each in claims),
        claim_templates=(TEMPLATE,),
        device_classes=(devices.device_class(),),
        controller=ActingController(since=NOW.replace(year=2025)),
    )


def test_a_node_without_what_the_thresholds_name_is_not_under_used() -> None:
    """As it is with the descheduler (#1634, #1635)."""
    groups = on("a", "x"), on("b", "y", "z", "u")
    made = plan(
        with_devices({"a": 4, "b": 4, "plain": 0}, *groups, more=some("plain", 1)),
        policy(thresholds={GPU: 50.0}),
    )
    assert (moves(made), reasons(made)) == ({"x": ("a", "b")}, {})


def test_no_device_is_free() -> None:
    groups = on("a", "x"), on("b", "y", "z")
    made = plan(with_devices({"a": 4, "b": 2}, *groups), policy(thresholds={GPU: 50.0}))
    assert (moves(made), reasons(made)) == ({}, {"x": "NoBetterNode"})


def test_devices_that_are_free_on_several_nodes() -> None:
    """Three pods, two free devices on one node and one on another: each order fills them."""
    groups = on("a", "x", "y", "z"), on("b", "p", "q"), on("c", "r", "s", "t")
    made = plan(with_devices({"a": 8, "b": 4, "c": 4}, *groups), policy(thresholds={GPU: 40.0}))
    assert emptied(made) == ["a"]


def test_other_pods_stay_with_the_mode_for_it() -> None:
    bare = pod("bare", "a", None)
    groups = on("a", "x"), on("b", "y", "z", "u")
    seen = with_devices({"a": 4, "b": 4}, *groups, more=[bare])
    assert plan(seen, policy(thresholds={GPU: 50.0})).moves == ()
    mode = ("OnlyThresholdingResources",)
    assert moves(plan(seen, policy(thresholds={GPU: 50.0}, eviction_modes=mode))) == {
        "x": ("a", "b")
    }


def shared(where: str, *names: str) -> tuple[Objects, list[SchedulingClaim]]:
    """Pods that share a claim with a device of the node."""
    spec = {"resourceClaims": [{"name": "g", "resourceClaimName": "slice"}]}
    pods = [pod(name, where, "train", "20", spec=spec) for name in names]
    return pods, [claim("slice", where, "d3", tuple(pods))]


def test_pods_that_share_a_claim_go_together_and_the_others_one_by_one() -> None:
    groups = shared("a", "t0", "t1"), on("a", "x"), on("b", "y", "z", "u")
    made = plan(with_devices({"a": 4, "b": 8}, *groups), policy(thresholds={GPU: 75.0}))
    assert moves(made) == dict.fromkeys(("t0", "t1", "x"), ("a", "b"))
    assert [(move.unit, move.paced) for move in made.moves] == [
        ("node a", False),
        ("node a", False),
        ("node a", True),
    ]
    never = policy(Evictor(), thresholds={GPU: 75.0})
    kept = plan(with_devices({"a": 4, "b": 8}, *groups), never)
    assert "a" not in emptied(kept)
    assert reasons(kept)["t0"] == "PinnedByClaim"


def test_pods_that_share_a_claim_need_room_wherever_the_first_goes() -> None:
    """Node c has a device, and room for one of the two."""
    groups = shared("a", "t0", "t1"), on("b", "y", "z"), on("c", "u", "v")
    filler = pod("filler", "c", "filler", "40")
    seen = with_devices({"a": 4, "b": 4, "c": 4}, *groups, more=[filler])
    made = plan(seen, policy(thresholds={GPU: 50.0}))
    assert (moves(made), reasons(made)["t0"]) == ({}, "NoBetterNode")


# random clusters


def random_cluster(seed: int) -> Observed:
    """Up to six nodes of four devices, and pods with one to three of them."""
    dice = random.Random(seed)
    names = [f"n{number}" for number in range(dice.randint(3, 6))]
    groups = []
    for name in names:
        mine = [f"{name}-{number}" for number in range(dice.choice((0, 1, 1, 2, 2, 3, 4)))]
        groups.append(on(name, *mine))
    return with_devices(dict.fromkeys(names, 4), *groups)


def after(seen: Observed, made: Plan) -> Observed:
    """The cluster with each replacement on its expected node, with a device of that node."""
    where = {move.pod.uid: move.destination for move in made.moves}
    used: Counter[str] = Counter()
    groups: dict[str, list[str]] = {each.metadata.name: [] for each in seen.nodes}
    for each in seen.pods:
        name = where.get(each.metadata.uid, each.spec.node_name)
        used[name] += 1
        groups[name].append(each.metadata.name)
    assert max(used.values(), default=0) <= 4
    return with_devices(dict.fromkeys(groups, 4), *(on(name, *p) for name, p in groups.items()))


def most_emptied(seen: Observed, share: int) -> int:
    """How many under-used nodes can be emptied at most: all sets of them are tried."""
    used = Counter(each.spec.node_name for each in seen.pods)
    under = [name for name, count in used.items() if count < share]
    for number in range(len(under), 0, -1):
        for chosen in combinations(under, number):
            room = sum(4 - count for name, count in used.items() if name not in chosen)
            if sum(used[name] for name in chosen) <= room:
                return number
    return 0


@pytest.mark.parametrize("seed", range(60))
def test_as_many_nodes_as_brute_force_finds(seed: int) -> None:
    seen = random_cluster(seed)
    made = plan(seen, policy(thresholds={GPU: 75.0}))
    best = most_emptied(seen, 3)
    assert best - 1 <= len(emptied(made)) <= best
    left = {each.spec.node_name for each in after(seen, made).pods}
    assert left.isdisjoint(emptied(made))
    assert all(move.destination in {p.spec.node_name for p in seen.pods} for move in made.moves)
    assert plan(after(seen, made), policy(thresholds={GPU: 75.0})).moves == ()


def test_the_random_clusters_are_worth_it() -> None:
    counts = [
        len(emptied(plan(random_cluster(seed), policy(thresholds={GPU: 75.0}))))
        for seed in range(60)
    ]
    assert sum(counts) >= 60
    assert sum(count >= 2 for count in counts) >= 15
