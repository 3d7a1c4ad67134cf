"""Cases about one claim that is reserved for the Deployment ``train``."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from claimctl.reservation.facts.decision import WriteList
from claimctl.reservation.facts.snapshot import Rules
from claimctl.reservation.facts.workloads import WorkloadPhase, WorkloadState
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus
from tests.support.builders import NOW, deployment_ref, node, reservation
from tests.support.stage import DecisionStage

ACTIVE = WorkloadState(WorkloadPhase.ACTIVE, "uid-train", wants=3)
IDLE = WorkloadState(WorkloadPhase.IDLE, "uid-train")
GONE = WorkloadState(WorkloadPhase.ABSENT)
NATIVE, HOLD = Rules("native"), Rules("hold")
OLD_HOLD = Rules("hold", kcm_cleans_mixed_lists=False)
WORKLOAD = deployment_ref()


def held_status(**changes: object) -> ClaimReservationStatus:
    base = ClaimReservationStatus(
        claim_uid="uid-slice", reserved_for=WORKLOAD, dialect="hold", consumers=1
    )
    return replace(base, **changes)


def stage(
    on: ResourceClaim | None,
    workload: WorkloadState,
    rules: Rules = HOLD,
    *,
    reserved: ClaimReservation | None = None,
    recorded: bool = True,
) -> DecisionStage:
    made = reserved or reservation(status=held_status() if recorded else None)
    return DecisionStage(
        on, {made.metadata.name: (made, workload)}, rules=rules, nodes={"node-0": node()}
    )


def lists(writes: Sequence[object]) -> list[tuple[tuple[Reference, ...], bool]]:
    return [(w.reserved_for, w.deallocate) for w in writes if isinstance(w, WriteList)]


def condition(on: DecisionStage, type_: str, name: str = "train-slice") -> tuple[str, str]:
    conditions = on.reservations[name][0].status.conditions
    return next((c.status, c.reason) for c in conditions if c.type == type_)


def status_with(*conditions: tuple[str, str, str]) -> ClaimReservationStatus:
    """A status with these conditions: type, status and reason."""
    return ClaimReservationStatus(
        conditions=tuple(
            Condition(
                type=type_, status=value, reason=reason, message="why", last_transition_time=NOW
            )
            for type_, value, reason in conditions
        )
    )
