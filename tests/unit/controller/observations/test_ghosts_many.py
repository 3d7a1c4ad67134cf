"""However many pods of a claim vanish, its ghosts are few, and each pod counts as long as alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.ghosts import (
    MOST_APART,
    MOST_IN_NAMESPACE,
    RETENTION_SECONDS,
)
from claimctl.reservation.users.several import own_grace
from claimctl.wire.limits import TEN_YEARS
from claimctl.wire.nodes import OUT_OF_SERVICE, Taint
from claimctl.wire.reservations import ForceDeletedPod
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    node,
    pod_ref,
)
from tests.support.seen_ghosts import ages_of, pods_of, recorded_of
from tests.unit.controller.observations.ghost_world import KEY, GhostWorld, pod

ELSEWHERE = ClaimKey("other", CLAIM)


def test_ghosts_on_invented_nodes_are_one_ghost_without_a_node() -> None:
    world = GhostWorld()
    for number in range(3000):
        world.vanish(pod(f"p-{number}", on=f"fake-{number}"))
    assert len(world.ghosts.of(KEY)) == MOST_APART + 1
    (ghost,) = world.several()
    assert (ghost.node_name, ghost.boot_id, ghost.name) == ("", "", "several pods")
    assert world.ghosts.signs.nodes_to_watch() == {}


def test_further_ghosts_of_a_node_count_from_the_last_one_with_the_longest_grace() -> None:
    world = GhostWorld()
    world.crowd()
    for at, grace in ((1, 60), (5, 3600), (9, 30)):
        world.clock.time = at
        world.vanish(pod(f"late-{at}", grace=grace))
    (ghost,) = world.several()
    assert ghost.termination_grace_period_seconds == 3600
    assert ages_of(world.ghosts.of(KEY))[ghost.uid] == 0
    assert world.ghosts.signs.nodes_to_watch() == {"node-0": 1}


def test_ghosts_of_two_boots_of_a_node_are_two() -> None:
    """The kubelet of another boot may be that of another machine."""
    world = GhostWorld()
    for boot in ("boot-1", "boot-2"):
        world.boots.observe(node(boot=boot))
        world.crowd()
        world.vanish(pod(f"late-{boot}"))
    assert {ghost.boot_id for ghost in world.several()} == {"boot-1", "boot-2"}


def test_a_pod_that_appears_again_takes_no_other_along() -> None:
    world = GhostWorld()
    world.crowd()
    for name in "ab":
        world.vanish(pod(name))
    world.ghosts.observe(None, pod("a"))
    assert len(world.several()) == 1


def test_what_a_status_names_of_several_pods_does_not_make_them_young_again() -> None:
    """Another controller has told them apart."""
    world = GhostWorld()
    recorded = [ForceDeletedPod(uid=str(n), node_name="node-0") for n in range(MOST_APART + 5)]
    world.ghosts.observe_record(KEY, recorded)
    world.clock.time = 50
    world.ghosts.observe_record(KEY, recorded)
    (ghost,) = world.several()
    assert ages_of(world.ghosts.of(KEY))[ghost.uid] == 50


def test_one_more_pod_is_told_anew_though_the_record_of_the_others_is_over() -> None:
    world = GhostWorld()
    world.crowd()
    world.vanish(pod("a"))
    world.ghosts.observe_record(KEY, world.several(), "9")
    (ghost,) = world.several()
    assert ghost.uid in recorded_of(world.ghosts.of(KEY))
    world.vanish(pod("b"))
    assert ghost.uid not in recorded_of(world.ghosts.of(KEY))


def test_several_pods_that_ended_count_again_with_one_more() -> None:
    world = GhostWorld()
    world.crowd()
    world.vanish(pod("a"))
    off = node(taints=(Taint(key=OUT_OF_SERVICE, effect="NoExecute"),))
    world.ghosts.node_changed(off)
    assert world.ghosts.signs.nodes_to_watch() == {}
    world.vanish(pod("b"))
    assert world.ghosts.signs.nodes_to_watch() == {"node-0": 1}


def test_the_ghosts_of_a_full_namespace_count_for_all_its_claims_and_for_no_others() -> None:
    world = GhostWorld()
    names = [f"claim-{number}" for number in range(MOST_IN_NAMESPACE)]
    for name in names:
        world.ghosts.observe_list(ClaimKey(NAMESPACE, name), [pod_ref(name)], ())
    for number in range(50):
        world.vanish(pod(f"late-{number}"))
    assert not world.ghosts.any_of(ELSEWHERE)
    for key in (KEY, ClaimKey(NAMESPACE, "untouched")):
        (ghost,) = pods_of(world.ghosts.of(key))
        assert ghost.node_name == "node-0"
    assert world.ghosts.claims_on("node-0") == {ClaimKey(NAMESPACE, "")}
    world.clock.time = RETENTION_SECONDS + 1
    world.vanish(pod("last"))
    assert [ghost.pod.name for ghost in world.ghosts.of(KEY)] == ["last"]


def test_a_grace_period_of_68_years_is_one_that_a_status_takes() -> None:
    world = GhostWorld()
    world.vanish(pod("a", grace=2**63 - 1))
    (ghost,) = pods_of(world.ghosts.of(KEY))
    assert own_grace(ghost) == TEN_YEARS


def test_what_has_gone_by_the_list_of_a_new_leader_was_recorded_before() -> None:
    world = GhostWorld()
    world.ghosts.pods_listed("", "40")
    world.ghosts.observe_record(KEY, [ForceDeletedPod(uid="a")], "30")
    assert [ghost.gone_by for ghost in world.ghosts.of(KEY)] == ["40"]


def test_a_pod_that_a_list_shows_gone_was_gone_by_then() -> None:
    world = GhostWorld()
    world.ghosts.observe(pod("a"), None, relist=True)
    assert [ghost.gone_by for ghost in world.ghosts.of(KEY)] == [""]
    world.ghosts.pods_listed("10", "40")
    assert [ghost.gone_by for ghost in world.ghosts.of(KEY)] == ["40"]


DELETIONS = st.lists(
    st.tuples(
        st.sampled_from([1, 5, 10, 11, 40, 120]),
        st.sampled_from(["node-0", "node-1", "fake"]),
        st.sampled_from([0, 30, 100, 400]),
        st.booleans(),
    ),
    min_size=1,
    max_size=8,
)


@given(DELETIONS)
def test_several_pods_keep_the_claim_at_least_as_long_as_each_of_them_alone(
    deletions: list[tuple[int, str, int, bool]],
) -> None:
    """One ledger tells all pods apart, the other none; the same happens in both."""
    apart, merged = GhostWorld(most_apart=100), GhostWorld(most_apart=0)
    for number, (pause, where, grace, renewed) in enumerate(deletions):
        for world in (apart, merged):
            world.clock.time += pause
            if renewed:
                world.renew()
            world.vanish(pod(f"p-{number}", on=where, grace=grace))
    for _ in range(70):
        for world in (apart, merged):
            world.clock.time += 10
            world.renew()
        assert merged.waits() or not apart.waits()
    assert not merged.waits()
