"""The records in a DowngradePlan's status, one a claim, and pure functions that change them.

``replaced_references`` has the references that were removed from a claim. While the record is
Pending, it also has those that the next write will remove; that write carries the claim's
``resource_version``. A crash or a lost answer may leave open whether the write succeeded. The
references are then in doubt, and stay on record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from claimctl.downgrade.expansion import (
    Expanded,
    Expansion,
    ExpansionRefused,
    unknown_references,
    workload_references,
)
from claimctl.downgrade.restoration import Restoration, explained
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import LIMIT, is_pod
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import DowngradedClaim, DowngradePlan, DowngradePlanStatus
from claimctl.wire.unreadable import Unreadable


class PlanPhase(StrEnum):
    """How far a plan has come. An empty phase asks for a run."""

    FROZEN = "Frozen"
    EXPANDING = "Expanding"
    PREPARED = "Prepared"
    BLOCKED = "Blocked"
    """Carried out, but workloads still hold some claims."""
    FAILED = "Failed"
    """Given up. The controller does not freeze the plan's scope any more."""
    RESTORING = "Restoring"
    RESTORED = "Restored"
    PARTLY_RESTORED = "PartlyRestored"
    """Carried out, but some references could not return. They stay on record."""


class RecordState(StrEnum):
    """The result for one claim."""

    PENDING = "Pending"
    EXPANDED = "Expanded"
    UNCHANGED = "Unchanged"
    REFUSED = "Refused"
    FAILED = "Failed"
    SKIPPED = "Skipped"
    """The plan leaves the claim as it is, as the administrator asked."""
    RESTORED = "Restored"
    NOT_RESTORED = "NotRestored"


def is_over(status: DowngradePlanStatus) -> bool:
    """Whether the run of the plan has ended."""
    return status.phase in {
        PlanPhase.PREPARED,
        PlanPhase.BLOCKED,
        PlanPhase.FAILED,
        PlanPhase.RESTORED,
        PlanPhase.PARTLY_RESTORED,
    }


def is_carried_out(plan: DowngradePlan) -> bool:
    """Whether a run of the plan has ended, and the spec has not changed since."""
    return is_over(plan.status) and plan.status.observed_generation >= plan.metadata.generation


def survey(
    claims: Iterable[ResourceClaim],
    earlier: Iterable[DowngradedClaim],
    on_record: Collection[str] = (),
    skipped: Collection[str] = (),
) -> tuple[DowngradedClaim, ...]:
    """One pending record for each claim that a workload holds, or held before an earlier run.

    A record has the references that the coming write removes, and those that earlier runs removed,
    so that they can be restored. Records of claims that are gone, or have another UID now, are
    dropped.

    Args:
        on_record: UIDs of the references that the statuses of reservations record.
        skipped: UIDs of the claims that the plan leaves as they are.
    """
    known = {record.uid: record for record in earlier}

    def surveyed(claim: ResourceClaim) -> DowngradedClaim:
        meta = claim.metadata
        new = DowngradedClaim(namespace=meta.namespace, name=meta.name, uid=meta.uid)
        record = known.get(meta.uid, new)
        left = withdrawn(record, claim, uncertain_uids(record))
        if meta.uid in skipped:
            pods = sum(map(is_pod, claim.status.reserved_for))
            return _in_state(left, RecordState.SKIPPED, pods=pods)
        record = left if unknown_references(claim, on_record) else announced(record, claim)
        return _in_state(record, RecordState.PENDING, pods=0)

    records = (record for record in map(surveyed, claims) if record.workload_references)
    return tuple(sorted(records, key=lambda record: (record.namespace, record.name)))


def announced(record: DowngradedClaim, claim: ResourceClaim) -> DowngradedClaim:
    """The record to store before the write that removes all workloads from this claim's list."""
    if not workload_references(claim):
        return _by_list(record, claim, (), record.resource_version)
    due = _by_list(record, claim, workload_references(claim), claim.metadata.resource_version)
    return msgspec.structs.replace(due, state=RecordState.PENDING)


def is_announced(record: DowngradedClaim, claim: ResourceClaim) -> bool:
    """Whether the record has the claim's resourceVersion and all its workload references."""
    replaced = uncertain_uids(record)
    return record.resource_version == claim.metadata.resource_version and all(
        reference.uid in replaced for reference in workload_references(claim)
    )


def uncertain_uids(record: DowngradedClaim) -> frozenset[str]:
    """UIDs of the references that the record says were replaced, or may have been replaced."""
    return frozenset(reference.uid for reference in record.replaced_references)


def withdrawn(
    record: DowngradedClaim, claim: ResourceClaim, uncertain: Collection[str]
) -> DowngradedClaim:
    """The record after a write that surely failed: the listed references were not replaced, and
    only those in ``uncertain`` stay on record."""
    left = uncertain_uids(record).intersection(uncertain)
    kept = tuple(reference for reference in workload_references(claim) if reference.uid in left)
    return _by_list(record, claim, kept, "")


