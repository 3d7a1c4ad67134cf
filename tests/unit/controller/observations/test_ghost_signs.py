"""Which nodes are watched for signs of life, and for which drivers ghosts wait."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.ghost_signs import ALL_CLAIMS_SECONDS
from claimctl.controller.observations.ghosts import (
    MOST_IN_NAMESPACE,
)
from claimctl.wire.meta import ObjectMeta
from tests.support.builders import (
    NAMESPACE,
    node,
    pod_ref,
)
from tests.support.seen_ghosts import signs_of
from tests.unit.controller.observations.ghost_world import KEY, GhostWorld, pod


def test_the_ghosts_of_a_full_namespace_wait_for_the_drivers_of_all_its_claims() -> None:
    world = GhostWorld()
    drivers = {ClaimKey(NAMESPACE, ""): "gpu", KEY: "nic"}
    world.ghosts.signs.drivers_on = lambda key, node: frozenset({drivers[key]})
    for number in range(MOST_IN_NAMESPACE):
        name = f"claim-{number}"
        world.ghosts.observe_list(ClaimKey(NAMESPACE, name), [pod_ref(name)], ())
    world.vanish(pod("late"))
    world.slices.look("node-0", (), 0.0)
    world.renew()
    signs = signs_of(world.ghosts.of(KEY))
    assert signs.away == ("gpu",)
    assert world.ghosts.signs.wait_for_drivers("node-0")
    assert not world.ghosts.signs.wait_for_drivers("node-1")


def test_the_drivers_of_all_claims_are_not_looked_for_at_each_reconcile() -> None:
    """A full namespace has thousands of claims, and each of them asks."""
    world, asked = GhostWorld(), list[ClaimKey]()

    def drivers_on(key: ClaimKey, node: str) -> frozenset[str]:
        asked.append(key)
        return frozenset({"gpu"})

    world.ghosts.signs.drivers_on = drivers_on
    for number in range(MOST_IN_NAMESPACE):
        name = f"claim-{number}"
        world.ghosts.observe_list(ClaimKey(NAMESPACE, name), [pod_ref(name)], ())
    world.vanish(pod("late"))
    world.renew()
    for _ in range(100):
        world.ghosts.of(KEY)
    assert asked == [ClaimKey(NAMESPACE, "")]
    world.clock.time += ALL_CLAIMS_SECONDS
    world.ghosts.of(KEY)
    assert len(asked) == 2


def test_a_node_that_comes_later_is_watched_for_signs_of_life() -> None:
    world = GhostWorld()
    world.vanish(pod("a", on="node-9"))
    assert world.ghosts.signs.nodes_to_watch() == {}
    world.ghosts.news.clear()
    world.nodes.add("node-9")
    made = node(boot="b")
    world.ghosts.node_changed(replace(made, metadata=ObjectMeta(name="node-9")))
    assert world.ghosts.news.is_set()
    assert world.ghosts.signs.nodes_to_watch() == {"node-9": 1}
