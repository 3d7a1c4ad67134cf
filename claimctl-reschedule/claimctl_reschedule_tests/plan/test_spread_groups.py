"""Groups of duplicates, and whether moves make their numbers more even."""

from __future__ import annotations

import pytest

from claimctl_reschedule.plan.spread import groups_of, on_node, unevener
from claimctl_reschedule.plan.world import Relocation, World
from claimctl_reschedule_tests.support.scheduling import node, pod

NODES = [node("a"), node("b")]


def test_pods_of_one_owner_with_the_same_images_are_a_group() -> None:
    pods = [
        pod("p1", "b"),
        pod("p0", "a"),
        pod("other-image", "a", image="web:2"),
        pod("other-owner", "a", "db"),
        pod("other-namespace", "a", namespace="x"),
        pod("going", "a", deleting=True),
        pod("bare", "a", owner=None),
    ]
    found = groups_of(World(NODES, pods, {}))
    names = [[each.pod.metadata.name for each in group] for group in found.values()]
    assert names == [["other-owner"], ["p0", "p1"], ["other-image"], ["other-namespace"]]


@pytest.mark.parametrize(
    ("on_a", "on_b", "allowed", "gain"),
    [(3, 1, True, True), (2, 1, True, False), (1, 0, True, False), (2, 2, False, False)],
)
def test_a_move_from_a_to_b(on_a: int, on_b: int, allowed: bool, gain: bool) -> None:
    names = [*(f"a{number}" for number in range(on_a)), *(f"b{number}" for number in range(on_b))]
    world = World(NODES, [pod(name, name[0]) for name in names], {})
    moved = world.pods["uid-team-a0"]
    world.remove(moved)
    world.add(moved, "b")
    steps = [Relocation(moved, "a", "b")]
    assert (unevener(world, steps, strictly=False) is None) is allowed
    assert (unevener(world, steps, strictly=True) is None) is gain
    assert on_node(world, moved, "b") == on_b + 1


def test_two_pods_that_move_together_count_both() -> None:
    world = World(NODES, [pod(f"p{number}", "a") for number in range(3)], {})
    pods = list(world.pods.values())[:2]
    for each in pods:
        world.remove(each)
        world.add(each, "b")
    # 3/0 becomes 1/2
    assert unevener(world, [Relocation(each, "a", "b") for each in pods], strictly=True) is None


def test_a_pod_that_only_comes_along_need_not_gain() -> None:
    pods = [pod("p0", "a"), pod("p1", "a"), pod("p2", "a"), pod("alone", "a", "db")]
    world = World(NODES, pods, {})
    moved = [world.pods[f"uid-team-{name}"] for name in ("p0", "alone")]
    for each in moved:
        world.remove(each)
        world.add(each, "b")
    steps = [Relocation(each, "a", "b") for each in moved]
    assert unevener(world, steps[1:], strictly=True) is not None
    assert unevener(world, steps[1:], strictly=False) is None
    assert unevener(world, steps, strictly=True) is None


def test_a_pod_without_a_group_makes_nothing_uneven() -> None:
    world = World(NODES, [pod("p", "a", owner=None)], {})
    bare = world.pods["uid-team-p"]
    world.remove(bare)
    world.add(bare, "b")
    assert unevener(world, [Relocation(bare, "a", "b")], strictly=False) is None
