"""A checked policy file in the form that planning reads."""

from __future__ import annotations

from claimctl.reschedule.plan import policy
from claimctl.reschedule.plan.policy import Protection
from claimctl.reschedule.policyfile import v1alpha2 as models
from claimctl.reschedule.policyfile.checks import duration
from claimctl.reschedule.policyfile.model import CheckedPolicy, CheckedProfile, Plugin
from claimctl.wire import label_selectors
from claimctl.wire.label_selectors import LabelSelector, LabelSelectorRequirement


def translated(checked: CheckedPolicy) -> policy.Policy:
    """The policy of a run."""
    evictors = [profile.evictor for profile in checked.profiles]
    in_flight = [evictor.max_unavailable_per_workload for evictor in evictors]
    return policy.Policy(
        profiles=tuple(map(_profile, checked.profiles)),
        node_selector=_parsed(checked.node_selector),
        limits=policy.Limits(checked.per_node, checked.per_namespace, checked.total),
        max_unavailable_per_workload=min(in_flight, default=1),
        grace_period_seconds=checked.grace_period_seconds,
        eviction_failure_event=checked.failure_events,
    )


def _profile(checked: CheckedProfile) -> policy.Profile:
    return policy.Profile(
        name=checked.name,
        evictor=_evictor(checked.evictor),
        deschedule=tuple(map(_strategy, checked.deschedule)),
        balance=tuple(map(_strategy, checked.balance)),
    )


def _strategy(plugin: Plugin) -> policy.Strategy:
    match plugin.args:
        case models.RemoveDuplicatesArgs() as args:
            return policy.RemoveDuplicates(
                exclude_owner_kinds=args.exclude_owner_kinds,
                namespaces=_namespaces(args.namespaces),
            )
        case models.LowNodeUtilizationArgs() as args:
            return policy.LowNodeUtilization(
                thresholds=dict(args.thresholds),
                target_thresholds=dict(args.target_thresholds),
                use_deviation_thresholds=args.use_deviation_thresholds,
                number_of_nodes=args.number_of_nodes,
                limit_per_node=args.eviction_limits.node if args.eviction_limits else None,
                namespaces=_namespaces(args.evictable_namespaces),
            )
        case models.CriticalPodsArgs() as args:
            return policy.CriticalPods(
                system_namespaces=args.system_namespaces,
                unschedulable_seconds=float(args.unschedulable_seconds),
                pod_scheduled_timeout_seconds=float(args.pod_scheduled_timeout_seconds),
                attempts=args.attempts,
            )
        case models.DeferredResizesArgs() as args:
            return policy.DeferredResizes(
                stand_back=policy.StandBack(args.stand_back),
                deferred_seconds=float(args.deferred_seconds),
                settle_seconds=float(args.settle_seconds),
            )
        case models.UnplaceablePodsArgs() as args:
            return _unplaceable(args)
    raise AssertionError(f"{plugin.name} has no strategy")


def _unplaceable(args: models.UnplaceablePodsArgs) -> policy.UnplaceablePods:
    return policy.UnplaceablePods(
        stuck_seconds=float(args.stuck_seconds),
        refusals=args.budget.refusals,
        window_seconds=float(args.budget.window_seconds),
        keep_refused=args.keep_refused,
        avoid=policy.Avoid(args.avoid),
        brake=args.brake,
    )


def _evictor(args: models.DefaultEvictorArgs) -> policy.Evictor:
    pvc = args.pod_protections and args.pod_protections.config
    classes = pvc.pods_with_pvc.protected_storage_classes if pvc and pvc.pods_with_pvc else ()
    return policy.Evictor(
        protections=_protections(args),
        protected_storage_classes=tuple(device_class.name for device_class in classes),
        node_fit=args.node_fit,
        min_replicas=args.min_replicas,
        min_pod_age_seconds=duration(args.min_pod_age or "0"),
        priority_threshold=_threshold(args.priority_threshold),
        label_selector=_selector(args.label_selector),
        namespace_label_selector=_selector(args.namespace_label_selector),
        replacing_owners=frozenset(
            (replacing_owner.group, replacing_owner.kind)
            for replacing_owner in args.replacing_owners
        ),
        no_eviction_policy=policy.NoEvictionPolicy(args.no_eviction_policy),
        move_held_claims=policy.MoveHeldClaims(args.move_held_claims),
    )


def _protections(args: models.DefaultEvictorArgs) -> frozenset[Protection]:
    """The protections in force, from either style of the file."""
    given = args.pod_protections or models.PodProtections()
    lifted, added = set(given.default_disabled), set(given.extra_enabled)
    for name, (side, protection) in models.DEPRECATED_SWITCHES.items():
        if getattr(args, name):
            (lifted if side == "default_disabled" else added).add(protection)
    return (policy.DEFAULT_PROTECTIONS - set(map(Protection, lifted))) | set(map(Protection, added))


def _threshold(given: models.PriorityThreshold | None) -> policy.PriorityThreshold | None:
    return policy.PriorityThreshold(given.value, given.name or "") if given is not None else None


def _namespaces(given: models.Namespaces | None) -> policy.Namespaces:
    return policy.Namespaces(given.include, given.exclude) if given else policy.Namespaces()


def _selector(given: models.LabelSelector | None) -> LabelSelector | None:
    if given is None:
        return None
    return LabelSelector(
        match_labels=dict(given.match_labels),
        match_expressions=tuple(
            LabelSelectorRequirement(
                key=match_expression.key,
                operator=match_expression.operator,
                values=match_expression.values,
            )
            for match_expression in given.match_expressions
        ),
    )


def _parsed(text: str) -> LabelSelector | None:
    return label_selectors.parse(text) if text.strip() else None
