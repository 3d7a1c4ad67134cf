"""A DowngradePlan under way, as commands tell of it: what it freezes, and the next command."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from claimctl.downgrade.records import PlanPhase, RecordState, is_carried_out
from claimctl.downgrade.scope import crosses, described, freezes
from claimctl.reservation.facts.references import is_pod_group
from claimctl.text import counted
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.reservations import RESTORE, DowngradedClaim, DowngradePlan, DowngradePlanSpec

PREPARE_COMMAND = "claimctl downgrade prepare"
RESTORE_COMMAND, UPGRADE_RESTORE_COMMAND = "claimctl downgrade restore", "claimctl upgrade restore"
DOWNGRADE_STATUS, UPGRADE_STATUS = "claimctl downgrade status", "claimctl upgrade status"


def frozen_for(plans: Iterable[DowngradePlan], claim: ResourceClaim) -> str:
    """What a plan freezes the claim for: ``downgrade``, ``upgrade`` or ''."""
    meta = claim.metadata
    for plan in plans:
        if freezes(plan, meta.namespace, meta.name, meta.labels or {}):
            return "upgrade" if plan.spec.upgrade_to else "downgrade"
    return ""


def is_held_by_pods_alone(record: DowngradedClaim) -> bool:
    """Whether the plan took the workload out of the claim's list: the claim loses its devices when
    its last pod ends. A PodGroup holds nothing."""
    held = any(not is_pod_group(entry) for entry in record.replaced_references)
    return held and record.state == RecordState.EXPANDED


def prepare_command(spec: DowngradePlanSpec) -> str:
    """The command that runs a plan of this scope again."""
    if spec.upgrade_to:
        return f"claimctl upgrade prepare --to {spec.upgrade_to}"
    words = [PREPARE_COMMAND]
    for namespace in spec.namespaces:
        words += ["-n", namespace]
    if spec.claim_selector:
        words += ["-l", shlex.quote(spec.claim_selector)]
    for name in spec.skip:
        words += ["--skip", f"{name.namespace}/{name.name}"]
    return " ".join(words)


def next_command(plan: DowngradePlan) -> str:
    """The command that goes on with the plan, or says what is next."""
    upgrades = bool(plan.spec.upgrade_to)
    if plan.spec.action == RESTORE:
        return UPGRADE_RESTORE_COMMAND if upgrades else RESTORE_COMMAND
    if is_carried_out(plan) and plan.status.phase == PlanPhase.PREPARED:
        return UPGRADE_STATUS if upgrades else DOWNGRADE_STATUS
    return prepare_command(plan.spec)


def describe_plan(plan: DowngradePlan) -> str:
    """The plan in one line: for what, since when, how far it is, what waits, and the next step."""
    scope, status = described(plan.spec), plan.status
    what = scope if plan.spec.upgrade_to else f"a downgrade of {scope}"
    created = plan.metadata.creation_timestamp
    since = f" since {created:%Y-%m-%dT%H:%M:%SZ}" if created is not None else ""
    parts = [f"{what} is under way{since}", f"{status.phase or 'not begun'}"]
    if not is_carried_out(plan):
        parts[-1] += f", {status.done} of {counted(status.total, 'claim')} done"
    if alone := sum(map(is_held_by_pods_alone, status.claims)):
        parts.append(f"{counted(alone, 'claim')} held by pods alone: do not scale to 0 now")
    if crosses(plan):
        parts.append("new pods of PodGroups wait")
    return f"{'; '.join(parts)}; next: `{next_command(plan)}`"
