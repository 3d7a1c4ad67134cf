"""Whether a reservation holds its claim, releases it, or asks for nothing."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.reservation.decision import RemoveClaimFinalizer, SetFinalizer, WriteList
from claimctl.reservation.workloads import Life, WorkloadState
from tests.support.builders import claim, deployment_ref, pod_ref, reservation, running
from tests.support.claim_cases import (
    ACTIVE,
    GONE,
    IDLE,
    NATIVE,
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)


def test_an_idle_hold_is_released_in_one_write_after_its_timeout() -> None:
    on = stage(claim(WORKLOAD), IDLE)
    assert on.settle(seconds=59) == []
    writes = on.settle(seconds=2)
    assert [type(w) for w in writes] == [WriteList, RemoveClaimFinalizer]
    assert lists(writes) == [((), True)]
    assert condition(on, "Released") == ("True", "Idle")
    assert on.settle(seconds=600) == []


@pytest.mark.parametrize("policy", ["Persistent", "Manual"])
def test_other_policies_hold_through_idle(policy: str) -> None:
    reserved = reservation(status=held_status(), retention_policy=policy)
    on = stage(claim(WORKLOAD), IDLE, reserved=reserved)
    assert on.settle(seconds=100_000) == []


def test_manual_holds_even_after_the_end_until_it_is_asked_to_release() -> None:
    reserved = reservation(status=held_status(), retention_policy="Manual")
    on = stage(claim(WORKLOAD), GONE, reserved=reserved)
    assert on.settle(seconds=1000) == []
    asked = replace(reserved.metadata, annotations={"claimctl.io/release": "uid-slice"})
    on.reservations["train-slice"] = (replace(reserved, metadata=asked), GONE)
    assert lists(on.settle(seconds=1)) == [((), True)]
    assert on.reservations["train-slice"][0].metadata.annotations is None


def test_two_holders_let_go_one_after_the_other() -> None:
    other = deployment_ref("other", "uid-other")
    on = stage(claim(WORKLOAD, other), GONE)
    second = reservation("other", workload="other", status=held_status(reserved_for=other))
    on.reservations["other"] = (second, WorkloadState(Life.ACTIVE, "uid-other", wants=1))
    assert lists(on.settle(seconds=60)) == [((other,), False)]
    on.reservations["other"] = (on.reservations["other"][0], GONE)
    assert lists(on.settle(seconds=1)) == [((), True)]


def test_a_withdrawn_hold_goes_at_once_and_the_pods_keep_theirs() -> None:
    reserved = reservation(status=held_status(), deleting=True)
    on = stage(claim(pod_ref("a"), WORKLOAD), ACTIVE, reserved=reserved)
    on.put(running("a"))
    writes = on.settle(seconds=1)
    assert lists(writes) == [((pod_ref("a"),), False)]
    assert isinstance(writes[-1], SetFinalizer)
    assert on.reservations == {}


def test_a_withdrawn_native_hold_waits_for_its_consumers() -> None:
    reserved = reservation(status=held_status(), deleting=True)
    on = stage(
        claim(WORKLOAD, shared=True, created_for=WORKLOAD), ACTIVE, NATIVE, reserved=reserved
    )
    on.put(running("a"))
    assert on.settle(seconds=600) == []
    on.remove("a")
    assert lists(on.settle(seconds=6)) == [((), False), ((), True)]
    assert on.reservations == {}


def test_a_withdrawn_hold_without_consumers_is_a_release() -> None:
    reserved = reservation(status=held_status(), deleting=True)
    on = stage(claim(WORKLOAD), ACTIVE, reserved=reserved)
    writes = on.settle(seconds=1)
    assert [type(w) for w in writes] == [WriteList, RemoveClaimFinalizer, SetFinalizer]
    assert lists(writes) == [((), True)]


def test_a_replica_set_that_lives_on_keeps_the_hold_of_its_deleted_deployment() -> None:
    on = stage(claim(WORKLOAD), WorkloadState(Life.ABSENT, orphaned_replica_sets=("train-abc",)))
    assert on.settle(seconds=3600) == []
