"""Pods that a scheduler may still bind: which releases they hold up, and for how long."""

from __future__ import annotations

from dataclasses import replace as with_facts
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claimctl.reservation.reasons import Reason
from claimctl.reservation.release.binding import (
    PENDING_PODS_GIVE_WAY,
    binding_left,
    binding_seconds,
    entries_to_take_out,
    one_by_one,
)
from claimctl.reservation.release.blockers import users
from claimctl.reservation.snapshot import Memory, Openings, Rules, Snapshot
from claimctl.reservation.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference
from claimctl.wire.pods import Pod, PodSpec, PodWorkloadReference
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    after,
    claim,
    deployment_ref,
    finished,
    group_ref,
    node,
    pending,
    pod_group,
    pod_ref,
    reservation,
    running,
    slow,
    tomb,
    written_by_claimctl,
)
from tests.support.claim_cases import condition, held_status, lists
from tests.support.stage import Stage

WORKLOAD, GROUP = deployment_ref(), group_ref()
OLD = deployment_ref(uid="uid-old")
ACTIVE = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=3)
GROUPED = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=3, pod_group="train")
NATIVE, HOLD, PODGROUP = Rules("native"), Rules("hold"), Rules("podgroup")
BOUND_LATE = "PodsMayBeBound"


def stage(
    rules: Rules, *listed: Reference, deleting: bool = False, created_for: Reference = WORKLOAD
) -> Stage:
    grouped = rules.dialect == "podgroup"
    status = held_status(dialect=rules.dialect, pod_group_name="train" if grouped else "")
    made = reservation(status=status, deleting=deleting)
    shared = rules.dialect == "native"
    on = Stage(
        claim(*listed, shared=shared, created_for=created_for if shared else None),
        {made.metadata.name: (made, GROUPED if grouped else ACTIVE)},
        rules=rules,
        nodes={"node-0": node()},
    )
    on.groups = {"train": pod_group()}
    return on


def waits(on: Stage, seconds: float) -> None:
    """The release goes on up to the last moment of the wait, and then ends in one write."""
    assert [deallocates for _, deallocates in lists(on.settle(seconds=seconds - 1))] in (
        [],
        [False],
    )
    assert condition(on, "Released") == ("False", BOUND_LATE)
    assert lists(on.settle(seconds=1.5)) == [((), True)]


def trapped(on: Stage, *pods: Pod) -> Stage:
    on.nodes = {"node-0": node(cordoned=True), "node-1": node("node-1")}
    on.put(*pods)
    on.settle(seconds=59.9)
    return on


def stuck(name: str) -> Pod:
    return pending(name, unschedulable_at=after(0), group="train")


@pytest.mark.parametrize(
    ("rules", "listed"), [(NATIVE, (WORKLOAD,)), (PODGROUP, (WORKLOAD, GROUP))]
)
def test_devices_out_of_reach_are_given_up_when_no_pod_can_be_bound_any_more(
    rules: Rules, listed: tuple[Reference, ...]
) -> None:
    on = trapped(stage(rules, *listed), stuck("a"))
    waits(on, 60)


def test_where_pods_are_listed_a_pod_that_never_was_holds_nothing_up() -> None:
    on = trapped(stage(HOLD, WORKLOAD), stuck("a"))
    assert lists(on.settle(seconds=1)) == [((), True)]


def test_an_entry_that_is_left_of_a_scheduler_goes_first_and_its_pod_is_waited_for() -> None:
    on = trapped(stage(HOLD, pod_ref("a"), WORKLOAD), stuck("a"), stuck("b"))
    assert lists(on.settle(seconds=1)) == [((WORKLOAD,), False)]
    waits(on, 59)


@pytest.mark.parametrize("rules", [HOLD, PODGROUP])
def test_entries_that_a_scheduler_left_before_anybody_held_the_claim_end_the_same_way(
    rules: Rules,
) -> None:
    """Both pods wait for the claim, and it would take the last entry to have it deallocated."""
    made = reservation(reallocate_timeout_seconds=0)
    on = stage(rules, pod_ref("a"), pod_ref("b"))
    on.reservations = {made.metadata.name: (made, ACTIVE)}
    on = trapped(on, stuck("a"), stuck("b"))
    held = (pod_ref("a"), pod_ref("b"), WORKLOAD)
    assert lists(on.writes) == [(held, False), ((WORKLOAD,), False)]
    assert lists(on.settle(seconds=1)) == [((), True)]


