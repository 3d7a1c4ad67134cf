"""What a DowngradePlan's status says: pure functions over its records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from claimctl.reservation.expansion import Expanded, Expansion, Refused, workload_references
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.reservations import DowngradedClaim, DowngradePlan, DowngradePlanStatus


class Phase(StrEnum):
    """How far a plan has come; empty: nobody has looked at it yet."""

    FROZEN = "Frozen"
    EXPANDING = "Expanding"
    PREPARED = "Prepared"
    BLOCKED = "Blocked"
    """Carried out, and some claims are still held by a workload."""
    FAILED = "Failed"
    """Given up: the controller does not take the plan for a freeze any more."""


class State(StrEnum):
    """What became of one claim."""

    PENDING = "Pending"
    EXPANDED = "Expanded"
    UNCHANGED = "Unchanged"
    REFUSED = "Refused"
    FAILED = "Failed"


def is_over(status: DowngradePlanStatus) -> bool:
    """Whether nobody works on the plan any more."""
    return status.phase in {Phase.PREPARED, Phase.BLOCKED, Phase.FAILED}


def survey(
    claims: Iterable[ResourceClaim], earlier: Iterable[DowngradedClaim]
) -> tuple[DowngradedClaim, ...]:
    """One pending record per claim that a workload holds, or held before an earlier run.

    What an earlier run took out is kept, so that restoring knows it; claims that are gone, or
    came back under another UID, are forgotten.
    """
    known = {record.uid: record for record in earlier}
    records = (_pending(claim, known.get(claim.metadata.uid)) for claim in claims)
    return tuple(
        sorted(
            (record for record in records if record.workload_references),
            key=lambda record: (record.namespace, record.name),
        )
    )


def _pending(claim: ResourceClaim, before: DowngradedClaim | None) -> DowngradedClaim:
    references = {entry.uid: entry for entry in before.workload_references} if before else {}
    references.update({entry.uid: entry for entry in workload_references(claim)})
    return DowngradedClaim(
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        state=State.PENDING,
        workload_references=tuple(references.values()),
    )


def told(record: DowngradedClaim, expansion: Expansion) -> DowngradedClaim:
    """The record after its claim was written, or was found not to need or not to allow it.

    A claim that pods alone hold by now was expanded by an earlier run, or by a write whose
    answer was lost.
    """
    if isinstance(expansion, Refused):
        return msgspec.structs.replace(
            record,
            state=State.REFUSED,
            reason=expansion.obstacle,
            message=expansion.message,
            pods=expansion.pods,
        )
    expanded = isinstance(expansion, Expanded) or expansion.by_pods
    return msgspec.structs.replace(
        record,
        state=State.EXPANDED if expanded else State.UNCHANGED,
        reason="",
        message="",
        pods=expansion.pods,
    )


def failed(record: DowngradedClaim, reason: str, message: str) -> DowngradedClaim:
    return msgspec.structs.replace(record, state=State.FAILED, reason=reason, message=message)


def status(
    plan: DowngradePlan, phase: Phase, records: Mapping[str, DowngradedClaim]
) -> DowngradePlanStatus:
    """The plan's status from the records by claim UID."""
    claims = tuple(records.values())
    return DowngradePlanStatus(
        observed_generation=plan.metadata.generation,
        phase=phase,
        total=len(claims),
        done=sum(record.state != State.PENDING for record in claims),
        claims=claims,
        conditions=plan.status.conditions,
    )


def final_phase(records: Iterable[DowngradedClaim]) -> Phase:
    """Blocked when any claim is still held by a workload."""
    blocked = any(record.state in {State.REFUSED, State.FAILED} for record in records)
    return Phase.BLOCKED if blocked else Phase.PREPARED
