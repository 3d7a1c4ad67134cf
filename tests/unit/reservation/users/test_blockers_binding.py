"""Pods that a scheduler may still bind: which releases they hold up, and for how long."""

from __future__ import annotations

from dataclasses import replace as with_facts
from math import inf
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from claimctl.reservation.facts.memory import Memory, Openings
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.reservation.users.blockers import (
    PENDING_PODS_GIVE_WAY,
    binding_left,
    entries_to_take_out,
    users,
)
from claimctl.wire.base import Present, encode
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod, PodResourceClaim, PodSpec
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
from tests.support.stage import DecisionStage

WORKLOAD, GROUP = deployment_ref(), group_ref()
OLD = deployment_ref(uid="uid-old")
ACTIVE = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=3)
GROUPED = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=3, pod_group="train")
NATIVE, HOLD, PODGROUP = Rules("native"), Rules("hold"), Rules("podgroup")
BOUND_LATE = "PodsMayBeBound"


def stage(
    rules: Rules, *listed: Reference, deleting: bool = False, created_for: Reference = WORKLOAD
) -> DecisionStage:
    grouped = rules.dialect == "podgroup"
    status = held_status(dialect=rules.dialect, pod_group_name="train" if grouped else "")
    made = reservation(status=status, deleting=deleting)
    shared = rules.dialect == "native"
    on = DecisionStage(
        claim(*listed, shared=shared, created_for=created_for if shared else None),
        {made.metadata.name: (made, GROUPED if grouped else ACTIVE)},
        rules=rules,
        nodes={"node-0": node()},
    )
    on.groups = {"train": pod_group()}
    return on


def waits(on: DecisionStage, seconds: float) -> None:
    """The release goes on up to the last moment of the wait, and then ends in one write."""
    assert [deallocates for _, deallocates in lists(on.settle(seconds=seconds - 1))] in (
        [],
        [False],
    )
    assert condition(on, "Released") == ("False", BOUND_LATE)
    assert lists(on.settle(seconds=1.5)) == [((), True)]


def trapped(on: DecisionStage, *pods: Pod) -> DecisionStage:
    on.nodes = {"node-0": node(), "node-1": node("node-1")}
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
    assert condition(on, "Released") == ("True", "Reallocated")


def test_where_pods_are_listed_a_pod_that_never_was_holds_nothing_up() -> None:
    on = trapped(stage(HOLD, WORKLOAD), stuck("a"))
    assert lists(on.settle(seconds=1)) == [((), True)]


def test_the_hold_steps_aside_for_a_pod_that_only_a_scheduler_listed() -> None:
    """The scheduler frees a claim that lists only the pod for which it finds no node."""
    on = trapped(stage(HOLD, pod_ref("a"), WORKLOAD), stuck("a"), stuck("b"))
    assert lists(on.settle(seconds=1)) == [((pod_ref("a"),), False)]
    assert condition(on, "Released") == ("False", "Reallocated")
    assert lists(on.settle(seconds=3600)) == []
    on.put(running("a"))
    assert lists(on.settle(seconds=1)) == [((pod_ref("a"), WORKLOAD), False)]


@pytest.mark.parametrize("seconds", [60, 600])
def test_a_pod_that_claimctl_listed_goes_first_and_is_waited_for(seconds: int) -> None:
    on = stage(HOLD)
    on.claim = written_by_claimctl(claim(pod_ref("a"), WORKLOAD), ["uid-a", WORKLOAD.uid])
    pod = stuck("a")
    on.put(pod if seconds == 60 else slow(pod, volume=True), stuck("b"))
    assert lists(on.settle(seconds=12)) == [((WORKLOAD,), False)]
    on.settle(seconds=seconds - 4)
    assert on.claim is not None
    assert on.claim.status.allocation is not None
    assert lists(on.settle(seconds=5))[-1] == ((), True)