def _by_list(
    record: DowngradedClaim, claim: ResourceClaim, due: tuple[Reference, ...], version: str
) -> DowngradedClaim:
    """The record by the claim's present list: what is listed is not replaced yet.

    Args:
        due: the references that the next write will remove.
        version: the resourceVersion that this write carries.
    """
    listed = workload_references(claim)
    replaced = (*_without(record.replaced_references, listed), *due)
    return msgspec.structs.replace(
        record,
        workload_references=(*_without(replaced, listed), *listed)[-LIMIT:],
        replaced_references=replaced[-LIMIT:],
        resource_version=version,
    )


def _without(
    references: tuple[Reference, ...], others: tuple[Reference, ...]
) -> tuple[Reference, ...]:
    uids = {reference.uid for reference in others}
    return tuple(reference for reference in references if reference.uid not in uids)


def expanded_record(
    record: DowngradedClaim,
    claim: ResourceClaim,
    expansion: Expansion,
    uncertain: Collection[str] = (),
) -> DowngradedClaim:
    """The record after the claim was written, or needed no write, or must not be written. One that
    only pods hold was expanded by an earlier run, or by a write whose answer was lost."""
    if isinstance(expansion, ExpansionRefused):
        left = withdrawn(record, claim, uncertain)
        reason, message = expansion.obstacle, expansion.message
        return _in_state(left, RecordState.REFUSED, reason, message, pods=expansion.pods)
    if isinstance(expansion, Expanded) or expansion.by_pods:
        return _in_state(record, RecordState.EXPANDED, pods=expansion.pods)
    return over(record)


def awaiting(record: DowngradedClaim) -> DowngradedClaim:
    """The record of a claim whose references have not returned yet in this run."""
    return _in_state(record, RecordState.PENDING)


def held_back(record: DowngradedClaim, seconds: float) -> DowngradedClaim:
    """The record of a claim whose pods that claimctl listed ahead have left its list. A scheduler
    may be binding such a pod for so many seconds."""
    text = f"a scheduler may still bind pods that waited: the hold stays for {seconds:.0f} s more"
    return _in_state(record, RecordState.PENDING, Reason.PODS_MAY_BE_BOUND, text)


def is_held_back(record: DowngradedClaim) -> bool:
    return record.state == RecordState.PENDING and record.reason == Reason.PODS_MAY_BE_BOUND


def restored_record(record: DowngradedClaim, restoration: Restoration) -> DowngradedClaim:
    """The record after the references to add were added. The others stay on record."""
    kept = tuple(entry.reference for entry in restoration.left)
    left = msgspec.structs.replace(record, replaced_references=kept, resource_version="")
    if not kept:
        return _in_state(left, RecordState.RESTORED)
    return _in_state(
        left, RecordState.NOT_RESTORED, restoration.left[0].hindrance, explained(restoration.left)
    )


def over(record: DowngradedClaim) -> DowngradedClaim:
    """The record of a claim that is gone or not allocated: there is nothing to restore."""
    return _in_state(record, RecordState.UNCHANGED, replaced_references=(), resource_version="")


def unread(record: DowngradedClaim, problem: Unreadable) -> DowngradedClaim:
    """The record of a claim that cannot be read. Its references stay on record."""
    return failed(record, Reason.UNREADABLE, problem.describe())


def failed(record: DowngradedClaim, reason: str, message: str) -> DowngradedClaim:
    return _in_state(record, RecordState.FAILED, reason, message)


def _in_state(
    record: DowngradedClaim, state: RecordState, reason: str = "", message: str = "", **rest: Any
) -> DowngradedClaim:
    return msgspec.structs.replace(record, state=state, reason=reason, message=message, **rest)


def status(
    plan: DowngradePlan, phase: PlanPhase, records: Mapping[str, DowngradedClaim]
) -> DowngradePlanStatus:
    """The plan's status from the records by claim UID."""
    claims = tuple(records.values())
    return DowngradePlanStatus(
        observed_generation=plan.metadata.generation,
        phase=phase,
        total=len(claims),
        done=sum(record.state != RecordState.PENDING for record in claims),
        claims=claims,
    )


def refused(plan: DowngradePlan, message: str, now: datetime) -> DowngradePlanStatus:
    """The status of a plan that cannot be carried out because its selector is wrong."""
    condition = Condition(
        type="Accepted",
        status="False",
        observed_generation=plan.metadata.generation,
        last_transition_time=now,
        reason="InvalidSelector",
        message=f"spec.claimSelector: {message}",
    )
    return msgspec.structs.replace(
        plan.status,
        observed_generation=plan.metadata.generation,
        phase=PlanPhase.FAILED,
        conditions=(condition,),
    )


def restored_phase(records: Iterable[DowngradedClaim]) -> PlanPhase:
    """PartlyRestored if any reference is still on record, else Restored."""
    left = any(record.replaced_references for record in records)
    return PlanPhase.PARTLY_RESTORED if left else PlanPhase.RESTORED


def final_phase(records: Iterable[DowngradedClaim]) -> PlanPhase:
    """Blocked if any claim was refused or failed, else Prepared."""
    blocked = any(record.state in {RecordState.REFUSED, RecordState.FAILED} for record in records)
    return PlanPhase.BLOCKED if blocked else PlanPhase.PREPARED
