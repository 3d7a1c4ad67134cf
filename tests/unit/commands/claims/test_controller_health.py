"""What can be told of a controller from what it should have written."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from kube_in_process.storage.requests import Fault, FaultPoint
from kube_in_process.virtual import run
from msgspec.structs import replace

from claimctl.commands.claims.claim_document import explanation_of
from claimctl.commands.claims.controller_health import Sign, Trouble, advice, troubles
from claimctl.commands.claims.election import Election, State
from claimctl.commands.claims.explanation import PAUSES, explain_with_controller
from claimctl.reservation.assessment.assess import assess
from claimctl.reservation.facts.memory import SeenGhost
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import Condition
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import ClaimReservationStatus, ForceDeletedPod, ReleaseProgress
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    after,
    claim,
    deployment_ref,
    pod_ref,
    reservation,
    running,
)
from tests.support.claim_server import NAMESPACE as ML
from tests.support.claim_server import Server
from tests.support.explained import claim_lines
from tests.support.printed import as_json

WORKLOAD = deployment_ref()
ACTIVE = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=1)
IDLE = WorkloadState(WorkloadPhase.IDLE, "uid-train")
GONE = WorkloadState(WorkloadPhase.ABSENT)
FORBIDDEN = Condition(type="Ready", status="False", reason="Forbidden", message="PATCH ...: no")


def recorded(**changes: Any) -> ClaimReservationStatus:
    base = ClaimReservationStatus(
        observed_generation=1, claim_uid="uid-slice", reserved_for=WORKLOAD
    )
    return replace(base, **changes)


def released(step: str, seconds: float) -> ReleaseProgress:
    return ReleaseProgress(
        step=step, reason="WorkloadEnded", since=after(-seconds), claim_uid="uid-slice"
    )


def blind(reason: str) -> tuple[Condition, ...]:
    return (Condition(type="Released", status="False", reason=reason),)


def found(
    on: ResourceClaim,
    status: ClaimReservationStatus,
    workload: WorkloadState,
    *pods: Pod,
    ghosts: tuple[ForceDeletedPod, ...] = (),
) -> list[tuple[Sign, str]]:
    snapshot = Snapshot(
        now=NOW,
        namespace=NAMESPACE,
        name=CLAIM,
        claim=on,
        reservations=(Held(reservation(status=status), workload),),
        pods=pods,
        ghosts=tuple(map(SeenGhost, ghosts)),
    )
    seen = troubles(Election(State.ACTING, ""), assess(snapshot))
    return [(one.sign, one.message) for one in seen]


NAME = "ClaimReservation train-slice"


def made(pod: Pod, seconds: float) -> Pod:
    """The pod, made so long ago."""
    return replace(pod, metadata=replace(pod.metadata, creation_timestamp=after(-seconds)))


@pytest.mark.parametrize(
    ("on", "status", "workload", "pods", "expected"),
    [
        (claim(WORKLOAD), recorded(), ACTIVE, (), []),
        (claim(WORKLOAD, pod_ref("a")), recorded(consumers=1), ACTIVE, (running("a"),), []),
        (
            claim(WORKLOAD, pod_ref("a")),
            recorded(),
            ACTIVE,
            (running("a"),),
            [(Sign.STATUS_BEHIND, f"{NAME} reports 0 consumers, but there are 1")],
        ),
        (claim(WORKLOAD), recorded(), ACTIVE, (made(running("a"), 19),), []),
        (claim(WORKLOAD), recorded(consumers=3), ACTIVE, (running("a"),), []),
        (
            claim(WORKLOAD),
            recorded(consumers=1),
            ACTIVE,
            (),
            [(Sign.STATUS_BEHIND, f"{NAME} reports 1 consumers, but there are 0")],
        ),
        (
            claim(WORKLOAD),
            recorded(observed_generation=0, consumers=9),
            ACTIVE,
            (),
            [
                (
                    Sign.STATUS_BEHIND,
                    f"{NAME} has a status for generation none, but a spec of generation 1",
                )
            ],
        ),
        (
            claim(WORKLOAD),
            recorded(conditions=(FORBIDDEN,)),
            ACTIVE,
            (),
            [(Sign.REFUSED, f"{NAME} cannot be served (Forbidden): PATCH ...: no")],
        ),
        (
            claim(pod_ref("a")),
            recorded(reserved_for=None, consumers=1),
            ACTIVE,
            (running("a"),),
            [(Sign.HOLD_MISSING, f"{NAME} holds the claim, but its workload is not listed")],
        ),
        (
            claim(pod_ref("a")),
            recorded(consumers=1, conditions=(Condition(type="Reserved", reason="HoldYielded"),)),
            ACTIVE,
            (running("a"),),
            [],
        ),
        (
            claim(WORKLOAD),
            recorded(),
            GONE,
            (),
            [
                (
                    Sign.STATUS_BEHIND,
                    f"{NAME} releases the claim (WorkloadEnded), but no release has begun",
                )
            ],
        ),
        (claim(WORKLOAD), recorded(conditions=blind("HistoryUnknown")), GONE, (), []),
        (claim(WORKLOAD), recorded(release=released("Intent", 59)), GONE, (), []),
        (
            claim(WORKLOAD),
            recorded(release=released("Fenced", 1800)),
            GONE,
            (),
            [
                (
                    Sign.RELEASE_STALLED,
                    f"{NAME} has not finished its release (step Fenced) after 30m",
                )
            ],
        ),
        (
            claim(WORKLOAD),
            recorded(release=released("Intent", 1800), consumers=1),
            GONE,
            (running("a"),),
            [],
        ),
        (claim(allocated=False), recorded(release=released("Intent", 1800)), GONE, (), []),
    ],
)
def test_what_should_have_been_written_by_now(
    on: ResourceClaim,
    status: ClaimReservationStatus,
    workload: WorkloadState,
    pods: tuple[Pod, ...],
    expected: list[tuple[Sign, str]],
) -> None:
    assert found(on, status, workload, *pods) == expected


def test_a_release_that_waits_for_a_ghost_is_not_stalled() -> None:
    ghost = ForceDeletedPod(uid="g", name="lost", node_name="node-0")
    status = recorded(release=released("Intent", 200), force_deleted_pods=(ghost,))
    assert found(claim(WORKLOAD), status, GONE, ghosts=(ghost,)) == []


def test_who_is_not_elected_is_named_before_what_follows_from_it() -> None:
    signs = [Trouble(Sign.NOT_ACTING, "", ""), Trouble(Sign.STATUS_BEHIND, "", "a")]
    (one,) = advice(signs)
    assert one.startswith("Look at the controller")
    (one,) = advice(signs[1:])
    assert "`claimctl doctor`" in one
    assert "429 is throttling" in one
    assert advice(()) == ()


def test_only_what_is_still_so_after_a_moment_is_told() -> None:
    """A controller that acts catches up before the second look, which is the last one then."""

    async def scenario(*, acts: bool) -> list[str]:
        server = Server.started()
        reference = server.deployment()
        server.claim("slice", reference)
        server.pod("a")
        server.reservation(status=server.held_status(reference) | {"observedGeneration": 1})
        await server.clock.sleep(began := 30.0)
        lists = 0

        def hook(point: FaultPoint) -> Fault | None:
            nonlocal lists
            if point.plural == "leases":
                lists += 1
                if acts and lists == 2:
                    status = {"status": {"consumers": 1}}
                    server.admin.patch("claimreservations", ML, "train", status, "status")
            return None

        server.handler.fault = hook
        told = await explain_with_controller(server.client, ML, "slice", server.clock)
        assert server.clock.monotonic() - began == (PAUSES[0] if acts else sum(PAUSES))
        degraded = as_json(explanation_of(told, NOW))["controller"]["degraded"]
        assert degraded == (not acts)
        return [
            line for line in claim_lines(told) if "consumers, but" in line or "Controller" in line
        ]

    nobody = "no Lease claimctl-controller: no controller runs, or one without --leader-elect"
    assert run(scenario(acts=True)) == [f"Controller: unknown; {nobody}"]
    assert run(scenario(acts=False)) == [
        f"Controller: degraded; {nobody}",
        "  ClaimReservation train reports 0 consumers, but there are 1",
    ]


async def test_who_may_not_list_leases_is_told_so_and_everything_else() -> None:
    server = Server.started()
    server.claim("slice", server.deployment())
    server.handler.fault = lambda point: (
        Fault(status=403, reason="Forbidden") if point.plural == "leases" else None
    )
    told = await explain_with_controller(server.client, ML, "slice", server.clock)
    assert server.clock.now() - NOW == timedelta()
    shown = claim_lines(told)
    assert "Controller: unknown; you may not read Leases" in shown
