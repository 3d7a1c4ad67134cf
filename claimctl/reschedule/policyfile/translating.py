"""A checked policy file in the form that planning reads."""

from __future__ import annotations

from dataclasses import dataclass

from claimctl.reschedule.plan import policy
from claimctl.reschedule.plan.policy import Protection
from claimctl.reschedule.policyfile import v1alpha2 as models
from claimctl.reschedule.policyfile.checks import duration
from claimctl.wire.label_selectors import LabelSelector, LabelSelectorRequirement


@dataclass(frozen=True, slots=True)
class CheckedPolicy:
    """A policy file that was checked.

    Attributes:
        skipped: what ``--skip-unsupported`` left out, one line each.
        notes: what a reader of the file might not expect, one line each.
    """

    policy: policy.Policy
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def evictor_of(args: models.DefaultEvictorArgs) -> policy.Evictor:
    """Which pods may be evicted."""
    pvc = args.pod_protections and args.pod_protections.config
    classes = pvc.pods_with_pvc.protected_storage_classes if pvc and pvc.pods_with_pvc else ()
    return policy.Evictor(
        protections=_protections(args),
        protected_storage_classes=tuple(storage.name for storage in classes),
        node_fit=args.node_fit,
        min_replicas=args.min_replicas,
        min_pod_age_seconds=duration(args.min_pod_age or "0"),
        priority_threshold=args.priority_threshold,
        label_selector=_selector(args.label_selector),
        namespace_label_selector=_selector(args.namespace_label_selector),
        replacing_owners=frozenset((owner.group, owner.kind) for owner in args.replacing_owners),
        no_eviction_policy=args.no_eviction_policy,
        move_held_claims=args.move_held_claims,
    )


def _protections(args: models.DefaultEvictorArgs) -> frozenset[Protection]:
    """The protections in force, from either style of the file."""
    given = args.pod_protections or models.PodProtections()
    lifted, added = set(given.default_disabled), set(given.extra_enabled)
    for name, (side, protection) in models.DEPRECATED_SWITCHES.items():
        if getattr(args, name):
            (lifted if side == "default_disabled" else added).add(protection)
    return (policy.DEFAULT_PROTECTIONS - set(map(Protection, lifted))) | set(map(Protection, added))


def _selector(given: models.SelectorModel | None) -> LabelSelector | None:
    if given is None:
        return None
    expressions = (LabelSelectorRequirement(**dict(rule)) for rule in given.match_expressions)
    return LabelSelector(
        match_labels=dict(given.match_labels), match_expressions=tuple(expressions)
    )
