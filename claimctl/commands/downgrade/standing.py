"""How one claim stands before the feature is switched off: ready, to be prepared, or blocked."""

from __future__ import annotations

from collections.abc import Collection
from enum import StrEnum
from typing import Annotated

from msgspec import field

from claimctl.cli.documents import Part, says
from claimctl.downgrade.expansion import (
    Expanded,
    Expansion,
    ExpansionObstacle,
    ExpansionRefused,
    expand_recorded,
    names_of,
    scale_command,
    unknown_references,
    workload_references,
)
from claimctl.downgrade.pods import PodsOfClaims
from claimctl.downgrade.records import RecordState, is_carried_out
from claimctl.downgrade.scope import is_skipped, selects
from claimctl.downgrade.under_way import PREPARE_COMMAND, prepare_command
from claimctl.reservation.facts.pods import Consumers, claim_names
from claimctl.reservation.facts.references import is_pod
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import DowngradedClaim, DowngradePlan

NO_PLAN = DowngradePlan()


class Standing(StrEnum):
    LISTED = "Listed"
    """The list has every bound pod and no workload, or the claim is not allocated."""
    TO_PREPARE = "ToPrepare"
    """The next run of downgrade prepare writes the list."""
    BLOCKED = "Blocked"
    """downgrade prepare cannot write the list: the command of the claim helps."""
    SKIPPED = "Skipped"
    """The administrator left the claim out with --skip."""


NOT_PREPARED = "NotPrepared"
PUT_BACK = "PutBack"
"""An earlier run had prepared the claim, and another component changed the list since."""
OUTSIDE_PLAN = "OutsidePlan"


class StandingClaim(Part, frozen=True, kw_only=False):
    namespace: str
    name: str
    uid: str
    standing: Standing = field(name="state")
    reason: str
    message: str
    command: Annotated[str, says("the command that helps, or ''")]
    pods: Annotated[int, says("how many bound pods use the claim")]
    unlisted: Annotated[int, says("how many of them its list does not name")]


def concerns(claim: ResourceClaim, recorded: Collection[str]) -> bool:
    """Whether the claim matters to a downgrade: a workload is listed, or pods may use it without
    being listed, or the plan has a record."""
    used = bool(workload_references(claim)) or claim.is_open_to_any
    return used or claim.metadata.uid in recorded


def bound_pods(claim: ResourceClaim, pods: PodsOfClaims) -> list[Pod]:
    """The bound pods that use the claim and are not done."""
    using = (pod for pod in pods.of(claim) if claim.metadata.name in claim_names(pod))
    return list(Consumers.of(using).bound.values())


def unlisted_pods(claim: ResourceClaim, pods: Collection[Pod]) -> list[Pod]:
    """Those of these pods that have no entry of their own in the claim's list."""
    known = {entry.uid for entry in claim.status.reserved_for if is_pod(entry)}
    return [pod for pod in pods if pod.metadata.uid not in known]


def stand(
    claim: ResourceClaim,
    pods: PodsOfClaims,
    plan: DowngradePlan | None,
    record: DowngradedClaim | None,
    on_record: Collection[str] = (),
) -> StandingClaim:
    """Judge one claim by a live LIST of pods that began after the claim was read, and by the plan's
    record of it. ``on_record``: UIDs of references in the statuses of reservations."""
    expansion = expand_recorded(claim, pods, record, on_record=on_record)
    bound, meta = bound_pods(claim, pods), claim.metadata
    unknown = unknown_references(claim, on_record)
    judged = _judge(claim, expansion, plan or NO_PLAN, record, unknown)
    is_new = plan is not None and judged[0] is Standing.TO_PREPARE and record is None
    if plan and is_new and not selects(plan.spec, meta.namespace, meta.labels or {}):
        judged = _OUT_OF_SCOPE
    unlisted = len(unlisted_pods(claim, bound)) if claim.status.allocation is not None else 0
    return StandingClaim(meta.namespace, meta.name, meta.uid, *judged, len(bound), unlisted)


_Judged = tuple[Standing, str, str, str]
_OUT_OF_SCOPE = (
    Standing.BLOCKED,
    OUTSIDE_PLAN,
    "the DowngradePlan does not select this claim: end the plan, and prepare all claims",
    "kubectl delete downgradeplan claimctl",
)


def _judge(
    claim: ResourceClaim,
    expansion: Expansion,
    plan: DowngradePlan,
    record: DowngradedClaim | None,
    unknown: tuple[Reference, ...],
) -> _Judged:
    command = prepare_command(plan.spec)
    if not isinstance(expansion, Expanded | ExpansionRefused):
        return Standing.LISTED, "", "", ""
    if is_skipped(plan.spec, claim.metadata.namespace, claim.metadata.name):
        text = "left out with --skip: its pods may fail once the feature is off"
        return Standing.SKIPPED, "", text, ""
    if isinstance(expansion, ExpansionRefused):
        helps = _help(claim, expansion.obstacle, unknown)
        return Standing.BLOCKED, expansion.obstacle, expansion.message, helps
    names, unlisted = names_of(expansion.removed), "pods use the claim that are not listed"
    if record is not None and record.state == RecordState.EXPANDED and is_carried_out(plan):
        what = f"{names} is in the list again" if names else unlisted
        return Standing.TO_PREPARE, PUT_BACK, f"{what} since the last run", command
    what = f"held by {names}; the list would have {expansion.pods} pods instead"
    return Standing.TO_PREPARE, NOT_PREPARED, what if names else unlisted, command


def _help(claim: ResourceClaim, obstacle: ExpansionObstacle, unknown: tuple[Reference, ...]) -> str:
    name, namespace = claim.metadata.name, claim.metadata.namespace
    match obstacle:
        case ExpansionObstacle.TOO_MANY_CONSUMERS:
            return scale_command(claim) or f"{PREPARE_COMMAND} --skip {namespace}/{name}"
        case ExpansionObstacle.NO_CONSUMER:
            return f"claimctl release {name} -n {namespace}"
        case ExpansionObstacle.BEING_DELETED:
            return f"kubectl wait --for=delete -n {namespace} resourceclaim/{name} --timeout=10m"
        case ExpansionObstacle.UNKNOWN_REFERENCE:
            foreign = unknown[0]
            kind = f"{foreign.resource}.{foreign.api_group}".rstrip(".")
            return f"kubectl get -n {namespace} {kind} {foreign.name}"
        case ExpansionObstacle.UNREADABLE_POD:
            return f"kubectl get -n {namespace} pods"
        case ExpansionObstacle.GENERATED_FOR_POD_GROUP:
            return f"{PREPARE_COMMAND} --skip {namespace}/{name}"
