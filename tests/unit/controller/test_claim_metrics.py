"""Small records: what was written, which boot a node showed, how many claims are where."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from claimctl.controller.claim_metrics import ClaimMetrics
from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.claims import Memories
from claimctl.reservation.facts.decision import Decision, WriteList
from claimctl.reservation.facts.memory import Memory
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.snapshot import Held, Rules, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.telemetry.face import Metric
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import ClaimReservationStatus, WorkloadRef
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    after,
    allocation,
    claim,
    deployment_ref,
    pod_ref,
    reservation,
    running,
)
from tests.support.claim_cases import status_with
from tests.support.hand_clock import HandClock
from tests.support.recording import Recording

KEY = ClaimKey(NAMESPACE, CLAIM)


def snapshot(found: ResourceClaim | None, *dead: str) -> Snapshot:
    held = Held(reservation(), WorkloadState(WorkloadPhase.ACTIVE, uid="uid-train", wants=1))
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
        (replace(snapshot(claim(deployment_ref())), pods=(running("a"),)), Decision(), "reserved"),
        (snapshot(claim(deployment_ref())), Decision(), "idle"),
        (snapshot(claim(deployment_ref())), Decision(releasing=Reason.IDLE), "releasing"),
    ]
    for seen, decision, state in steps:
        census.count(KEY, seen, decision)
        assert telemetry.nonzero(Metric.CLAIMS) == {state: 1}
    assert telemetry.nonzero(Metric.RESERVATIONS) == {"Deployment": 1}
    census.count(KEY, replace(snapshot(None), reservations=()), Decision())
    assert telemetry.nonzero(Metric.CLAIMS) == {}
    assert telemetry.nonzero(Metric.RESERVATIONS) == {}


def test_kinds_that_no_cluster_serves_have_one_series_which_goes_with_them() -> None:
    telemetry = Recording()
    census = ClaimMetrics(telemetry)
    keys = [ClaimKey(NAMESPACE, str(number)) for number in range(100)]
    (held,) = snapshot(None).reservations
    for key in keys:
        ref = WorkloadRef(api_group="x.io", kind=f"Kind{key.name}", name="a")
        spec = msgspec.structs.replace(held.reservation.spec, workload_ref=ref)
        named = msgspec.structs.replace(held.reservation, spec=spec)
        served = "x.io/v1" if key.name == "7" else ""
        reserved = replace(held, reservation=named, api_version=served)
        census.count(key, replace(snapshot(None), reservations=(reserved,)), Decision())
    assert telemetry.nonzero(Metric.RESERVATIONS) == {"other": 99, "Kind7": 1}
    for key in keys:
        census.count(key, replace(snapshot(None), reservations=()), Decision())
    assert not [name for name, _ in telemetry.gauges if name == Metric.RESERVATIONS.value]


@pytest.mark.parametrize(
    ("entries", "places"),
    [(239, {}), (240, {"nearly-full": 1}), (255, {"nearly-full": 1}), (256, {"full": 1})],
)
def test_lists_that_have_few_places_left_are_counted(entries: int, places: dict[str, int]) -> None:
    telemetry = Recording()
    census = ClaimMetrics(telemetry)
    listed = (deployment_ref(), *(pod_ref(str(number)) for number in range(entries - 1)))
    census.count(KEY, snapshot(claim(*listed)), Decision())
    assert telemetry.nonzero(Metric.CLAIMS_NEAR_LIMIT) == places


def test_reservations_that_are_not_ready_are_counted_until_they_are() -> None:
    telemetry = Recording()
    census = ClaimMetrics(telemetry)
    for status, counted in (("False", {"": 1}), ("True", {})):
        statuses = {reservation().metadata.name: status_with(("Ready", status, "ClaimNotFound"))}
        census.count(KEY, snapshot(None), Decision(statuses=statuses))
        assert telemetry.nonzero(Metric.RESERVATIONS_NOT_READY) == counted


def test_dangling_references_are_counted_over_all_claims() -> None:
    telemetry = Recording()
    census = ClaimMetrics(telemetry)
    census.count(KEY, snapshot(claim(pod_ref("a")), "a", "b"), Decision())
    census.count(ClaimKey(NAMESPACE, "other"), snapshot(claim(pod_ref("c")), "c"), Decision())
    assert telemetry.nonzero(Metric.DANGLING_REFERENCES) == {"": 3}
    census.count(KEY, replace(snapshot(claim()), reservations=()), Decision())
    assert telemetry.nonzero(Metric.DANGLING_REFERENCES) == {"": 1}


def test_workloads_whose_state_is_unknown_are_counted() -> None:
    telemetry = Recording()
    census = ClaimMetrics(telemetry)
    seen = snapshot(claim())
    (held,) = seen.reservations
    state = replace(held.workload, phase=WorkloadPhase.UNKNOWN)
    unknown = replace(seen, reservations=(replace(held, workload=state),))
    census.count(KEY, unknown, Decision())
    assert telemetry.nonzero(Metric.UNKNOWN_WORKLOADS) == {"": 1}
    census.count(KEY, seen, Decision())
    assert telemetry.nonzero(Metric.UNKNOWN_WORKLOADS) == {}


@pytest.mark.parametrize(
    ("found", "written", "observed"),
    [
        pytest.param(claim(), deployment_ref(), [7.0], id="the hold is new"),
        pytest.param(claim(deployment_ref()), deployment_ref(), [], id="the hold was there"),
        pytest.param(claim(), pod_ref("a"), [], id="a pod"),
        pytest.param(claim(allocated=False), deployment_ref(), [], id="not allocated"),
    ],
)
def test_the_time_from_the_allocation_to_the_hold_is_measured_once(
    found: ResourceClaim, written: Reference, observed: list[float]
) -> None:
    telemetry, clock = Recording(), HandClock()
    memories = Memories(clock)
    memories.see(claim())
    clock.time = 7.0
    ClaimMetrics(telemetry).wrote(snapshot(found), WriteList("10", (written,)), memories)
    assert telemetry.observed.get((Metric.ALLOCATION_TO_HOLD_SECONDS.value, ()), []) == observed


def status_of(reason: str, allocated: int) -> ClaimReservationStatus:
    """A status that knows an allocation of that second, and says why the claim is not held."""
    made = status_with(("Reserved", "False", reason))
    return msgspec.structs.replace(made, allocation_time=after(allocated))


LATE = Rules("hold", one_pod_drivers=frozenset({"gpu.example.com"}))
WAITS = {
    "the controller was slow": ({}, [100.0]),
    "it was reserved long after its allocation": ({"made": -3}, [3.0]),
    "the write was refused before": ({"status": status_of("Pending", -100)}, [100.0]),
    "the status knows the allocation before": ({"status": status_of("Releasing", -500)}, [100.0]),
    "a release did not come about": ({"status": status_of("Releasing", -100)}, []),
    "a plan kept the hold away": ({"status": status_of("FrozenForDowngrade", -100)}, []),
    "the workload did not exist": ({"status": status_of("WorkloadNotFound", -100)}, []),
    "it waits for the last pod to leave": ({"rules": LATE}, []),
}


@pytest.mark.parametrize(("what", "observed"), WAITS.values(), ids=WAITS)
def test_a_hold_is_late_only_if_it_could_have_been_there_before(
    what: dict[str, Any], observed: list[float]
) -> None:
    telemetry, memories = Recording(), Memories(HandClock())
    times = msgspec.structs.replace(allocation(), allocation_timestamp=after(-100))
    found = claim(pod_ref("a"))
    found = msgspec.structs.replace(
        found, status=msgspec.structs.replace(found.status, allocation=times)
    )
    made = reservation(status=what.get("status"))
    born = msgspec.structs.replace(made.metadata, creation_timestamp=after(what.get("made", -1000)))
    seen = snapshot(found)
    (held,) = seen.reservations
    held = replace(held, reservation=msgspec.structs.replace(made, metadata=born))
    seen = replace(seen, reservations=(held,), rules=what.get("rules", Rules("hold")))
    write = WriteList("10", (pod_ref("a"), deployment_ref()))
    ClaimMetrics(telemetry).wrote(seen, write, memories)
    assert telemetry.observed.get((Metric.ALLOCATION_TO_HOLD_SECONDS.value, ()), []) == observed
