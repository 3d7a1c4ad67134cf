"""Where an alert is about the state of a claim, its row says what ``claimctl doctor`` calls it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from msgspec import structs

from claimctl.commands.claims.places import Places
from claimctl.commands.doctor.claim_matters import matters_of
from claimctl.commands.doctor.cluster_checks import checks, findings
from claimctl.commands.doctor.model import ObservedCluster
from claimctl.commands.orphans.model import ScannedClaim
from claimctl.controller.claim_metrics import ClaimMetrics
from claimctl.controller.keys import ClaimKey
from claimctl.reservation.facts.decision import Decision
from claimctl.reservation.facts.memory import Memory
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import LIMIT
from claimctl.reservation.facts.snapshot import Held, LiveList, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.telemetry.face import Metric
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservationStatus, DowngradePlan
from tests.monitoring.rules import ALERTS, PAGES
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    pod_ref,
    reservation,
    running,
)
from tests.support.claim_cases import status_with
from tests.support.recording import Recording

MONITORING = (PAGES.parents[1] / "monitoring.md").read_text()
IN_DOCTOR = dict(re.findall(r"^\| \[(\w+)\].*\| (.*?) \|$", MONITORING, re.MULTILINE))
"""The last column of the table of alerts, by the name of the alert."""


@dataclass(frozen=True)
class AlertedState:
    """A state of one claim, the gauge that its alert asks for, and what doctor calls it."""

    alert: str
    gauge: tuple[Metric, str]
    lines: Sequence[tuple[str, str]]
    claim: ResourceClaim = field(default_factory=lambda: claim(deployment_ref()))
    pods: tuple[Pod, ...] = ()
    status: ClaimReservationStatus = field(default_factory=ClaimReservationStatus)
    releasing: Reason | None = None
    plans: tuple[DowngradePlan, ...] = ()


FULL = tuple(pod_ref(f"p{number}") for number in range(LIMIT))
GONE: Reference = pod_ref("gone")
WAITS = structs.replace(
    status_with(("Released", "False", "ForceDeletedPods")), claim_uid="uid-slice"
)
NOT_READY = (Metric.RESERVATIONS_NOT_READY, "")
STATES = {
    "a full list": AlertedState(
        "ClaimctlListsFull",
        (Metric.CLAIMS_NEAR_LIMIT, "full"),
        [("problem", "near-limit")],
        claim(*FULL),
        tuple(running(entry.name) for entry in FULL),
    ),
    "a pod that is gone": AlertedState(
        "ClaimctlDanglingReferences",
        (Metric.DANGLING_REFERENCES, ""),
        [("problem", "dangling-references")],
        claim(GONE, deployment_ref()),
    ),
    "a pod that is gone, in a release": AlertedState(
        "ClaimctlDanglingReferences",
        (Metric.DANGLING_REFERENCES, ""),
        [("waits", "releases"), ("waits", "dangling-references")],
        claim(GONE, deployment_ref()),
        status=WAITS,
        releasing=Reason.IDLE,
    ),
    "devices without a pod": AlertedState("ClaimctlDevicesIdle", (Metric.CLAIMS, "idle"), []),
    "a reservation without a claim": AlertedState(
        "ClaimctlReservationsNotReady",
        NOT_READY,
        [("problem", "reservations")],
        status=status_with(("Ready", "False", "ClaimNotNamedByPodTemplate")),
    ),
    "a plan over a claim that nobody uses": AlertedState(
        "ClaimctlReservationsNotReady",
        NOT_READY,
        [("problem", "plans")],
        claim(allocated=False),
        status=status_with(
            ("Ready", "False", "FrozenForDowngrade"), ("Reserved", "False", "FrozenForDowngrade")
        ),
        plans=(DowngradePlan(),),
    ),
    "a release that waits": AlertedState(
        "ClaimctlReleasesStuck",
        (Metric.CLAIMS, "releasing"),
        [("waits", "releases")],
        status=WAITS,
        releasing=Reason.IDLE,
    ),
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
def test_the_row_of_an_alert_says_what_doctor_calls_its_state(state: AlertedState) -> None:
    assert counted(state) == {state.gauge[1]: 1}
    assert seen_by_doctor(state) == state.lines
    row = IN_DOCTOR[state.alert]
    said = [verdict for verdict, check in state.lines if f"`{check}`" in row]
    assert said or row == "nothing"
    assert all(verdict in row for verdict in said)


def counted(state: AlertedState) -> dict[str, float]:
    """What the controller's gauge shows."""
    telemetry, made = Recording(), reservation(status=state.status)
    workload = WorkloadState(WorkloadPhase.ACTIVE, uid="uid-train", wants=1)
    dead = {GONE.uid: 1.0} if GONE in state.claim.status.reserved_for else {}
    seen = Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name=CLAIM,
        claim=state.claim,
        reservations=(Held(made, workload),),
        pods=state.pods,
        memory=Memory(dead_age=dead),
    )
    key = ClaimKey(NAMESPACE, CLAIM)
    ClaimMetrics(telemetry).count(key, seen, Decision(releasing=state.releasing))
    return telemetry.nonzero(state.gauge[0])


def seen_by_doctor(state: AlertedState) -> list[tuple[str, str]]:
    """What doctor says of the same, but for facts: verdict and check."""
    made = (reservation(status=state.status),)
    uids = frozenset(pod.metadata.uid for pod in state.pods)
    scanned = ScannedClaim(state.claim, LiveList("10", state.pods, uids), NOW, reserved=True)
    observed = ObservedCluster(
        "hold",
        (state.claim,),
        uids={("", "pods"): uids, ("apps", "deployments"): frozenset({"uid-train"})},
        reservations=made,
        plans=state.plans,
        matters=matters_of((scanned,), made, Places(None, None), NOW),
    )
    return [(str(line.verdict), line.check) for line in findings(observed)]


def test_each_alert_has_a_row_of_checks_that_there_are() -> None:
    known = {line.check for line in checks(ObservedCluster("hold"))}
    known |= {"installation", "releases", "controller"}
    assert IN_DOCTOR.keys() == {alert.name for alert in ALERTS}
    for row in IN_DOCTOR.values():
        assert set(re.findall(r"`(.*?)`", row)) <= known
        assert re.match("problem|waits|nothing", row)
