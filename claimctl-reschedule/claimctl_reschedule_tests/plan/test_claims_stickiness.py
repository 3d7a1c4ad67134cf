"""Which claims stay allocated when their pods are evicted: one row for each row of the table."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from claimctl.wire.reservations import ClaimReservation
from claimctl_reschedule.plan.claims import STICKY, Claims, Stickiness, stickiness
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
) -> Stickiness:
    claims = Claims(observed(claims=[made], pods=pods, reservations=reservations))
    (known,) = claims.all()
    return stickiness(known, frozenset(f"uid-{each}" for each in leaving), owner)


def with_grace(made: ClaimReservation) -> ClaimReservation:
    return replace(made, spec=replace(made.spec, force_deleted_pod_grace_seconds=300))


LISTED = claim("slice", "gpu-0", listed=[entry("a")])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        pytest.param(
            of(claim("slice", "gpu-0", owner="a")), Stickiness.GOES_WITH_POD, id="generated"
        ),
        pytest.param(
            of(claim("slice", "gpu-0", owner="a", listed=[HOLD]), reservation()),
            Stickiness.GOES_WITH_POD,
            id="generated and held: garbage collection takes it",
        ),
        pytest.param(of(claim("slice")), Stickiness.NOT_ALLOCATED, id="not allocated"),
        pytest.param(of(LISTED, pods=(A, B)), Stickiness.IN_USE, id="another consumer"),
        pytest.param(
            of(LISTED, pods=(A, B), leaving=("a", "b")),
            Stickiness.WHILE_OPEN,
            id="both consumers leave",
        ),
        pytest.param(
            of(LISTED, pods=(A, pod("b", "slice", phase="Succeeded"))),
            Stickiness.WHILE_OPEN,
            id="the other one is done",
        ),
        pytest.param(
            of(LISTED, pods=(A, pod("b", "slice", node=""))),
            Stickiness.WHILE_OPEN,
            id="the other one is not bound",
        ),
        pytest.param(
            of(claim("slice", "gpu-0", listed=[GROUP])), Stickiness.FOREIGN, id="a PodGroup"
        ),
        pytest.param(
            of(claim("slice", "gpu-0", listed=[GROUP, HOLD]), reservation()),
            Stickiness.HELD,
            id="a PodGroup beside a hold",
        ),
        pytest.param(
            of(claim("slice", "gpu-0", listed=[entry("a"), HOLD]), reservation()),
            Stickiness.HELD,
            id="held by a ClaimReservation",
        ),
        pytest.param(of(LISTED, reservation()), Stickiness.HELD, id="about to be held"),
        pytest.param(
            of(claim("slice", "gpu-0", listed=[entry("a"), HOLD])),
            Stickiness.FOREIGN,
            id="held by another client",
        ),
        pytest.param(
            of(
                claim("slice", "gpu-0", listed=[HOLD, {**HOLD, "uid": "uid-other"}]),
                reservation(),
            ),
            Stickiness.FOREIGN,
            id="held by a ClaimReservation and by another client",
        ),
        pytest.param(of(LISTED), Stickiness.WHILE_OPEN, id="last consumer, of a ReplicaSet"),
        pytest.param(
            of(claim("slice", "gpu-0", listed=[entry("a"), TOMBSTONE])),
            Stickiness.WHILE_OPEN,
            id="last consumer, beside a tombstone",
        ),
        pytest.param(
            of(claim("slice", "gpu-0", listed=[HOLD]), reservation(claimUID="uid-of-before")),
            Stickiness.FOREIGN,
            id="a hold that the status records for an earlier claim of the name",
        ),
        pytest.param(of(LISTED, owner="Job"), Stickiness.MAY_RETURN, id="last consumer, of a Job"),
        pytest.param(
            of(LISTED, owner="StatefulSet"),
            Stickiness.MAY_RETURN,
            id="last consumer, of a StatefulSet",
        ),
        pytest.param(
            of(LISTED, reservation(forceDeletedPods=[GHOST])), Stickiness.GHOST, id="a ghost"
        ),
        pytest.param(
            of(LISTED, with_grace(reservation(forceDeletedPods=[OLD_GHOST]))),
            Stickiness.HELD,
            id="a ghost past its grace",
        ),
    ],
)
def test_a_claim_is_sticky(kind: Stickiness, expected: Stickiness) -> None:
    assert kind is expected


def test_claims_that_are_sticky() -> None:
    free = {Stickiness.GOES_WITH_POD, Stickiness.NOT_ALLOCATED}
    assert free == set(Stickiness) - STICKY