def test_the_entry_of_a_pod_that_may_be_on_its_way_stays() -> None:
    on = trapped(stage(HOLD, pod_ref("a"), WORKLOAD), pending("a"), stuck("b"))
    assert lists(on.settle(seconds=3600)) == []
    assert condition(on, "Released") == ("False", "ConsumersLeft")
    on.remove("a")
    on.claim = claim(WORKLOAD, version="20")
    assert lists(on.settle(seconds=1)) == [((), True)]


@pytest.mark.parametrize(
    ("rules", "listed"), [(NATIVE, (WORKLOAD,)), (PODGROUP, (WORKLOAD, GROUP))]
)
def test_a_withdrawn_reservation_waits_for_pods_that_may_be_bound(
    rules: Rules, listed: tuple[Reference, ...]
) -> None:
    on = stage(rules, *listed, deleting=True)
    on.put(pending("a", group="train"))
    waits(on, 60)


def test_a_withdrawn_hold_waits_only_for_pods_that_were_listed() -> None:
    on = stage(HOLD, WORKLOAD, deleting=True)
    on.put(pending("a"))
    assert lists(on.settle(seconds=1)) == [((), True)]
    on = stage(HOLD, pod_ref("a"), WORKLOAD, deleting=True)
    on.put(pending("a"))
    assert lists(on.settle(seconds=3600)) == []
    on.claim = claim(WORKLOAD, version="20")
    waits(on, 60)


@pytest.mark.parametrize(
    ("rules", "listed"),
    [
        (NATIVE, (WORKLOAD,)),
        (PODGROUP, (WORKLOAD, GROUP)),
        (HOLD, (pod_ref("a"), WORKLOAD)),
    ],
)
def test_a_deleted_claim_keeps_its_list_while_pods_may_be_bound(
    rules: Rules, listed: tuple[Reference, ...]
) -> None:
    on = stage(rules, *listed, deleting=False)
    assert on.claim is not None
    on.put(pending("a", group="train" if rules is PODGROUP else ""))
    on.decide()
    shared = rules is NATIVE
    created_for = WORKLOAD if shared else None
    on.claim = claim(*listed, deleting=True, version="11", shared=shared, created_for=created_for)
    assert lists(on.settle(seconds=59)) == []
    assert condition(on, "Released") == ("False", BOUND_LATE)
    assert lists(on.settle(seconds=1.5)) == [((), True)]


def test_a_deleted_claim_that_nobody_held_yet_does_not_wait_for_pods_that_wait_for_it() -> None:
    """A scheduler listed one and ended: no scheduler binds it now, and KCM leaves its entry."""
    on = stage(HOLD, pod_ref("a"))
    on.reservations = {"train-slice": (reservation(), ACTIVE)}
    on.claim = claim(pod_ref("a"), deleting=True, version="11")
    on.put(pending("a"))
    waits(on, 60)
    on = stage(HOLD, pod_ref("a"), pod_ref("b"))
    on.claim = claim(pod_ref("a"), pod_ref("b"), deleting=True, version="11")
    on.put(pending("a"), running("b"))
    assert lists(on.settle(seconds=3600)) == []


def test_no_hold_steps_aside_at_a_deleted_claim() -> None:
    names = [f"p{number}" for number in range(255)]
    on = stage(HOLD, *map(pod_ref, names), WORKLOAD)
    on.put(*map(running, names), pending("waiting"))
    assert lists(on.settle(seconds=1))[0] == (tuple(map(pod_ref, names)), False)
    on.claim = claim(*map(pod_ref, names), WORKLOAD, deleting=True, version="20")
    assert lists(on.settle(seconds=60)) == []


def test_a_deleted_claim_with_a_hold_waits_for_no_pod_that_was_never_listed() -> None:
    on = stage(HOLD, WORKLOAD)
    on.decide()
    on.claim = claim(WORKLOAD, deleting=True, version="11")
    on.put(pending("a"))
    assert lists(on.settle(seconds=4.5)) == []
    assert lists(on.settle(seconds=1)) == [((), True)]


def test_a_workload_made_again_gets_its_claim_when_its_pods_can_be_bound_to_no_other() -> None:
    on = stage(NATIVE, OLD, created_for=OLD)
    on.put(pending("a"))
    assert lists(on.settle(seconds=1)) == [((), False)]
    waits(on, 59)


