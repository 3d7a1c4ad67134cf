"""Groups: which moves are made all or none, and in which order."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl_reschedule.plan.plan import Move, Owner, Plan, PodRef, TaintStep
from claimctl_reschedule.run.groups import MoveGroup, groups_of
from claimctl_reschedule.run.steps import MoveStep
from tests.support.builders import NOW


def move(
    name: str,
    source: str,
    destination: str = "",
    unit: str = "",
    *,
    waits: bool = False,
    kind: str = "ReplicaSet",
) -> Move:
    pod = PodRef(namespace="team", name=name, uid=name, node=source)
    owner = Owner(kind=kind, name=name, uid=name)
    return Move(
        strategy="Test", pod=pod, owner=owner, destination=destination, unit=unit, waits=waits
    )


def grouped(*moves: Move, taints: tuple[TaintStep, ...] = ()) -> list[MoveGroup]:
    plan = Plan(made_at=NOW, moves=moves, taints=taints)
    return groups_of(plan, [MoveStep(each) for each in moves])


def names(groups: list[MoveGroup]) -> list[str]:
    return [group.moves[0].pod.name for group in groups]


def test_the_moves_of_a_unit_are_one_group() -> None:
    found = grouped(move("a", "x", unit="u"), move("b", "x"), move("c", "x", unit="u"))
    assert [[step.move.pod.name for step in group.steps] for group in found] == [["a", "c"], ["b"]]


def test_moves_that_share_a_node_have_an_order() -> None:
    """One comes after another if it leaves or goes to a node that the other left or went to."""
    found = grouped(
        move("a", "x", "y"), move("b", "x", "z"), move("c", "p", "q"), move("d", "z", "y")
    )
    assert [names(group.before) for group in found] == [[], ["a"], [], ["a", "b"]]


def test_a_late_replacement_is_waited_for_only_where_the_plan_says_so() -> None:
    late = move("a", "x", "y", kind="StatefulSet")
    found = grouped(late, move("b", "x", "z"), move("c", "x", "z", waits=True))
    assert [names(group.before) for group in found] == [[], [], ["a", "b"]]


def test_a_move_needs_the_room_that_others_leave() -> None:
    found = grouped(move("a", "x", "y"), move("b", "x", "y"), move("c", "z", "x"))
    assert [names(group.room) for group in found] == [[], [], ["a", "b"]]


def test_nodes_that_are_emptied_are_closed_together_and_one_comes_after_the_other() -> None:
    def closing(node: str, unit: str) -> TaintStep:
        return TaintStep(node=node, node_uid=node, key="k", value="v", unit=unit)

    def leaving(name: str, node: str) -> Move:
        wanted = move(name, node, "z", f"node {node}")
        return replace(wanted, strategy="HighNodeUtilization")

    leave = leaving("a", "x"), leaving("b", "x"), leaving("c", "y"), move("d", "p", "q")
    taints = closing("x", "node x"), closing("y", "node y"), closing("spare", "")
    first, second, other = grouped(*leave, taints=taints)
    assert [taint.node for taint, _ in first.closings] == ["x", "y", "spare"]
    assert first.closings == second.closings
    assert [[left.pod.name for left in gone] for _, gone in first.closings] == [
        ["a", "b"],
        ["c"],
        [],
    ]
    assert (second.before, other.before, other.closings) == ([first], [], [])


def test_only_room_for_a_critical_pod_rescues() -> None:
    taint = TaintStep(node="x", node_uid="x", key="k", value="v", unit="u")
    vital = PodRef(namespace="kube-system", name="vital", uid="vital")
    rescue = TaintStep(node="y", node_uid="y", key="k", value="v", unit="v", pod=vital)
    found = grouped(
        move("a", "x", unit="u"), move("b", "y", unit="v"), move("c", "z"), taints=(taint, rescue)
    )
    assert [group.rescues for group in found] == [False, True, False]
