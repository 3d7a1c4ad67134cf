"""Which nodes the pods of an owner avoid, and for how long."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claimctl.wire.base import from_plain
from claimctl_reschedule.plan import avoidance, brake
from claimctl_reschedule.shapes.devices import SchedulingSlice
from claimctl_reschedule.shapes.records import (
    MAX_AVOIDED,
    MAX_REFUSALS,
    RecordedAvoidance,
    RecordedRefusal,
)
from claimctl_reschedule.shapes.scheduling import SchedulingPod
from claimctl_reschedule_tests.support.scheduling import NOW, node, pod

EMPTY = RecordedAvoidance(owner_uid="o")
WINDOW = timedelta(minutes=10)
HOUR = timedelta(hours=1)


def refused(name: str, on: str = "node-0", age: float = 1.0) -> SchedulingPod:
    return pod(name, on, phase="Failed", age=age, status={"reason": "OutOfcpu"})


def known(*pods: SchedulingPod, now: datetime = NOW) -> RecordedAvoidance:
    return avoidance.with_refusals(EMPTY, pods, now, WINDOW)


def test_the_second_refusal_by_a_node_counts() -> None:
    assert avoidance.refusers(known(refused("a")), NOW) == ()
    assert avoidance.refusers(known(refused("a"), refused("b", "node-1")), NOW) == ()
    assert avoidance.refusers(known(refused("a"), refused("b")), NOW) == ("node-0",)


def test_each_pod_counts_once_and_only_within_the_window() -> None:
    entry = known(refused("a", age=100))
    again = avoidance.with_refusals(entry, [refused("a", age=100)], NOW, WINDOW)
    assert again == entry
    assert known(refused("a", age=601)).refusals == ()
    later = avoidance.with_refusals(entry, [], NOW + timedelta(seconds=501), WINDOW)
    assert later.refusals == ()


def test_the_newest_refusals_are_kept() -> None:
    entry = known(*(refused(f"p-{number:02}", age=100 - number) for number in range(30)))
    assert len(entry.refusals) == MAX_REFUSALS
    assert entry.refusals[-1].pod_uid == "uid-team-p-29"


def test_a_node_is_avoided_twice_as_long_each_time() -> None:
    entry, times, now = EMPTY, [], NOW
    for _ in range(8):
        entry = avoidance.avoiding(entry, "node-0", "x", now)
        (node_,) = entry.avoided
        assert node_.until is not None
        times.append((node_.until - now).total_seconds() / 60)
        now = node_.until
    assert times == [10, 20, 40, 80, 160, 320, 360, 360]


def test_refusals_before_an_avoidance_do_not_count_for_the_next_one() -> None:
    entry = avoidance.avoiding(known(refused("a"), refused("b")), "node-0", "x", NOW)
    assert avoidance.in_force(entry, NOW) == ("node-0",)
    after = NOW + timedelta(minutes=10)
    assert avoidance.in_force(entry, after) == ()
    assert avoidance.refusers(entry, after) == ()
    new = [
        RecordedRefusal(pod_uid=uid, node="node-0", at=NOW + timedelta(seconds=30)) for uid in "cd"
    ]
    entry = replace(entry, refusals=(*entry.refusals, *new))
    assert avoidance.refusers(entry, after) == ("node-0",)


def test_a_node_that_pods_have_left_once_is_remembered_and_not_avoided() -> None:
    entry = avoidance.avoiding(EMPTY, "node-0", "x", NOW, once=True)
    assert avoidance.in_force(entry, NOW) == ()
    assert [each.times for each in entry.avoided] == [0]


def forgotten(*running: SchedulingPod, seen: str = "x", after: timedelta = timedelta()) -> bool:
    entry = avoidance.avoiding(EMPTY, "node-0", "x", NOW)
    digests = {"node-0": seen} if seen else {}
    return not avoidance.without_outdated(entry, digests, running, NOW + after).avoided


def test_a_node_is_tried_again_when_something_has_changed() -> None:
    assert not forgotten()
    assert forgotten(seen="y")
    assert forgotten(seen="")
    assert not forgotten(pod("old", "node-0", age=60))
    assert forgotten(pod("new", "node-0", age=-60))
    assert not forgotten(pod("new", "node-1", age=-60))
    assert not forgotten(after=timedelta(hours=6))
    assert forgotten(after=timedelta(hours=6, minutes=10))


def test_a_clock_that_was_set_back_ends_an_avoidance() -> None:
    entry = avoidance.avoiding(known(refused("a")), "node-0", "x", NOW)
    before = NOW - timedelta(days=30)
    assert avoidance.in_force(entry, before) == ()
    assert forgotten(after=-timedelta(days=30))
    assert avoidance.with_refusals(entry, [], before, WINDOW).refusals == ()


def test_an_avoidance_can_end_before_its_time() -> None:
    entry = avoidance.avoiding(EMPTY, "node-0", "x", NOW)
    assert avoidance.in_force(avoidance.ended(entry, "node-0", NOW), NOW) == ()
    assert avoidance.ended(entry, "node-1", NOW) == entry


def test_the_digest_of_a_node_changes_with_what_may_mend_it() -> None:
    body = {"spec": {"driver": "d", "nodeName": "node-0", "pool": {"name": "p", "generation": 1}}}
    newer = {"spec": {"driver": "d", "nodeName": "node-0", "pool": {"name": "p", "generation": 2}}}
    slices = [from_plain(each, SchedulingSlice) for each in (body, newer)]
    kinds = [
        avoidance.digests_of([one], [each])["node-0"]
        for one in (node("node-0"), node("node-0", cpu="9"), node("node-0", labels={"a": "b"}))
        for each in slices
    ]
    assert len(set(kinds)) == len(kinds)
    closed = node("node-0", unschedulable=True, taints=(("x", "NoSchedule"),))
    same = avoidance.digests_of([closed], slices[:1])
    assert same == avoidance.digests_of([node("node-0")], slices[:1])


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(-7, 7)), max_size=60))
def test_no_list_outgrows_the_record_and_no_avoidance_outlasts_six_hours(
    steps: list[tuple[int, int]],
) -> None:
    entry, now = EMPTY, NOW
    for number, hours in steps:
        now += hours * HOUR
        entry = avoidance.avoiding(entry, f"node-{number}", "x", now)
        entry = avoidance.with_refusals(
            entry, [refused(f"{number}-{each}") for each in range(number)], now, WINDOW
        )
        assert len(entry.avoided) <= MAX_AVOIDED
        assert len(entry.refusals) <= MAX_REFUSALS
        assert len({each.node for each in entry.avoided}) == len(entry.avoided)
        for each in entry.avoided:
            if each.node in avoidance.in_force(entry, now):
                assert each.until is not None
                assert now < each.until <= now + avoidance.LONGEST


def told(entry: RecordedAvoidance, hours: float) -> list[str]:
    return [what for _, what in avoidance.complaints([entry], NOW + timedelta(hours=hours))]


def test_a_braked_owner_and_one_that_nobody_looks_after_are_told() -> None:
    entry = avoidance.avoiding(EMPTY, "node-0", "x", NOW)
    kept = replace(entry, nodes=("node-0",))
    assert told(entry, 9) == told(kept, 1) == []
    assert told(kept, 2) == ["its pods avoid node-0 longer than they should: no run ends it"]
    on = brake.braked(EMPTY, NOW)
    assert told(on, 0) == [
        "nodes reject its pods, so new pods are gated, and runs let one through at times"
    ]
    assert told(on, 2) == [
        "nodes reject its pods, so new pods are gated, and no run has removed the gate in time"
    ]
