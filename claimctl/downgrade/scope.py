"""The claims that a DowngradePlan concerns: by namespace and labels, less the skipped ones."""

from __future__ import annotations

from collections.abc import Mapping

from claimctl import label_selectors
from claimctl.downgrade.records import PlanPhase
from claimctl.wire.reservations import RESTORE, ClaimName, DowngradePlan, DowngradePlanSpec

PARALLELISM = 8
"""How many claims are written at a time, unless the plan says otherwise."""


def crosses(plan: DowngradePlan) -> bool:
    """Whether PodGroups must not be made because of this plan: they have to be gone."""
    if plan.metadata.deleting or plan.status.phase == PlanPhase.FAILED:
        return False
    return bool(plan.spec.upgrade_to) and plan.spec.action != RESTORE


def freezes(
    plan: DowngradePlan, namespace: str, name: str, labels: Mapping[str, str] | None
) -> bool:
    """Whether the controller must add no workload reference to the claim because of this plan.

    Args:
        labels: the claim's labels; None if the claim is not known.
    """
    spec = plan.spec
    if plan.metadata.deleting or plan.status.phase == PlanPhase.FAILED or spec.action == RESTORE:
        return False
    if spec.namespaces and namespace not in spec.namespaces:
        return False
    if is_skipped(spec, namespace, name):
        return False
    try:
        return labels is None or _labels_match(spec, labels)
    except ValueError:
        # Nothing is known of what the administrator wants: add nothing until the plan is corrected.
        return True


def selects(spec: DowngradePlanSpec, namespace: str, labels: Mapping[str, str]) -> bool:
    """Whether the plan's namespaces and labels select the claim. A wrong selector selects none."""
    try:
        chosen = _labels_match(spec, labels)
    except ValueError:
        return False
    return chosen and (not spec.namespaces or namespace in spec.namespaces)


def _labels_match(spec: DowngradePlanSpec, labels: Mapping[str, str]) -> bool:
    return label_selectors.selects(label_selectors.parse(spec.claim_selector), labels)


def is_skipped(spec: DowngradePlanSpec, namespace: str, name: str) -> bool:
    return ClaimName(namespace=namespace, name=name) in spec.skip


def same_claims(spec: DowngradePlanSpec, other: DowngradePlanSpec) -> bool:
    """Whether both specs select the same claims, apart from the skipped ones, and for the same
    upgrade or for none."""
    return (
        spec.upgrade_to == other.upgrade_to
        and set(spec.namespaces) == set(other.namespaces)
        and spec.claim_selector.strip() == other.claim_selector.strip()
    )


def described(spec: DowngradePlanSpec) -> str:
    """The scope for people, like ``namespaces ml, web with labels team=a``."""
    if spec.upgrade_to:
        return f"an upgrade to {spec.upgrade_to}"
    where = ", ".join(spec.namespaces) or "all namespaces"
    return f"{where} with labels {spec.claim_selector}" if spec.claim_selector else where