def test_a_pod_that_is_nominated_to_a_node_is_being_bound() -> None:
    """Its condition stays Unschedulable until then."""
    binding = pending("a", unschedulable_at=after(0))
    binding = replace(binding, status=replace(binding.status, nominated_node_name="node-0"))
    on = stage(HOLD, pod_ref("a"), WORKLOAD)
    on.put(binding)
    assert lists(on.settle(seconds=3600)) == []


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
    assert lists(on.settle(seconds=3600)) == [((pod_ref("a"),), False)]
    on.claim = claim(WORKLOAD, version="20")
    waits(on, 60)
    assert on.reservations == {}


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
    (blocker,) = users(seen, reason, seen.consumers)
    assert (blocker.reason, blocker.after) == (Reason.CONSUMERS_LEFT, None)


def seconds(pod: Pod, rules: Rules = HOLD, **facts: Any) -> float:
    """The binding time right after the claim was closed."""
    closed = with_facts(snapshot(rules, Openings(watched_age=0.0)), **facts)
    return binding_left(closed, pod)


def test_pods_with_volumes_and_of_other_schedulers_take_longer() -> None:
    rules = Rules(known_schedulers=frozenset({"default-scheduler", "mine"}))
    pod = pending("a")
    for usual in (pod, slow(pod, scheduler="default-scheduler"), slow(pod, scheduler="mine")):
        assert seconds(usual, rules) == 60
    for late in (slow(pod, volume=True), slow(pod, scheduler="other")):
        assert seconds(late, rules) == 600
    hasty = Rules(binding_seconds=90, slow_binding_seconds=30)
    assert seconds(slow(pod, volume=True), hasty) == 90


def test_pods_that_may_wait_for_their_gang_take_longer() -> None:
    pod, basic, gang = pending("a", group="train"), pod_group(), pod_group(gang=True)
    assert seconds(pod, PODGROUP, groups=(pod_group("other", gang=True), basic)) == 60
    for groups in ((gang,), (pod_group("other"),), ()):
        assert seconds(pod, PODGROUP, groups=groups) == 600
    of_a_workload = replace(pod, spec=PodSpec(workload_ref=Present()))
    assert seconds(of_a_workload) == 600


def with_conditions(made: ResourceClaim) -> ResourceClaim:
    allocation = made.status.allocation
    assert allocation is not None
    assert allocation.devices.results is not None
    device = replace(
        allocation.devices.results[0],
        binding_conditions=("example.com/ready",),
        binding_failure_conditions=("example.com/failed",),
    )
    devices = replace(allocation.devices, results=(device,))
    return replace(
        made, status=replace(made.status, allocation=replace(allocation, devices=devices))
    )


NAMED = PodResourceClaim(name="b", resource_claim_name="b")
GENERATED = PodResourceClaim(name="b", resource_claim_template_name="t")


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize(
    ("other", "facts", "late"),
    [
        pytest.param(NAMED, {}, (False, True), id="the other claim is unknown"),
        pytest.param(GENERATED, {}, (False, True), id="it is not generated yet"),
        pytest.param(NAMED, {"claims": {"b": claim()}}, (False, False), id="it is ready"),
        pytest.param(
            NAMED,
            {"claims": {"b": claim(allocated=False)}},
            (False, True),
            id="it is not allocated yet",
        ),
        pytest.param(
            NAMED, {"claims": {"b": with_conditions(claim())}}, (True, True), id="it may wait"
        ),
        pytest.param(
            NAMED,
            {"claims": {"b": claim()}, "claim": with_conditions(claim())},
            (True, True),
            id="the claim itself may wait",
        ),
    ],
)
def test_pods_that_may_wait_for_a_device_take_longer(
    other: PodResourceClaim, facts: dict[str, Any], late: tuple[bool, bool], published: bool
) -> None:
    pod = pending("a")
    named = (*pod.spec.resource_claims, other)
    pod = replace(pod, spec=replace(pod.spec, resource_claims=named))
    expected = 600 if late[published] else 60
    assert seconds(pod, binding_conditions=published, **facts) == expected


