"""What holds for the list of any claim, whatever pods and entries there are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import WriteList
from claimctl.reservation.facts.memory import Memory
from claimctl.reservation.facts.pods import Consumers
from claimctl.reservation.facts.references import LIMIT, is_pod, is_tombstone, is_workload
from claimctl.reservation.facts.snapshot import Evidence, Rules, Snapshot
from claimctl.reservation.reserved_for.consistency import DesiredHolds, consistent_list
from claimctl.wire.claims import Reference
from claimctl.wire.pods import Pod
from tests.support.builders import (
    NOW,
    claim,
    deployment_ref,
    finished,
    pending,
    pod,
    pod_ref,
    running,
    tomb,
)
from tests.support.claim_cases import ACTIVE, HOLD, OLD_HOLD, WORKLOAD, lists, stage

FOREIGN = Reference(api_group="example.com", resource="vms", name="vm", uid="v")
OURS, OLD = deployment_ref(), deployment_ref(uid="uid-old")
NAMES = [f"p{i}" for i in range(6)]
PODS: list[Callable[[str], Pod]] = [
    lambda name: running(name),
    lambda name: pending(name),
    lambda name: finished(name),
    lambda name: finished(name, deleting=True),
    lambda name: pod(name, deleting=True),
]


@st.composite
def snapshots(draw: st.DrawFn) -> tuple[Snapshot, DesiredHolds]:
    pods: list[Pod] = [
        draw(st.sampled_from(PODS))(name)
        for name in draw(st.lists(st.sampled_from(NAMES), unique=True))
    ]
    entries = draw(
        st.lists(
            st.sampled_from(
                [OURS, OLD, FOREIGN, *map(pod_ref, NAMES), *map(tomb, NAMES)]
                + [pod_ref(f"x{i}") for i in range(3)]
            ),
            unique_by=lambda reference: reference.uid,
        )
    )
    filler = [pod_ref(f"f{i}") for i in range(draw(st.sampled_from([0, 0, 0, 250])))]
    filled = [running(reference.name) for reference in filler]
    entries = draw(st.permutations(entries))[: LIMIT - len(filler)]
    existing = {p.metadata.uid for p in (*pods, *filled)}
    asked = frozenset(reference.uid for reference in entries) - existing
    snapshot = Snapshot(
        now=NOW,
        namespace="train",
        name="slice",
        claim=claim(
            *entries,
            *filler,
            shared=draw(st.booleans()),
            deleting=draw(st.booleans()),
            allocated=True,
        ),
        pods=(*pods, *filled),
        frozen=draw(st.booleans()),
        rules=Rules(kcm_cleans_mixed_lists=draw(st.booleans())),
        evidence=Evidence(gone_pods=draw(st.sampled_from([frozenset(), asked]))),
        memory=Memory(
            dead_age={uid: draw(st.sampled_from([0.0, 60.0])) for uid in asked},
            version_age=draw(st.sampled_from([0.0, 60.0])),
        ),
    )
    keep = draw(st.sampled_from([{}, {OURS.uid: OURS}]))
    drop = draw(st.sampled_from([frozenset(), frozenset({OLD.uid})]))
    return snapshot, DesiredHolds(keep, drop, frozenset({OURS.uid, OLD.uid}))


@given(snapshots())
def test_the_list_is_one_the_server_accepts(given_: tuple[Snapshot, DesiredHolds]) -> None:
    snapshot, holds = given_
    planned = consistent_list(snapshot, holds).reserved_for
    uids = [reference.uid for reference in planned]
    before = {reference.uid for reference in snapshot.references}
    assert len(uids) == len(set(uids)) <= LIMIT
    assert snapshot.claim is not None
    if snapshot.claim.metadata.deleting:
        assert set(uids) <= before


@given(snapshots())
def test_only_what_is_proven_dead_or_released_is_removed(
    given_: tuple[Snapshot, DesiredHolds],
) -> None:
    snapshot, holds = given_
    planned = consistent_list(snapshot, holds).reserved_for
    pods, kept = Consumers.of(snapshot.pods), {reference.uid for reference in planned}
    leaving = {uid for uid, each in pods.finished.items() if each.metadata.deleting}
    folded = snapshot.shared and not snapshot.frozen and OURS.uid in kept
    for reference in snapshot.references:
        if reference.uid in kept:
            continue
        if is_workload(reference):
            assert reference.uid in holds.drop
        elif not folded or (is_tombstone(reference) and reference.uid not in pods.bound):
            assert reference.uid in snapshot.evidence.gone_pods | pods.dropped.keys() | leaving


@given(snapshots())
def test_a_live_pod_is_never_a_tombstone_and_a_listed_one_stays(
    given_: tuple[Snapshot, DesiredHolds],
) -> None:
    snapshot, holds = given_
    planned = consistent_list(snapshot, holds).reserved_for
    pods = Consumers.of(snapshot.pods)
    listed = {reference.uid: reference for reference in planned}
    behind = snapshot.memory.version_age == 0
    for uid in pods.bound:
        entry = listed.get(uid)
        assert entry is None or is_pod(entry) or (behind and entry in snapshot.references)
    if not snapshot.shared:
        before = {reference.uid for reference in snapshot.references if is_pod(reference)}
        assert before & (pods.bound.keys() | pods.pending.keys()) <= listed.keys()


@given(snapshots())
def test_a_second_pass_changes_nothing(given_: tuple[Snapshot, DesiredHolds]) -> None:
    snapshot, holds = given_
    assume(len(snapshot.references) < LIMIT)  # a full list makes room first, and adds then
    assert snapshot.claim is not None
    first = consistent_list(snapshot, holds)
    again = Snapshot(
        now=NOW,
        namespace="train",
        name="slice",
        claim=claim(
            *first.reserved_for,
            shared=snapshot.shared,
            deleting=snapshot.claim.metadata.deleting,
        ),
        pods=snapshot.pods,
        frozen=snapshot.frozen,
        rules=snapshot.rules,
        evidence=snapshot.evidence,
        memory=snapshot.memory,
    )
    second = consistent_list(again, holds)
    assert second.reserved_for == first.reserved_for


def test_a_finished_pod_beside_a_hold_becomes_a_tombstone_until_it_is_gone() -> None:
    for rules in (HOLD, OLD_HOLD):
        on = stage(claim(pod_ref("a"), pod_ref("b"), WORKLOAD), ACTIVE, rules)
        on.put(finished("a"), running("b"))
        assert lists(on.settle()) == [((tomb("a"), pod_ref("b"), WORKLOAD), False)]
        on.remove("a")
        assert lists(on.settle(seconds=20)) == [((pod_ref("b"), WORKLOAD), False)]


def test_a_finished_pod_that_is_being_deleted_gets_no_tombstone() -> None:
    """kube-controller-manager removes its entry, and adds no pod that is being deleted."""
    listed = claim(pod_ref("a"), pod_ref("b"), WORKLOAD)
    pods = (finished("a", deleting=True), running("b"), finished("c", deleting=True))
    on, without_cleaning = stage(listed, ACTIVE), stage(listed, ACTIVE, OLD_HOLD)
    on.put(*pods)
    assert lists(on.settle(seconds=9)) == []
    assert lists(on.settle(seconds=2)) == [((pod_ref("b"), WORKLOAD), False)]
    without_cleaning.put(*pods)
    assert lists(without_cleaning.settle(seconds=1)) == [((pod_ref("b"), WORKLOAD), False)]


def test_tombstones_alone_are_written_on_the_list_but_the_last_attempt_on_the_version() -> None:
    on = stage(claim(pod_ref("a"), pod_ref("b"), WORKLOAD), ACTIVE)
    on.put(finished("a"), running("b"))
    snapshot = on.snapshot()
    write = decide(snapshot).write
    assert isinstance(write, WriteList)
    assert write.present == snapshot.references
    last = replace(snapshot, evidence=replace(snapshot.evidence, last_attempt=True))
    assert decide(last).write == replace(write, present=())


def test_a_finished_pod_that_is_not_listed_gets_a_tombstone_too() -> None:
    on = stage(claim(pod_ref("b"), WORKLOAD), ACTIVE)
    on.put(finished("a"), running("b"))
    assert lists(on.settle()) == [((pod_ref("b"), WORKLOAD, tomb("a")), False)]


def test_a_vanished_pod_is_left_to_a_kcm_that_cleans_and_removed_beside_one_that_does_not() -> None:
    on = stage(claim(pod_ref("a"), pod_ref("b"), WORKLOAD), ACTIVE, OLD_HOLD)
    on.put(running("b"))
    assert lists(on.settle(seconds=0.5)) == []
    assert lists(on.settle(seconds=0.5)) == [((pod_ref("b"), WORKLOAD), False)]
    on = stage(claim(pod_ref("a"), pod_ref("b"), WORKLOAD), ACTIVE)
    on.put(running("b"))
    assert lists(on.settle(seconds=9)) == []
    assert lists(on.settle(seconds=2)) == [((pod_ref("b"), WORKLOAD), False)]


def test_where_kcm_cleans_nothing_pods_that_go_within_a_moment_leave_in_one_write() -> None:
    on = stage(claim(pod_ref("a"), pod_ref("b"), pod_ref("c"), WORKLOAD), ACTIVE, OLD_HOLD)
    on.put(running("b"), running("c"))
    assert lists(on.settle(seconds=0.9)) == []
    on.remove("b")
    assert lists(on.settle(seconds=0.2)) == [((pod_ref("c"), WORKLOAD), False)]


def test_a_full_list_loses_dead_entries_at_once() -> None:
    others = [f"p{number}" for number in range(LIMIT - 2)]
    on = stage(claim(pod_ref("a"), *map(pod_ref, others), WORKLOAD), ACTIVE, OLD_HOLD)
    on.put(*map(running, others))
    assert lists(on.settle()) == [((*map(pod_ref, others), WORKLOAD), False)]


def test_an_entry_that_may_be_of_an_unreadable_pod_stays_and_nothing_is_looked_at_again() -> None:
    """``dead_age`` lacks it; the next event of the pod brings the claim back."""
    on = stage(claim(pod_ref("a"), WORKLOAD), ACTIVE, OLD_HOLD).snapshot()
    snapshot = replace(on, memory=replace(on.memory, dead_age={}))
    plan = consistent_list(snapshot, DesiredHolds({OURS.uid: OURS}))
    assert (plan.reserved_for, plan.confirm, plan.look_again) == (on.references, (), None)


def test_a_listed_pod_that_only_the_cache_lacks_stays() -> None:
    on = stage(claim(pod_ref("new"), WORKLOAD), ACTIVE, OLD_HOLD)
    on.unseen_pods = {"uid-new": running("new")}
    assert on.settle(seconds=60) == []


@pytest.mark.parametrize(
    ("age", "listed", "look_again"),
    [
        pytest.param(9.0, (OURS, pod_ref("dead")), 1.0, id="KCM still has a second"),
        pytest.param(10.0, (OURS,), None, id="KCM had its time"),
    ],
)
def test_the_entry_of_a_dead_pod_is_left_to_kcm_for_a_time(
    age: float, listed: tuple[Reference, ...], look_again: float | None
) -> None:
    snapshot = Snapshot(
        NOW,
        "team",
        "slice",
        claim(OURS, pod_ref("dead")),
        rules=Rules(kcm_cleans_mixed_lists=True, dead_reference_seconds=10),
        memory=Memory(dead_age={"uid-dead": age}),
        evidence=Evidence(gone_pods=frozenset({"uid-dead"})),
    )
    holds = DesiredHolds(keep={OURS.uid: OURS}, own=frozenset({OURS.uid}))
    plan = consistent_list(snapshot, holds)
    assert (plan.reserved_for, plan.look_again) == (listed, look_again)