def test_a_hold_that_finished_pods_crowd_waits_for_a_pod_that_was_listed() -> None:
    names = [f"p{number}" for number in range(255)]
    on = stage(HOLD, *map(tomb, names[1:]), pod_ref("next"), WORKLOAD)
    on.put(*map(finished, names), pending("next"))
    on.decide()
    on.claim = claim(*map(tomb, names), WORKLOAD, version="20")
    waits(on, 60)


@pytest.mark.parametrize("reason", sorted(set(Reason) - PENDING_PODS_GIVE_WAY))
def test_for_any_other_reason_a_pending_pod_counts_without_end(reason: Reason) -> None:
    seen = snapshot(HOLD, Openings(), WORKLOAD)
    (blocker,) = users(seen, reason, seen.consumers())
    assert (blocker.reason, blocker.after) == (Reason.CONSUMERS_LEFT, None)


def test_pods_with_volumes_and_of_other_schedulers_take_longer() -> None:
    rules = Rules(known_schedulers=frozenset({"default-scheduler", "mine"}))
    pod = pending("a")
    seconds = {
        60.0: (pod, slow(pod, scheduler="default-scheduler"), slow(pod, scheduler="mine")),
        600.0: (slow(pod, volume=True), slow(pod, scheduler="other")),
    }
    for expected, pods in seconds.items():
        assert [binding_seconds(each, rules) for each in pods] == [expected] * len(pods)
    hasty = Rules(binding_seconds=90, slow_binding_seconds=30)
    assert binding_seconds(slow(pod, volume=True), hasty) == 90


def test_pods_that_may_wait_for_their_gang_take_longer() -> None:
    pod, basic, gang = pending("a", group="train"), pod_group(), pod_group(gang=True)
    assert binding_seconds(pod, PODGROUP, (pod_group("other", gang=True), basic)) == 60
    for groups in ((gang,), (pod_group("other"),), ()):
        assert binding_seconds(pod, PODGROUP, groups) == 600
    of_a_workload = replace(pod, spec=PodSpec(workload_ref=PodWorkloadReference()))
    assert binding_seconds(of_a_workload, HOLD) == 600


def test_a_gang_holds_a_release_up_for_as_long_as_its_pods_may_wait_for_each_other() -> None:
    on = stage(PODGROUP, WORKLOAD, GROUP, deleting=True)
    on.groups = {"train": pod_group(gang=True)}
    on.put(pending("a", group="train"))
    waits(on, 600)


def test_a_slow_pod_holds_a_release_up_for_longer() -> None:
    on = stage(PODGROUP, WORKLOAD, GROUP, deleting=True)
    on.put(slow(pending("a", group="train"), volume=True), pending("b", group="train"))
    waits(on, 600)


def snapshot(
    rules: Rules, seen: Openings, *listed: Reference, deleting_age: float = -1
) -> Snapshot:
    return Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name=CLAIM,
        claim=claim(*listed, deleting=deleting_age >= 0),
        pods=(pending("a", group="train"),),
        groups=(pod_group(),),
        rules=rules,
        memory=Memory(openings=seen, deleting_age=max(deleting_age, 0)),
    )


@pytest.mark.parametrize(
    ("rules", "shared", "group_age", "answer"),
    [
        pytest.param(HOLD, False, inf, True, id="hold"),
        pytest.param(HOLD, True, inf, False, id="a claim that was created for a workload"),
        pytest.param(HOLD, False, 3600.0, False, id="a PodGroup was listed once"),
        pytest.param(PODGROUP, False, inf, False, id="pods may share the claim by a PodGroup"),
        pytest.param(NATIVE, False, inf, False, id="no pod is listed beside a workload"),
        pytest.param(NATIVE, True, inf, False, id="native"),
    ],
)
def test_pods_are_listed_one_by_one_where_nothing_else_lets_them_in(
    rules: Rules, shared: bool, group_age: float, answer: bool
) -> None:
    seen = snapshot(rules, Openings(group_age=group_age), pod_ref("a"))
    on = with_facts(seen, claim=claim(shared=shared, created_for=WORKLOAD if shared else None))
    assert one_by_one(on) is answer


