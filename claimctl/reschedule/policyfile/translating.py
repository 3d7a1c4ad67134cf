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


def strategy_of(args: models.PolicyModel) -> policy.Strategy:
    """The strategy that the args of a plugin describe."""
    match args:
        case models.RemoveDuplicatesArgs():
            return policy.RemoveDuplicates(
                exclude_owner_kinds=args.exclude_owner_kinds,
                namespaces=_namespaces(args.namespaces),
            )
        case models.LowNodeUtilizationArgs():
            return policy.LowNodeUtilization(
                thresholds=dict(args.thresholds),
                target_thresholds=dict(args.target_thresholds),
                use_deviation_thresholds=args.use_deviation_thresholds,
                number_of_nodes=args.number_of_nodes,
                limit_per_node=args.eviction_limits.node if args.eviction_limits else None,
                namespaces=_namespaces(args.evictable_namespaces),
            )
        case models.CriticalPodsArgs():
            return policy.CriticalPods(**dict(args))
        case models.DeferredResizesArgs():
            return policy.DeferredResizes(**dict(args))
        case models.UnplaceablePodsArgs():
            own = {name: value for name, value in args if name != "budget"}
            return policy.UnplaceablePods(**own, **dict(args.budget))
        case models.LeaveBadNodesArgs():
            return policy.LeaveBadNodes()
    raise AssertionError(f"{type(args).__name__} describe no strategy")


def evictor_of(args: models.DefaultEvictorArgs) -> policy.Evictor:
    """Which pods may be evicted."""
    pvc = args.pod_protections and args.pod_protections.config
    threshold = args.priority_threshold
    classes = pvc.pods_with_pvc.protected_storage_classes if pvc and pvc.pods_with_pvc else ()
    return policy.Evictor(
        protections=_protections(args),
        protected_storage_classes=tuple(storage.name for storage in classes),
        node_fit=args.node_fit,
        min_replicas=args.min_replicas,
        min_pod_age_seconds=duration(args.min_pod_age or "0"),
        priority_threshold=(
            policy.PriorityThreshold(threshold.value, threshold.name or "") if threshold else None
        ),
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


def _namespaces(given: models.NamespacesModel | None) -> policy.Namespaces:
    return policy.Namespaces(given.include, given.exclude) if given else policy.Namespaces()


def _selector(given: models.SelectorModel | None) -> LabelSelector | None:
    if given is None:
        return None
    expressions = (LabelSelectorRequirement(**dict(rule)) for rule in given.match_expressions)
    return LabelSelector(
        match_labels=dict(given.match_labels), match_expressions=tuple(expressions)
    )
