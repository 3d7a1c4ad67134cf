"""Which claims stay allocated when their pods are evicted: one row for each row of the table."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.wire.reservations import ClaimReservation
from claimctl_reschedule.plan.claims import LASTING, AfterEviction, Claims, after_eviction
from claimctl_reschedule.shapes.devices import SchedulingClaim
from claimctl_reschedule_tests.support.devices import (
    GROUP,
    HOLD,
    claim,
    entry,
    observed,
    pod,
    reservation,
)
from tests.support.builders import NOW, after

A, B = pod("a", "slice"), pod("b", "slice")
TOMBSTONE = {
    "apiGroup": "claimctl.io",
    "resource": "finishedpods",
    "name": "done",
    "uid": "uid-done",
}
GHOST = {"uid": "uid-x", "name": "x", "since": NOW.isoformat()}
OLD_GHOST = {"uid": "uid-x", "name": "x", "since": after(-301).isoformat()}


def of(
    made: SchedulingClaim,
    *reservations: ClaimReservation,
    pods: tuple[object, ...] = (A,),
    leaving: tuple[str, ...] = ("a",),
    owner: str = "ReplicaSet",
) -> AfterEviction:
    claims = Claims(observed(claims=[made], pods=pods, reservations=reservations))
    (known,) = claims.all()
    return after_eviction(known, frozenset(f"uid-{each}" for each in leaving), owner)


def with_grace(made: ClaimReservation) -> ClaimReservation:
    return replace(made, spec=replace(made.spec, force_deleted_pod_grace_seconds=300))


LISTED = claim("slice", "gpu-0", listed=[entry("a")])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(
            of(claim("slice", "gpu-0", owner="a")), AfterEviction.GOES_WITH_POD, id="generated"
        ),
        pytest.param(
            of(claim("slice", "gpu-0", owner="a", listed=[HOLD]), reservation()),
            AfterEviction.GOES_WITH_POD,
            id="generated and held: garbage collection takes it",
        ),
        pytest.param(of(claim("slice")), AfterEviction.NOT_ALLOCATED, id="not allocated"),
        pytest.param(of(LISTED, pods=(A, B)), AfterEviction.IN_USE, id="another consumer"),
        pytest.param(
            of(LISTED, pods=(A, B), leaving=("a", "b")),
            AfterEviction.WHILE_OPEN,
            id="both consumers leave",
        ),
        pytest.param(
            of(LISTED, pods=(A, pod("b", "slice", phase="Succeeded"))),
            AfterEviction.WHILE_OPEN,
            id="the other one is done",
        ),
        pytest.param(
            of(LISTED, pods=(A, pod("b", "slice", node=""))),
            AfterEviction.WHILE_OPEN,
            id="the other one is not bound",
        ),
        pytest.param(
            of(claim("slice", "gpu-0", listed=[GROUP])), AfterEviction.FOREIGN, id="a PodGroup"
        ),
        pytest.param(
            of(claim("slice", "gpu-0", listed=[GROUP, HOLD]), reservation()),
            AfterEviction.HELD,
            id="a PodGroup beside a hold",
        ),
        pytest.param(
            of(claim("slice", "gpu-0", listed=[entry("a"), HOLD]), reservation()),
            AfterEviction.HELD,
            id="held by a ClaimReservation",
        ),
        pytest.param(of(LISTED, reservation()), AfterEviction.HELD, id="about to be held"),
        pytest.param(
            of(claim("slice", "gpu-0", listed=[entry("a"), HOLD])),
            AfterEviction.FOREIGN,
            id="held by another client",
        ),
        pytest.param(
            of(
                claim("slice", "gpu-0", listed=[HOLD, {**HOLD, "uid": "uid-other"}]),
                reservation(),
            ),
            AfterEviction.FOREIGN,
            id="held by a ClaimReservation and by another client",
        ),
        pytest.param(of(LISTED), AfterEviction.WHILE_OPEN, id="last consumer, of a ReplicaSet"),
        pytest.param(
            of(claim("slice", "gpu-0", listed=[entry("a"), TOMBSTONE])),
            AfterEviction.WHILE_OPEN,
            id="last consumer, beside a tombstone",
        ),
        pytest.param(
            of(claim("slice", "gpu-0", listed=[HOLD]), reservation(claimUID="uid-of-before")),
            AfterEviction.FOREIGN,
            id="a hold that the status records for an earlier claim of the name",
        ),
        pytest.param(
            of(LISTED, owner="Job"), AfterEviction.MAY_RETURN, id="last consumer, of a Job"
        ),
        pytest.param(
            of(LISTED, owner="StatefulSet"),
            AfterEviction.MAY_RETURN,
            id="last consumer, of a StatefulSet",
        ),
        pytest.param(
            of(LISTED, reservation(forceDeletedPods=[GHOST])), AfterEviction.GHOST, id="a ghost"
        ),
        pytest.param(
            of(LISTED, with_grace(reservation(forceDeletedPods=[OLD_GHOST]))),
            AfterEviction.HELD,
            id="a ghost past its grace",
        ),
    ],
)
def test_whether_a_claim_lasts(kind: AfterEviction, expected: AfterEviction) -> None:
    assert kind is expected


def test_claims_that_last() -> None:
    free = {AfterEviction.GOES_WITH_POD, AfterEviction.NOT_ALLOCATED}
    assert free == set(AfterEviction) - LASTING