@pytest.mark.parametrize(
    ("listed", "reason", "taken"),
    [
        pytest.param(
            (pod_ref("a"), WORKLOAD), Reason.WITHDRAWN, {"uid-a"}, id="a hold keeps the allocation"
        ),
        pytest.param(
            (pod_ref("a"), pod_ref("b")), Reason.WITHDRAWN, set(), id="pods alone: no hold is left"
        ),
        pytest.param(
            (pod_ref("a"), tomb("c")), Reason.WITHDRAWN, set(), id="a tombstone is no hold"
        ),
        pytest.param(
            (pod_ref("a"), GROUP), Reason.WITHDRAWN, set(), id="the fence removes the PodGroup, too"
        ),
        pytest.param(
            (pod_ref("a"), WORKLOAD),
            Reason.WORKLOAD_ENDED,
            set(),
            id="a reason for which pods do not give way",
        ),
        pytest.param((WORKLOAD,), Reason.WITHDRAWN, set(), id="a pod that is not listed"),
    ],
)
def test_the_fence_takes_out_what_was_listed_ahead_if_a_hold_stays_beside_it(
    listed: tuple[Reference, ...], reason: Reason, taken: set[str]
) -> None:
    seen = snapshot(HOLD, Openings())
    on = with_facts(seen, claim=written_by_claimctl(claim(*listed), ["uid-a"]))
    assert entries_to_take_out(on, reason, on.consumers()) == taken


def test_no_entry_is_taken_out_of_a_claim_that_is_deleted_or_gone() -> None:
    seen = snapshot(HOLD, Openings())
    going = written_by_claimctl(claim(pod_ref("a"), WORKLOAD, deleting=True), ["uid-a"])
    for on in (with_facts(seen, claim=going), with_facts(seen, claim=None)):
        assert entries_to_take_out(on, Reason.WITHDRAWN, on.consumers()) == frozenset()


def test_an_entry_of_a_scheduler_is_taken_out_only_if_its_pod_cannot_reach_the_devices() -> None:
    pods = (stuck("stuck"), pending("new"), stuck("unlisted"))
    listed = claim(pod_ref("stuck"), pod_ref("new"), WORKLOAD)
    on = with_facts(snapshot(HOLD, Openings()), claim=listed, pods=pods)
    assert entries_to_take_out(on, Reason.REALLOCATED, on.consumers()) == {"uid-stuck"}
    assert entries_to_take_out(on, Reason.WITHDRAWN, on.consumers()) == frozenset()


AGES = st.one_of(st.just(inf), st.floats(0, 1000))
OPENINGS = st.builds(
    Openings,
    watched_age=AGES,
    group_age=AGES,
    holder_age=AGES,
    entry_age=st.dictionaries(st.sampled_from(["uid-a", "uid-b"]), AGES),
)
LISTED = st.lists(st.sampled_from([WORKLOAD, GROUP, pod_ref("a"), pod_ref("b")]), unique=True)
RULES = st.sampled_from([NATIVE, HOLD, PODGROUP])
GIVES_WAY = st.sampled_from(sorted(PENDING_PODS_GIVE_WAY))


@given(RULES, OPENINGS, LISTED, GIVES_WAY)
def test_a_pod_counts_or_is_fenced_until_all_it_was_open_by_is_over(
    rules: Rules, seen: Openings, listed: list[Reference], reason: Reason
) -> None:
    on = snapshot(rules, seen, *listed)
    ages = [seen.watched_age, seen.group_age, seen.entry_age.get("uid-a", inf)]
    if rules is NATIVE:
        ages.append(seen.holder_age)
    others = {WORKLOAD, GROUP} if rules is NATIVE else {GROUP}
    counted = tuple(users(on, reason, on.consumers()))
    if pod_ref("a") in listed:
        assert [each.reason for each in counted] == [Reason.CONSUMERS_LEFT]
    elif others & set(listed):
        assert counted == ()
        assert binding_left(on, on.pods[0]) == 60
    else:
        left = 60 - min(ages)
        assert [each.after for each in counted] == ([left] if left > 0 else [])


@given(RULES, OPENINGS, LISTED, st.floats(0, 100))
def test_a_deletion_closes_a_claim_to_everybody(
    rules: Rules, seen: Openings, listed: list[Reference], age: float
) -> None:
    on = snapshot(rules, seen, *listed, deleting_age=age)
    assert binding_left(on, on.pods[0]) <= max(60 - age, 0)
    assert (60 - age > 0) or not tuple(users(on, Reason.CLAIM_DELETED, on.consumers()))