@pytest.mark.parametrize(
    ("condition_type", "age", "expected"),
    [("example.com/failed", 10.0, 60), ("example.com/failed", 9.0, 600), ("other", 10.0, 600)],
)
def test_nobody_waits_for_a_device_that_has_failed_for_two_looks(
    condition_type: str, age: float, expected: float
) -> None:
    made = with_conditions(claim())
    report: dict[str, Any] = {"driver": "gpu.example.com", "pool": "node-0", "device": "gpu-0"}
    report["conditions"] = [{"type": condition_type, "status": "True"}]
    made = replace(made, status=replace(made.status, devices=msgspec.Raw(encode([report]))))
    memory = Memory(openings=Openings(watched_age=0.0), version_age=age)
    assert seconds(pending("a"), claim=made, memory=memory) == expected


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
        pytest.param(PODGROUP, False, inf, True, id="no PodGroup was ever listed"),
        pytest.param(PODGROUP, False, 3600.0, False, id="pods may share the claim by a PodGroup"),
        pytest.param(NATIVE, False, inf, False, id="no pod is listed beside a workload"),
        pytest.param(NATIVE, True, inf, False, id="native"),
    ],
)
def test_pods_are_listed_one_by_one_where_nothing_else_lets_them_in(
    rules: Rules, shared: bool, group_age: float, answer: bool
) -> None:
    seen = snapshot(rules, Openings(group_age=group_age), pod_ref("a"))
    on = with_facts(seen, claim=claim(shared=shared, created_for=WORKLOAD if shared else None))
    assert on.one_by_one is answer


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
    assert entries_to_take_out(on, reason, on.consumers) == taken


def test_no_entry_is_taken_out_of_a_claim_that_is_deleted_or_gone() -> None:
    seen = snapshot(HOLD, Openings())
    going = written_by_claimctl(claim(pod_ref("a"), WORKLOAD, deleting=True), ["uid-a"])
    for on in (with_facts(seen, claim=going), with_facts(seen, claim=None)):
        assert entries_to_take_out(on, Reason.WITHDRAWN, on.consumers) == frozenset()


def test_pods_may_have_used_a_group_that_left_the_list_before_this_process_looked() -> None:
    for age, answer in ((4.0, False), (5.0, True)):
        assert snapshot(PODGROUP, Openings(watched_age=age), WORKLOAD).one_by_one is answer
    alone = with_facts(
        snapshot(PODGROUP, Openings(watched_age=0.0), WORKLOAD), pods=(pending("a"),), groups=()
    )
    assert alone.one_by_one


@pytest.mark.parametrize("reason", [Reason.REALLOCATED, Reason.WITHDRAWN, Reason.WORKLOAD_ENDED])
@pytest.mark.parametrize(
    ("pods", "taken"),
    [
        pytest.param((stuck("a"),), set(), id="the scheduler frees the claim for one pod"),
        pytest.param((stuck("a"), stuck("b")), {"a", "b"}, id="two wait for each other"),
        pytest.param((stuck("a"), stuck("ahead")), {"a", "ahead"}, id="two, one listed ahead"),
        pytest.param((stuck("a"), pending("b")), {"a"}, id="the other one may be bound now"),
        pytest.param((stuck("a"), stuck("b"), running("c")), set(), id="another keeps the claim"),
    ],
)
def test_entries_of_a_scheduler_are_taken_out_if_several_pods_wait_for_each_other(
    reason: Reason, pods: tuple[Pod, ...], taken: set[str]
) -> None:
    listed = claim(*(pod_ref(pod.metadata.name) for pod in pods), WORKLOAD)
    on = with_facts(
        snapshot(HOLD, Openings()),
        claim=written_by_claimctl(listed, ["uid-ahead"]),
        pods=(*pods, stuck("unlisted")),
    )
    out = entries_to_take_out(on, reason, on.consumers)
    assert out == {f"uid-{name}" for name in taken}


AGES = st.one_of(st.just(inf), st.floats(0, 1000))
OPENINGS = st.builds(
    Openings,
    watched_age=AGES,
    group_age=AGES,
    group_ages=st.dictionaries(st.sampled_from(["train", "other"]), AGES),
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
    ages = [seen.watched_age, seen.group_ages.get("train", inf), seen.entry_age.get("uid-a", inf)]
    if rules is NATIVE:
        ages.append(seen.holder_age)
    others = {WORKLOAD, GROUP} if rules is NATIVE else {GROUP}
    counted = tuple(users(on, reason, on.consumers))
    if pod_ref("a") in listed:
        assert [each.reason for each in counted] == [Reason.PODS_LISTED]
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
    assert (60 - age > 0) or not tuple(users(on, Reason.CLAIM_DELETED, on.consumers))
