"""However many pods of a claim vanish, its ghosts are few, and each pod counts as long as alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.boots import BootIds
from claimctl.controller.observations.ghost_signs import ALL_CLAIMS_SECONDS
from claimctl.controller.observations.ghosts import (
    MOST_APART,
    MOST_IN_NAMESPACE,
    RETENTION_SECONDS,
    GhostLedger,
)
from claimctl.controller.observations.kubelets import Kubelets
from claimctl.controller.observations.slices import SlicesOnNodes
from claimctl.reservation.facts.memory import Memory
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.users.ghosts import ghost_blockers
from claimctl.reservation.users.several import is_several, own_grace
from claimctl.wire.coordination import Lease, LeaseSpec, micro_time
from claimctl.wire.limits import TEN_YEARS
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.nodes import OUT_OF_SERVICE, Taint
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ForceDeletedPod
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    after,
    claim,
    node,
    pod_ref,
    reservation,
    running,
)
from tests.support.hand_clock import HandClock

KEY = ClaimKey(NAMESPACE, CLAIM)
ELSEWHERE = ClaimKey("other", CLAIM)


def pod(name: str, *, on: str = "node-0", grace: int = 30) -> Pod:
    made: Pod = running(name, node=on)
    return replace(made, spec=replace(made.spec, termination_grace_period_seconds=grace))


class GhostWorld:
    """A ledger of a cluster with two nodes."""

    def __init__(self, most_apart: int = MOST_APART) -> None:
        self.version, self.clock, boots = 1, HandClock(), BootIds()
        self.kubelets = Kubelets(self.clock)
        self.slices = SlicesOnNodes(self.clock)
        self.ghosts = GhostLedger(self.clock, boots, self.kubelets, most_apart, self.slices)
        self.nodes, self.boots = {"node-0", "node-1"}, boots
        self.ghosts.signs.is_node = self.nodes.__contains__

    def vanish(self, gone: Pod) -> None:
        meta = replace(gone.metadata, resource_version=self.written())
        self.ghosts.observe(replace(gone, metadata=meta), None)

    def written(self) -> str:
        """The version of another write."""
        self.version += 1
        return str(self.version)

    def crowd(self, number: int = MOST_APART) -> None:
        """So many pods vanish that further ones are not told apart."""
        for one in range(number):
            self.vanish(pod(f"early-{one}"))

    def renew(self) -> None:
        for name in sorted(self.nodes):
            spec = LeaseSpec(renew_time=micro_time(after(self.clock.time)))
            lease = Lease(metadata=ObjectMeta(resource_version=self.written()), spec=spec)
            self.kubelets.read_lease(name, lease, self.clock.time)
            self.ghosts.signs.judge(name)

    def several(self) -> list[ForceDeletedPod]:
        return [ghost for ghost in self.ghosts.of(KEY).pods if is_several(ghost)]

    def waits(self) -> bool:
        """Whether a ghost keeps the claim."""
        known = self.ghosts.of(KEY)
        snapshot = Snapshot(
            now=NOW,
            namespace=NAMESPACE,
            name=CLAIM,
            claim=claim(),
            reservations=(Held(reservation(), WorkloadState(WorkloadPhase.ABSENT)),),
            ghosts=known.pods,
            memory=Memory(ghost_age=dict(known.ages), ghost_signs=dict(known.signs)),
        )
        return bool(list(ghost_blockers(snapshot)))


def test_ghosts_on_invented_nodes_are_one_ghost_without_a_node() -> None:
    world = GhostWorld()
    for number in range(3000):
        world.vanish(pod(f"p-{number}", on=f"fake-{number}"))
    assert len(world.ghosts.of(KEY).pods) == MOST_APART + 1
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
    assert dict(world.ghosts.of(KEY).ages)[ghost.uid] == 0
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
    assert dict(world.ghosts.of(KEY).ages)[ghost.uid] == 50


def test_one_more_pod_is_told_anew_though_the_record_of_the_others_is_over() -> None:
    world = GhostWorld()
    world.crowd()
    world.vanish(pod("a"))
    world.ghosts.observe_record(KEY, world.several(), "9")
    (ghost,) = world.several()
    assert ghost.uid in world.ghosts.of(KEY).once_recorded
    world.vanish(pod("b"))
    assert ghost.uid not in world.ghosts.of(KEY).once_recorded


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
        (ghost,) = world.ghosts.of(key).pods
        assert ghost.node_name == "node-0"
    assert world.ghosts.claims_on("node-0") == {ClaimKey(NAMESPACE, "")}
    world.clock.time = RETENTION_SECONDS + 1
    world.vanish(pod("last"))
    assert [ghost.name for ghost in world.ghosts.of(KEY).pods] == ["last"]


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
    ((_, signs),) = world.ghosts.of(KEY).signs
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


def test_a_grace_period_of_68_years_is_one_that_a_status_takes() -> None:
    world = GhostWorld()
    world.vanish(pod("a", grace=2**63 - 1))
    (ghost,) = world.ghosts.of(KEY).pods
    assert own_grace(ghost) == TEN_YEARS


def test_what_has_gone_by_the_list_of_a_new_leader_was_recorded_before() -> None:
    world = GhostWorld()
    world.ghosts.pods_listed("", "40")
    world.ghosts.observe_record(KEY, [ForceDeletedPod(uid="a")], "30")
    assert dict(world.ghosts.of(KEY).gone_by) == {"a": "40"}


def test_a_pod_that_a_list_shows_gone_was_gone_by_then() -> None:
    world = GhostWorld()
    world.ghosts.observe(pod("a"), None, relist=True)
    assert world.ghosts.of(KEY).gone_by == ()
    world.ghosts.pods_listed("10", "40")
    assert dict(world.ghosts.of(KEY).gone_by) == {"uid-a": "40"}


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
