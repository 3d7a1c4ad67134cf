"""What fits on a node by the count of its kubelet, and who gets room first."""

from __future__ import annotations

import pytest

from claimctl_reschedule.plan.kubelet import Account, account, deferred, held
from claimctl_reschedule.plan.world import World
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.resizes import Sizes, grows, sized
from claimctl_reschedule_tests.support.scheduling import node, pod


def counted(*pods: SchedulingPod, cpu: str = "4", memory: str = "32Gi") -> Account:
    return account(World([node("n", cpu=cpu, memory=memory)], pods, {}).nodes["n"])


@pytest.mark.parametrize(
    ("sizes", "cpu"),
    [
        ({"wants": 3000}, 1000),
        ({"wants": 3000, "allocated": 2000}, 2000),
        ({"wants": 500, "allocated": 500, "actual": 2000}, 2000),
        ({"wants": 3000, "allocated": None, "actual": None}, 3000),
        ({"wants": 3000, "allocated": None, "actual": 1000}, 3000),
        ({"wants": 3000, "allocated": 2000, "actual": None}, 2000),
        ({"wants": 3000, "allocated": 2000, "actual": 2500, "reason": "Infeasible"}, 2500),
    ],
)
def test_a_pod_holds_what_is_allocated_or_in_force_and_not_what_it_wants(
    sizes: Sizes, cpu: int
) -> None:
    assert held(sized("a", 1000, **sizes)) == (cpu, 0)


def test_only_deferred_resizes_wait() -> None:
    assert deferred(grows("a", 1000, 2000)) is not None
    assert deferred(grows("a", 1000, 2000, reason="Infeasible")) is None
    assert deferred(sized("a", 1000)) is None


def test_a_resize_fits_beside_what_the_others_hold() -> None:
    beside = sized("b", 1000, wants=4000)
    assert counted(grows("a", 1000, 3000), beside).granted() == {"uid-team-a"}
    assert counted(grows("a", 1000, 3001), beside).granted() == set()
    assert counted(grows("a", 1000, 3001), beside).granted({"uid-team-b"}) == {"uid-team-a"}


def test_a_pod_that_is_being_deleted_holds_its_part() -> None:
    going = sized("b", 2000, more={"owner": "b", "deleting": True})
    assert counted(grows("a", 1000, 3000), going).granted() == set()


def test_a_pod_that_has_ended_or_is_only_nominated_holds_nothing() -> None:
    ended = sized("b", 4000, more={"owner": "b", "phase": "Succeeded"})
    nominated = pod("c", "", "c", "4", status={"nominatedNodeName": "n"})
    assert counted(grows("a", 1000, 3000), ended, nominated).granted() == {"uid-team-a"}


def test_memory_counts_as_well() -> None:
    beside = sized("b", 1000, memory=(8, 8))
    wanted = grows("a", 1000, 1000, memory=(25, 1))
    assert counted(wanted, beside).granted() == set()
    assert counted(wanted, beside, memory="33Gi").granted() == {"uid-team-a"}


def names(found: Account) -> list[str]:
    return [each.pod.pod.metadata.name for each in found.waiting]


def test_resizes_wait_in_the_order_of_the_kubelet() -> None:
    shrinks = grows("shrinks", 2000, 1000, priority=0)
    high = grows("high", 500, 1000, priority=10, waits=1)
    guaranteed = grows("guaranteed", 500, 1000, priority=5, waits=1, more={"qos": "Guaranteed"})
    old = grows("old", 500, 1000, priority=5, waits=90)
    young = grows("young", 500, 1000, priority=5, waits=60)
    account = counted(young, old, guaranteed, high, shrinks)
    assert names(account) == ["shrinks", "high", "guaranteed", "old", "young"]


def test_the_first_gets_the_room_and_a_smaller_one_behind_it_what_is_left() -> None:
    high = grows("high", 500, 2500, priority=10)
    low = grows("low", 500, 1500, priority=5)
    small = grows("small", 500, 600, priority=1)
    assert counted(high, low, small).granted() == {"uid-team-high", "uid-team-small"}
    assert counted(high, low, small, cpu="5").granted() == {
        "uid-team-high", "uid-team-low", "uid-team-small",
    }  # fmt: skip
