"""One planning run: units that move whole or not at all, and exactly one reason for the rest."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl_reschedule.plan.plan import Plan, Reallocation
from claimctl_reschedule.plan.planning import plan_with
from claimctl_reschedule.plan.policy import Evictor, Policy, Profile, RemoveDuplicates, RunLimits
from claimctl_reschedule.plan.reasons import Ground, Obstacle
from claimctl_reschedule.plan.units import Unit
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.no_devices import NoDevices, PodsAlone
from claimctl_reschedule_tests.support.scheduling import budget, moves, node, observed, pod, reasons


class Tied(PodsAlone):
    """All pods of the owner ``tied`` are one unit."""

    def __init__(self, *pods: SchedulingPod, **more: Any) -> None:
        super().__init__()
        owned = (each for each in pods if each.metadata.name.startswith("t"))
        self.unit = Unit(pods=tuple(owned), id="unit-t", **more)

    def unit_of(self, pod: SchedulingPod, evictor: Evictor) -> Unit:
        del evictor
        return self.unit if pod in self.unit.pods else Unit(pods=(pod,))


class NotedDevices(NoDevices):
    """Notes what was done with the devices."""

    def __init__(self) -> None:
        super().__init__()
        self.done: list[str] = []

    def leave(self, pods: tuple[SchedulingPod, ...], *, source_closed: bool = False) -> None:
        names = ",".join(pod.metadata.name for pod in pods)
        self.done.append(f"leave {names}{' closed' * source_closed}")

    def undo(self, mark: int = 0) -> None:
        self.done.append("undo")

    def commit(self) -> None:
        self.done.append("commit")


def planned(
    *pods: SchedulingPod, nodes: str = "abc", policy: Policy | None = None, **more: Any
) -> tuple[Plan, NotedDevices]:
    devices = NotedDevices()
    wanted = policy or Policy(profiles=(Profile(name="main", balance=(RemoveDuplicates(),)),))
    objects = [node(name) for name in nodes]
    budgets = more.pop("budgets", ())
    seen = observed(*objects, *pods, *budgets)
    return plan_with(seen, wanted, devices, Tied(*pods, **more)), devices


# two duplicates on a: t0 is the first victim, and t1 of another owner on a moves along
PAIR = (pod("t0", "a", age=1.0), pod("t1", "a", "other", age=2.0), pod("u0", "a", age=9000.0))


def test_a_unit_moves_whole() -> None:
    found, devices = planned(*PAIR)
    assert moves(found) == {"t0": ("a", "b"), "t1": ("a", "c")}
    assert {move.unit for move in found.moves} == {"unit-t"}
    assert found.taints == ()
    assert devices.done == ["leave t0,t1", "commit"]


OTHER_STAYS: dict[str, tuple[SchedulingPod, dict[str, Any]]] = {
    "is protected": (
        pod("t1", "a", "other", annotations={"karpenter.sh/do-not-disrupt": "true"}),
        {},
    ),
    "fits nowhere else": (
        pod("t1", "a", "other", spec={"nodeSelector": {"kubernetes.io/hostname": "a"}}),
        {},
    ),
    "has no node": (pod("t1", owner="other"), {}),
}


@pytest.mark.parametrize("name", OTHER_STAYS)
def test_a_unit_stays_whole_if_one_pod(name: str) -> None:
    other, more = OTHER_STAYS[name]
    found, devices = planned(PAIR[0], other, pod("u0", "a", priority=9), **more)
    assert "t0" not in moves(found)
    assert "t1" not in moves(found)
    assert devices.done.count("undo") == devices.done.count("leave t0,t1")


def test_the_reason_names_the_pod_that_cannot_come_along() -> None:
    other = OTHER_STAYS["is protected"][0]
    still = pod("u0", "a", annotations={"karpenter.sh/do-not-disrupt": "true"})
    found, _ = planned(PAIR[0], other, still)
    (skipped,) = [each for each in found.skipped if each.pod.name == "t0"]
    assert skipped.reason is Ground.UNIT
    assert skipped.detail == ("team/t1 moves along: DoNotDisrupt: karpenter.sh/do-not-disrupt")
    assert skipped.strategy == "RemoveDuplicates"
    assert skipped.profile == "main"


class Growing(PodsAlone):
    """The first pod moves alone; it belongs to the units of all later ones."""

    def __init__(self) -> None:
        super().__init__()
        self.first: SchedulingPod | None = None

    def unit_of(self, pod: SchedulingPod, evictor: Evictor) -> Unit:
        del evictor
        self.first = self.first or pod
        return Unit((pod,)) if pod is self.first else Unit((self.first, pod), id="both")


def test_no_pod_moves_twice() -> None:
    pods = [pod(f"p{number}", "a") for number in range(3)]
    seen = observed(*(node(name) for name in "abc"), *pods)
    policy = Policy(profiles=(Profile(balance=(RemoveDuplicates(),)),))
    found = plan_with(seen, policy, NoDevices(), Growing())
    assert list(moves(found)) == ["p0"]
    assert {each.detail for each in found.skipped} == {"team/p0 moves along: AlreadyMoved"}


def test_limits_and_budgets_count_the_whole_unit() -> None:
    still = pod("u0", "a", annotations={"karpenter.sh/do-not-disrupt": "true"})
    policy = Policy(profiles=(Profile(balance=(RemoveDuplicates(),)),), limits=RunLimits(total=1))
    assert reasons(planned(*PAIR[:2], still, policy=policy)[0])["t0"] == "LimitTotal"
    one = budget("b", 1, {})
    assert reasons(planned(*PAIR[:2], still, budgets=(one,))[0])["t0"] == "DisruptionBudget"
    two = budget("b", 2, {})
    assert len(moves(planned(*PAIR[:2], still, budgets=(two,))[0])) == 2


def test_what_stands_against_a_unit_is_the_reason() -> None:
    still = pod("u0", "a", annotations={"karpenter.sh/do-not-disrupt": "true"})
    obstacle = Obstacle(Ground.PINNED, "claim gpu")
    found, devices = planned(*PAIR[:2], still, obstacle=obstacle)
    assert reasons(found)["t0"] == "PinnedByClaim"
    assert devices.done == []


def test_a_unit_that_closes_its_node() -> None:
    asked = Reallocation(namespace="team", reservation="r", claim="c", claim_uid="u", unit="unit-t")
    found, devices = planned(*PAIR, close_source=True, reallocate=(asked,))
    (taint,) = found.taints
    assert (taint.node, taint.node_uid, taint.unit) == ("a", "uid-a", "unit-t")
    assert (taint.key, taint.value) == ("claimctl.io/moving", "claimctl-uid-team-t0")
    assert {move.closes for move in found.moves} == {"a"}
    assert found.reallocations == (asked,)
    assert devices.done[0] == "leave t0,t1 closed"


def test_a_move_has_what_its_execution_compares() -> None:
    found, _ = planned(pod("p0", "a", age=1.0), pod("p1", "a"))
    (move,) = found.moves
    assert (move.pod.uid, move.pod.node, move.destination) == ("uid-team-p0", "a", "b")
    assert (move.facts.owner, move.facts.ready) == ("uid-ReplicaSet-web", True)
    assert move.owner is not None
    assert (move.owner.kind, move.owner.workload_uid) == ("ReplicaSet", "uid-ReplicaSet-web")
    assert (move.unit, move.closes, move.profile) == ("", "", "main")
