"""Listing ahead: which pending pods claimctl lists, and when their entries go again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as with_rules
from math import inf
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claimctl.controller.caches.slim import slim_slice
from claimctl.reservation.facts.decision import WriteList
from claimctl.reservation.facts.memory import Arrivals, Memory
from claimctl.reservation.facts.pods import Consumers, failed_to_bind
from claimctl.reservation.facts.references import LIMIT, is_tombstone
from claimctl.reservation.facts.snapshot import STUCK_SECONDS, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.reserved_for.listing_ahead import (
    BUSY_SECONDS,
    PATIENCE_SECONDS,
    QUIET_SECONDS,
    entries_to_give_up,
    pods_to_list,
)
from claimctl.wire.base import Present
from claimctl.wire.claims import (
    Device,
    NodeAllocatableResource,
    Reference,
    ResourcePool,
    ResourceSlice,
    ResourceSliceSpec,
)
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from tests.support.builders import (
    NOW,
    after,
    claim,
    deployment_ref,
    failed,
    finished,
    node,
    owned,
    pending,
    pod,
    pod_group,
    pod_ref,
    reservation,
    running,
    slow,
    tomb,
    written_by_claimctl,
)
from tests.support.claim_cases import condition, held_status
from tests.support.stage import DecisionStage

WORKLOAD = deployment_ref()
RULES = Rules("hold", list_ahead=True, crowd=0)
"""Every pod is a crowd."""
ACTIVE = WorkloadState(
    WorkloadPhase.ACTIVE, "uid-train", wants=3, pod_owners=frozenset({"uid-set", "uid-other-set"})
)


def stage(
    *listed: Reference,
    rules: Rules = RULES,
    deleting: bool = False,
    claim_deleting: bool = False,
    seen: bool = True,
    new_claim: bool = False,
) -> DecisionStage:
    made = reservation(status=held_status(), deleting=deleting)
    on = DecisionStage(
        written_by_claimctl(
            claim(*listed, deleting=claim_deleting),
            [each.uid for each in listed if each == WORKLOAD],
        ),
        {made.metadata.name: (made, ACTIVE)},
        rules=rules,
        nodes={"node-0": node()},
        watched_since_before_allocation=seen,
        allocated_at=0.0 if new_claim else -inf,
    )
    on.written = {WORKLOAD.uid} & {each.uid for each in listed}
    on.snapshot()
    return on


def new(*names: str) -> tuple[Pod, ...]:
    return tuple(owned(pending(name)) for name in names)


def lists(on: DecisionStage, seconds: float = 0.0) -> list[tuple[str, ...]]:
    """The lists that claimctl writes within the time, by the names of pods and workloads."""
    writes = on.settle(seconds=seconds)
    return [
        tuple(each.name for each in write.reserved_for if not is_tombstone(each))
        for write in writes
        if isinstance(write, WriteList)
    ]


def test_one_write_adds_the_hold_and_all_pending_pods_of_the_workload() -> None:
    on = stage(pod_ref("a"))
    on.come(*new("b", "c"))
    on.put(running("a"))
    assert lists(on) == [("a", "train", "b", "c")]


def test_a_later_pod_is_listed_when_it_comes() -> None:
    on = stage(WORKLOAD)
    assert lists(on) == []
    on.come(*new("b"))
    assert lists(on) == [("train", "b")]


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([pod_group("team", "another-claim")], [("train", "b")]),
        ([pod_group("team", "another-claim", gang=True)], []),
        ([pod_group("team")], []),
        ([], []),
    ],
    ids=["a group without the claim", "a gang", "a group with the claim", "an unknown group"],
)
def test_a_pod_is_listed_unless_its_group_may_share_the_claim(
    groups: list[PodGroup], expected: list[tuple[str, ...]]
) -> None:
    on = stage(WORKLOAD)
    on.groups = {group.metadata.name: group for group in groups}
    on.come(owned(pending("b", group="team")))
    assert lists(on) == expected


MAPPED = NodeAllocatableResource(mapping=Present())


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"node_allocatable_resources": {"cpu": MAPPED}}, [()]),
        ({"node_allocatable_resource_mappings": {"cpu": Present()}}, [()]),
        ({"node_allocatable_resources": {"memory": NodeAllocatableResource()}}, [("train", "b")]),
        ({"node_allocatable_resources": {"cpu": MAPPED}, "name": "gpu-7"}, [("train", "b")]),
    ],
    ids=["1.37", "1.36", "overhead only", "another device"],
)
def test_no_pod_is_listed_beside_another_with_a_device_that_pods_cannot_share(
    fields: dict[str, Any], expected: list[tuple[str, ...]]
) -> None:
    on = stage(WORKLOAD)
    pool = ResourcePool(name="node-0")
    devices = (Device(**{"name": "gpu-0", **fields}),)
    published = ResourceSliceSpec(driver="gpu.example.com", pool=pool, devices=devices)
    on.slices = (slim_slice(ResourceSlice(spec=published)),)
    on.come(*new("b"))
    assert lists(on) == expected


def test_pods_are_listed_in_the_order_of_their_arrival() -> None:
    on = stage(WORKLOAD)
    on.come(*new("z"))
    on.time += 1.0
    on.come(*new("b", "a"))
    assert lists(on) == [("train", "z", "a", "b")]


CROWDS = [
    pytest.param(["b", "c", "d"], "", [], id="few pods"),
    pytest.param(["b", "c", "d", "e"], "", ["b", "c", "d", "e"], id="a crowd"),
    pytest.param(["b", "c", "d"], "c", ["c"], id="few pods, at one of which the scheduler failed"),
    pytest.param(["b", "c", "d", "e"], "c", ["b", "c", "d", "e"], id="a crowd, one failed"),
]


@pytest.mark.parametrize(("names", "failing", "expected"), CROWDS)
@pytest.mark.parametrize("seconds", [QUIET_SECONDS, 100.0])
def test_few_pods_are_listed_if_the_scheduler_failed_at_them_and_a_crowd_at_once(
    names: list[str], failing: str, expected: list[str], seconds: float
) -> None:
    on = stage(WORKLOAD, rules=with_rules(RULES, crowd=3))
    on.come(*(failed(each) if each.metadata.name == failing else each for each in new(*names)))
    on.time += seconds
    assert lists(on) == ([("train", *expected)] if expected else [])


def test_few_pods_are_left_to_the_scheduler_by_the_write_that_adds_the_hold() -> None:
    on = stage(pod_ref("a"), rules=with_rules(RULES, crowd=3))
    on.come(*new("b", "c"))
    on.put(running("a"))
    assert lists(on, QUIET_SECONDS) == [("a", "train")]


@pytest.mark.parametrize("listed", [(), (WORKLOAD,)], ids=["the hold", "failed pods"])
def test_nothing_is_written_while_a_scheduler_writes_a_few_pods(
    listed: tuple[Reference, ...],
) -> None:
    """Each write in between would make those of all other pods fail once more."""
    on = stage(pod_ref("a"), *listed, rules=with_rules(RULES, crowd=8), new_claim=True)
    on.put(owned(running("a")))
    on.come(*new("b", "c"), *map(failed, new("d")))
    for name in ("b", "c"):
        on.time += QUIET_SECONDS - 0.01
        assert lists(on) == []
        on.gain_entries(name)
        on.put(owned(running(name)))
    found = ("a", *(each.name for each in listed), "b", "c")
    assert lists(on, QUIET_SECONDS) == [(*found, *(["d"] if listed else ["train", "d"]))]


@pytest.mark.parametrize("coming", [False, True], ids=["one waits", "pods come all the time"])
def test_a_scheduler_that_writes_on_and_on_is_waited_for_no_longer_than_a_second(
    coming: bool,
) -> None:
    on = stage(pod_ref("a"), rules=with_rules(RULES, crowd=80), new_claim=True)
    on.put(owned(running("a")))
    on.come(*new("z"))
    for number in range(40):
        name = f"b{number}"
        if coming:
            on.come(*new(name))
        if lists(on):
            break
        on.time += QUIET_SECONDS / 2
        on.gain_entries(name)
        on.put(owned(running(name)))
    assert on.time == pytest.approx(BUSY_SECONDS)


def test_the_hold_of_a_claim_that_lists_all_its_pods_is_not_late() -> None:
    on = stage(pod_ref("a"), rules=with_rules(RULES, crowd=8))
    on.put(owned(running("a")))
    assert lists(on) == [("a", "train")]


def test_the_pods_of_a_crowd_that_are_listed_already_count() -> None:
    on = stage(WORKLOAD, rules=with_rules(RULES, crowd=3))
    on.come(*new("b", "c", "d", "e"))
    lists(on)
    on.come(*new("f"))
    assert lists(on) == [("train", "b", "c", "d", "e", "f")]
    on.put(*(owned(running(name)) for name in "bcde"))
    on.come(*new("g"))
    assert lists(on) == []


def test_a_pod_is_listed_as_soon_as_the_scheduler_fails_at_it() -> None:
    on = stage(WORKLOAD, rules=with_rules(RULES, crowd=3))
    on.come(*new("b"))
    on.time += 100.0
    assert lists(on) == []
    on.put(*map(failed, new("b")))
    assert lists(on) == [("train", "b")]


def test_a_pod_that_a_list_showed_first_is_not_listed() -> None:
    on = stage(WORKLOAD)
    on.put(*new("b"))
    assert lists(on) == []


def test_a_pod_older_than_the_first_seen_version_of_the_claim_is_not_listed() -> None:
    on = stage(WORKLOAD, seen=False)
    on.come(*new("b"))
    on.arrived["uid-b"] -= 1.0
    assert lists(on) == []


@pytest.mark.parametrize("fails", [False, True])
def test_a_pod_whose_entry_was_removed_is_not_listed_again(fails: bool) -> None:
    on = stage(WORKLOAD)
    on.come(*new("b", "c"))
    assert lists(on) == [("train", "b", "c")]
    on.lose_entries("b")
    if fails:
        on.put(*map(failed, new("b")))
    assert lists(on, seconds=50.0) == []


def test_a_pod_is_not_listed_again_in_the_write_that_adds_the_hold_again() -> None:
    on = stage(WORKLOAD, pod_ref("a"))
    on.put(running("a"))
    on.come(*new("b"))
    assert lists(on) == [("train", "a", "b")]
    on.lose_entries("b", "train")
    assert lists(on) == [("a", "train")]


CASES = [
    ("bound", replace(owned(running("b")))),
    ("finished", owned(finished("b"))),
    ("deleting", owned(pod("b", deleting=True))),
    ("of no controller", pending("b")),
    ("of another controller", owned(pending("b"), "uid-elsewhere")),
    ("of a PodGroup", owned(pending("b", group="train"))),
    ("with another scheduler", owned(slow(pending("b"), scheduler="volcano"))),
    ("with a volume", owned(slow(pending("b"), volume=True))),
]


@pytest.mark.parametrize("made", [made for _, made in CASES], ids=[name for name, _ in CASES])
def test_a_pod_that_is_not_simple_is_not_listed(made: Pod) -> None:
    on = stage(WORKLOAD)
    on.come(made)
    assert all("b" not in each for each in lists(on))


def test_a_gated_pod_and_a_pod_of_a_gang_are_not_listed() -> None:
    gated, ganged = new("b", "c")
    gated = replace(gated, spec=replace(gated.spec, scheduling_gates=(Present(),)))
    ganged = replace(ganged, spec=replace(ganged.spec, workload_ref=Present()))
    on = stage(WORKLOAD)
    on.come(gated, ganged)
    assert lists(on) == []


def test_a_pod_of_a_known_scheduler_is_listed() -> None:
    on = stage(WORKLOAD, rules=with_rules(RULES, known_schedulers=frozenset({"volcano"})))
    on.come(owned(slow(pending("b"), scheduler="volcano")))
    assert lists(on) == [("train", "b")]


def frozen() -> DecisionStage:
    on = stage(WORKLOAD)
    on.frozen = True
    return on


@pytest.mark.parametrize(
    "on",
    [
        pytest.param(stage(WORKLOAD, rules=with_rules(RULES, list_ahead=False)), id="the setting"),
        pytest.param(frozen(), id="a frozen namespace"),
        pytest.param(stage(WORKLOAD, claim_deleting=True), id="the claim is being deleted"),
        pytest.param(stage(WORKLOAD, deleting=True), id="the reservation is withdrawn"),
    ],
)
def test_nothing_is_listed_where_it_is_off(on: DecisionStage) -> None:
    on.come(*new("b"))
    assert all("b" not in each for each in lists(on))


def test_nothing_is_listed_where_the_hold_is_not() -> None:
    on = stage(pod_ref("a"), rules=with_rules(RULES, dialect="native"))
    on.put(running("a"))
    on.come(*new("b"))
    assert lists(on) == []


def test_pods_that_claimctl_does_not_list_keep_their_places() -> None:
    taken = [f"r{number}" for number in range(LIMIT - 3)]
    on = stage(WORKLOAD, *map(pod_ref, taken))
    on.put(*map(running, taken), pending("foreign"))
    on.come(*new("b", "c", "d"))
    (written,) = lists(on)
    assert written[LIMIT - 2 :] == ("b",)


def test_the_entry_of_a_pending_pod_that_is_gone_goes_with_a_live_read() -> None:
    on = stage(WORKLOAD, rules=with_rules(RULES, kcm_cleans_mixed_lists=False))
    on.come(*new("b", "c"))
    assert lists(on) == [("train", "b", "c")]
    on.remove("b")
    assert lists(on, 1.0) == [("train", "c")]


def test_dead_pods_give_their_places_to_new_ones_before_the_hold_does() -> None:
    old = [f"o{number}" for number in range(LIMIT - 7)]
    rules = with_rules(RULES, kcm_cleans_mixed_lists=False)
    on = stage(WORKLOAD, *map(pod_ref, old), rules=rules)
    on.put(*map(running, old))
    on.settle(seconds=20)
    for first in (0, 4, 8):
        on.remove(*old[first : first + 4])
        on.come(*new(*(f"n{number}" for number in range(first, first + 4))))
        assert all("train" in written for written in lists(on, 0.1))
    assert on.claim is not None
    assert on.snapshot().references[0] == WORKLOAD


def trapped(*names: str) -> DecisionStage:
    """Pods that were listed ahead, and that find no node."""
    on = stage(WORKLOAD)
    on.come(*new(*names))
    assert lists(on) == [("train", *names)]
    on.put(*(owned(pending(name, unschedulable_at=after(on.time))) for name in names))
    return on


def test_pods_that_are_stuck_give_their_entries_up_if_none_is_bound_for_some_seconds() -> None:
    on = trapped("b", "c")
    assert lists(on, seconds=STUCK_SECONDS - 2) == []
    assert lists(on, seconds=2.0) == [("train",)]


def test_an_entry_is_not_given_up_of_a_pod_that_is_bound_and_looks_stuck_in_a_late_cache() -> None:
    on = trapped("b", "c")
    bound = owned(running("c"))
    on.unseen_pods[bound.metadata.uid] = bound
    assert lists(on, seconds=STUCK_SECONDS) == []
    del on.unseen_pods[bound.metadata.uid]
    assert lists(on, seconds=1.0) == [("train",)]


def test_a_pod_that_comes_while_others_are_stuck_is_not_listed() -> None:
    on = trapped("b")
    lists(on, seconds=STUCK_SECONDS)
    on.come(*new("c"))
    assert lists(on) == []


def test_pods_that_waited_for_devices_are_listed_when_the_claim_is_allocated() -> None:
    """Their conditions are old: they could not be scheduled before."""
    on = stage(pod_ref("a"))
    on.come(*new("a", "b", "c"))
    for name in ("a", "b", "c"):
        on.put(owned(pending(name, unschedulable_at=after(-600))))
    assert lists(on) == [("a", "train", "b", "c")]


@pytest.mark.parametrize(
    ("beside", "given_up"),
    [
        pytest.param(WORKLOAD, {"uid-b", "uid-c"}, id="a hold"),
        pytest.param(pod_ref("d"), set(), id="a pod that is pending"),
        pytest.param(tomb("gone"), set(), id="a tombstone"),
    ],
)
def test_entries_are_given_up_only_beside_one_that_keeps_the_claim_allocated(
    beside: Reference, given_up: set[str]
) -> None:
    on = trapped("b", "c", "d")
    lists(on)
    on.time += STUCK_SECONDS
    listed = claim(pod_ref("b"), pod_ref("c"), beside)
    on.claim = written_by_claimctl(listed, ["uid-b", "uid-c"])
    seen = on.snapshot()
    assert entries_to_give_up(seen).uids == given_up


def test_giving_the_devices_up_waits_for_the_binding_time_from_the_removal_on() -> None:
    on = trapped("b")
    assert lists(on, seconds=STUCK_SECONDS + 58.0) == [("train",)]
    assert lists(on, seconds=10.0) == [()]


def full() -> DecisionStage:
    """A full list: one pod runs, the others were listed ahead and find no node; one pod waits."""
    names = [f"p{number:03}" for number in range(LIMIT - 2)]
    on = stage(WORKLOAD, pod_ref("a"))
    on.put(running("a"))
    on.come(*new(*names))
    lists(on)
    on.put(*(owned(pending(name, unschedulable_at=after(on.time))) for name in names))
    return on


def test_in_a_full_list_a_pod_that_stays_unschedulable_makes_room() -> None:
    on = full()
    on.come(*new("late", "later"))
    (stepped_aside,) = lists(on, seconds=PATIENCE_SECONDS - 2.0)
    assert "train" not in stepped_aside
    on.gain_entries("late")
    assert lists(on, seconds=1.0) == []
    (written,) = lists(on, seconds=2.0)
    assert set(stepped_aside) - set(written) == {"p000"}


def test_a_list_with_room_keeps_the_entries_of_unschedulable_pods() -> None:
    on = full()
    on.remove("p000", "p001", "p002")
    lists(on, seconds=30.0)
    on.come(*new("late"))
    written = lists(on, seconds=5 * PATIENCE_SECONDS)
    assert all("p100" in each for each in written)


def withdraw(on: DecisionStage) -> None:
    made, state = on.reservations["train-slice"]
    deleted = replace(made, metadata=replace(made.metadata, deletion_timestamp=NOW))
    on.reservations["train-slice"] = deleted, state


@pytest.mark.parametrize(
    "others",
    [(), (Reference(api_group="example.com", resource="vms", name="vm", uid="v"),)],
    ids=["alone", "beside a foreign hold"],
)
def test_a_withdrawn_reservation_takes_out_what_it_listed_ahead_and_waits(
    others: tuple[Reference, ...],
) -> None:
    on = stage(WORKLOAD, *others)
    on.come(*new("b"))
    left = tuple(each.name for each in others)
    assert lists(on) == [("train", *left, "b")]
    withdraw(on)
    assert lists(on, seconds=50.0) == [("train", *left)]
    assert condition(on, "Released") == ("False", "PodsMayBeBound")
    assert lists(on, seconds=15.0) == [left]


def test_a_withdrawn_reservation_leaves_what_a_scheduler_listed() -> None:
    on = stage(WORKLOAD, pod_ref("b"))
    on.put(*new("b"))
    withdraw(on)
    assert lists(on, seconds=500.0) == [("b",)]


def test_a_pod_listed_ahead_blocks_the_release_of_a_workload_that_has_ended() -> None:
    on = stage(WORKLOAD)
    on.come(*new("b"))
    assert lists(on) == [("train", "b")]
    on.reservations["train-slice"] = (
        on.reservations["train-slice"][0],
        WorkloadState(WorkloadPhase.ENDED, "uid-train", pod_owners=ACTIVE.pod_owners),
    )
    assert lists(on, seconds=1000.0) == []
    assert condition(on, "Released") == ("False", "ConsumersLeft")


OWNERS = ["uid-set", "uid-elsewhere"]


@st.composite
def crowds(draw: st.DrawFn) -> tuple[Snapshot, dict[str, Reference]]:
    names = [f"p{number}" for number in range(8)]
    makers: list[Callable[[str], Pod]] = [
        lambda name: running(name),
        lambda name: pending(name),
        lambda name: failed(pending(name)),
        lambda name: finished(name),
        lambda name: pod(name, deleting=True),
    ]
    pods = tuple(
        owned(draw(st.sampled_from(makers))(name), draw(st.sampled_from(OWNERS))) for name in names
    )
    filler = draw(st.sampled_from([0, 0, 248, 252, 255]))
    entries = [
        WORKLOAD,
        *(pod_ref(f"f{number}") for number in range(filler)),
        *draw(st.lists(st.sampled_from([*map(pod_ref, names), *map(tomb, names)]), max_size=3)),
    ]
    listed = {each.uid: each for each in entries[:LIMIT]}
    ages = st.sampled_from([0.0, 1.0, 100.0])
    known = draw(st.lists(st.sampled_from([each.metadata.uid for each in pods]), unique=True))
    seen = draw(st.lists(st.sampled_from([each.metadata.uid for each in pods]), unique=True))
    memory = Memory(
        arrivals=Arrivals(
            claim_age=draw(ages),
            pod_age={uid: draw(ages) for uid in known},
            entry_age=dict.fromkeys(seen, 1.0),
        )
    )
    made = claim(*listed.values(), deleting=draw(st.booleans()))
    dialect = draw(st.sampled_from(["hold", "podgroup", "native"]))
    rules = Rules(dialect, list_ahead=True, crowd=draw(st.sampled_from([0, 2, 8])))
    snapshot = Snapshot(NOW, "train", "slice", made, pods=pods, rules=rules, memory=memory)
    return snapshot, listed


@given(crowds())
def test_only_pods_of_the_workload_that_would_wait_are_listed_and_never_too_many(
    given_: tuple[Snapshot, dict[str, Reference]],
) -> None:
    snapshot, listed = given_
    consumers, seen = Consumers.of(snapshot.pods), snapshot.memory.arrivals
    found = pods_to_list(snapshot, {"uid-set"}, listed)
    assert len({*listed, *(each.uid for each in found)}) == len(listed) + len(found)
    assert not found or len(listed) + len(found) <= LIMIT
    for each in found:
        made = consumers.pending[each.uid]
        owner = made.metadata.controller()
        assert owner is not None
        assert owner.uid == "uid-set"
        assert each.uid not in seen.entry_age
        assert seen.pod_age[each.uid] <= seen.claim_age
        assert len(consumers.pending) > snapshot.rules.crowd or failed_to_bind(made)
        assert snapshot.claim is not None
        assert not snapshot.claim.metadata.deleting
        assert snapshot.rules.dialect != "native"
