"""What another version of claimctl has written: understood or left as it is, never fatal."""

from __future__ import annotations

import pytest

from claimctl.reservation.facts.decision import SetFinalizer
from claimctl.reservation.facts.workloads import WorkloadState
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import ReleaseProgress
from tests.support.builders import NOW, claim, reservation
from tests.support.claim_cases import (
    ACTIVE,
    GONE,
    IDLE,
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)

NEWER = ReleaseProgress(step="Soon", reason="SomethingNewer", claim_uid="uid-slice")


def test_a_release_for_a_reason_unknown_here_is_brought_to_its_end() -> None:
    on = stage(claim(WORKLOAD), GONE, reserved=reservation(status=held_status(release=NEWER)))
    assert lists(on.settle(seconds=5)) == [((), True)]


def test_a_finished_release_for_a_reason_unknown_here_is_told_as_it_is() -> None:
    begun = held_status(release=NEWER)
    on = stage(claim(allocated=False, finalizer=False), GONE, reserved=reservation(status=begun))
    on.settle(seconds=5)
    assert condition(on, "Released") == ("True", "SomethingNewer")
    on.settle(seconds=5)
    assert condition(on, "Released") == ("True", "SomethingNewer")


def test_a_deleted_reservation_released_for_a_reason_unknown_here_goes() -> None:
    begun = reservation(status=held_status(release=NEWER), deleting=True)
    on = stage(claim(allocated=False, finalizer=False), GONE, reserved=begun)
    assert [type(write) for write in on.settle(seconds=60)] == [SetFinalizer]


def test_a_condition_unknown_here_is_no_trouble() -> None:
    told = Condition(type="Released", status="True", reason="New", last_transition_time=NOW)
    status = held_status(conditions=(told,))
    on = stage(claim(allocated=False), IDLE, reserved=reservation(status=status))
    on.settle(seconds=5)
    assert condition(on, "Released") == ("True", "New")


@pytest.mark.parametrize("workload", [ACTIVE, IDLE, GONE])
def test_a_policy_unknown_here_lets_nothing_go(workload: WorkloadState) -> None:
    newer = reservation(status=held_status(), retention_policy="WhileItRains")
    assert stage(claim(WORKLOAD), workload, reserved=newer).settle(seconds=1000) == []
