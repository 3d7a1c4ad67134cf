"""The cluster's limit for claims that no pod uses, whatever holds them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from msgspec import structs

from claimctl.reservation.assessment.retention import Action, RetentionDecision, decide_retention
from claimctl.reservation.facts.reasons import Reason, ReleaseStep
from claimctl.reservation.facts.snapshot import Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.reservations import ReleaseProgress
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    after,
    claim,
    pending,
    pod_ref,
    reservation,
    running,
)
from tests.support.claim_cases import (
    ACTIVE,
    GONE,
    HOLD,
    IDLE,
    WORKLOAD,
    condition,
    held_status,
    lists,
    stage,
)

LIMIT = 600
LIMITED = replace(HOLD, max_seconds_without_pods=LIMIT)
UNKNOWN = WorkloadState(WorkloadPhase.UNKNOWN, "uid-train", problem="ended fails: no such key")
UNREADABLE = WorkloadState(WorkloadPhase.UNREADABLE, "uid-train", problem="cannot be read")
HOLDERS = [
    pytest.param(ACTIVE, {}, id="wants pods that never come"),
    pytest.param(IDLE, {"retention_policy": "Persistent"}, id="persistent"),
    pytest.param(GONE, {"retention_policy": "Manual"}, id="manual"),
    pytest.param(IDLE, {"idle_timeout_seconds": 10**6}, id="a long timeout"),
    pytest.param(UNKNOWN, {}, id="unknown"),
    pytest.param(UNREADABLE, {}, id="unreadable"),
]


@pytest.mark.parametrize(("workload", "spec"), HOLDERS)
def test_whatever_holds_the_claim_it_is_released_when_no_pod_used_it_for_so_long(
    workload: WorkloadState, spec: dict[str, Any]
) -> None:
    on = stage(claim(WORKLOAD), workload, reserved=reservation(status=held_status(), **spec))
    on.rules = LIMITED
    assert lists(on.settle(seconds=LIMIT - 1)) == []
    assert lists(on.settle(seconds=30)) == [((), True)]
    assert condition(on, "Released") == ("True", "UnusedTooLong")


@pytest.mark.parametrize(("workload", "spec"), HOLDERS)
def test_without_a_limit_it_stays(workload: WorkloadState, spec: dict[str, Any]) -> None:
    on = stage(claim(WORKLOAD), workload, reserved=reservation(status=held_status(), **spec))
    assert lists(on.settle(seconds=100 * LIMIT)) == []


def test_a_claim_in_use_stays() -> None:
    on = stage(claim(pod_ref("a"), WORKLOAD), UNKNOWN, reserved=reservation(status=held_status()))
    on.rules = LIMITED
    on.put(running("a"))
    assert lists(on.settle(seconds=100 * LIMIT)) == []


@pytest.mark.parametrize("unschedulable_at", [NOW, None])
def test_a_pod_that_waits_for_ever_is_no_use(unschedulable_at: datetime | None) -> None:
    on = stage(claim(WORKLOAD), UNKNOWN, reserved=reservation(status=held_status()))
    on.rules = LIMITED
    on.put(pending("a", unschedulable_at=unschedulable_at))
    assert lists(on.settle(seconds=2 * LIMIT))[-1] == ((), True)


def decision(
    *,
    created: int = -(10**6),
    since_use: float = 10.0**6,
    rules: Rules = LIMITED,
    **status: Any,
) -> RetentionDecision:
    """Of a reservation for a claim that was allocated long ago."""
    told = held_status(**{"allocation_time": after(-(10**6)), "consumers": 0, **status})
    made = reservation(status=told)
    meta = structs.replace(made.metadata, creation_timestamp=after(created))
    held = Held(structs.replace(made, metadata=meta), UNKNOWN, since_use=since_use)
    snapshot = Snapshot(NOW, NAMESPACE, CLAIM, claim(WORKLOAD), (held,), rules=rules)
    return decide_retention(snapshot, held, frozenset())


@pytest.mark.parametrize(
    ("facts", "left"),
    [
        pytest.param({"last_consumer_time": after(-400)}, 200, id="it was used a while ago"),
        pytest.param({"consumers": 2}, LIMIT, id="it is not recorded yet that they went"),
        pytest.param({"since_use": 5.0}, LIMIT - 5, id="no status records the use"),
        pytest.param({"created": 1 - LIMIT}, 1, id="the reservation was made a while ago"),
        pytest.param({"last_consumer_time": after(-LIMIT)}, None, id="over"),
        pytest.param({}, None, id="it was never used"),
    ],
)
def test_the_time_counts_from_the_last_pod(facts: dict[str, Any], left: float | None) -> None:
    made = decision(**facts)
    if left is None:
        assert (made.action, made.reason) == (Action.RELEASE, Reason.UNUSED_TOO_LONG)
    else:
        assert made.action is Action.HOLD
        assert made.blocker is not None
        assert (made.blocker.reason, made.blocker.after) == (Reason.WORKLOAD_STATE_UNKNOWN, left)


def test_a_release_that_has_begun_goes_on_without_the_limit() -> None:
    """The command line does not know the limit, and another controller may have none."""
    begun = ReleaseProgress(
        step=ReleaseStep.FENCED,
        reason=Reason.UNUSED_TOO_LONG,
        since=NOW,
        claim_uid="uid-slice",
    )
    made = decision(rules=HOLD, release=begun)
    assert (made.action, made.reason) == (Action.RELEASE, Reason.UNUSED_TOO_LONG)
    assert decision(rules=HOLD).action is Action.HOLD
