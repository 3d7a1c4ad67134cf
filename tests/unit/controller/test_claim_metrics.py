"""Small records: what was written, which boot a node showed, how many claims are where."""

from __future__ import annotations

from dataclasses import replace

from claimctl.controller.claim_metrics import ClaimMetrics
from claimctl.controller.keys import ClaimKey
from claimctl.reservation.decision import Decision
from claimctl.reservation.reasons import Reason
from claimctl.reservation.snapshot import Held, Memory, Snapshot
from claimctl.reservation.workloads import Life, WorkloadState
from claimctl.telemetry.face import Metric
from claimctl.wire.claims import ResourceClaim
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    pod_ref,
    reservation,
)
from tests.support.recording import Recording

KEY = ClaimKey(NAMESPACE, CLAIM)


def snapshot(found: ResourceClaim | None, *dead: str) -> Snapshot:
    held = Held(reservation(), WorkloadState(Life.ACTIVE, uid="uid-train", wants=1))
    return Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name=CLAIM,
        claim=found,
        reservations=(held,),
        memory=Memory(dead_age=dict.fromkeys(dead, 1.0)),
    )


def test_claims_are_counted_by_state_as_they_move() -> None:
    telemetry = Recording()
    census = ClaimMetrics(telemetry)
    census.publish()
    assert telemetry.gauges[Metric.CLAIMS.value, (("state", "reserved"),)] == 0
    steps: list[tuple[Snapshot, Decision, str]] = [
        (snapshot(None), Decision(), "missing"),
        (snapshot(claim(allocated=False)), Decision(), "unallocated"),
        (snapshot(claim(pod_ref("a"))), Decision(), "allocated"),
        (snapshot(claim(deployment_ref())), Decision(), "reserved"),
        (snapshot(claim(deployment_ref())), Decision(releasing=Reason.IDLE), "releasing"),
    ]
    for seen, decision, state in steps:
        census.count(KEY, seen, decision)
        assert telemetry.nonzero(Metric.CLAIMS) == {state: 1}
    assert telemetry.nonzero(Metric.RESERVATIONS) == {"Deployment": 1}
    census.count(KEY, replace(snapshot(None), reservations=()), Decision())
    assert telemetry.nonzero(Metric.CLAIMS) == {}
    assert telemetry.nonzero(Metric.RESERVATIONS) == {}


def test_dangling_references_are_counted_over_all_claims() -> None:
    telemetry = Recording()
    census = ClaimMetrics(telemetry)
    census.count(KEY, snapshot(claim(pod_ref("a")), "a", "b"), Decision())
    census.count(ClaimKey(NAMESPACE, "other"), snapshot(claim(pod_ref("c")), "c"), Decision())
    assert telemetry.nonzero(Metric.DANGLING_REFERENCES) == {"": 3}
    census.count(KEY, replace(snapshot(claim()), reservations=()), Decision())
    assert telemetry.nonzero(Metric.DANGLING_REFERENCES) == {"": 1}
