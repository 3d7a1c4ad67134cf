"""Rules for the args of plugins that no type expresses. Each fault is one line with its path."""

from __future__ import annotations

from collections.abc import Iterator

from claimctl import label_selectors
from claimctl.label_selectors import LabelSelector
from claimctl_reschedule.plan import policy as policies
from claimctl_reschedule.policyfile.problems import Path, PolicyError, at
from claimctl_reschedule.policyfile.v1alpha2 import (
    DEPRECATED_SWITCHES,
    DefaultEvictorArgs,
    PodProtections,
    SelectorModel,
    duration,
)


def problems(args: policies.PolicyModel, path: Path) -> Iterator[str]:
    """What is wrong in the args of one plugin, which stand at ``path``."""
    match args:
        case DefaultEvictorArgs():
            yield from _evictor(args, path)
        case policies.RemoveDuplicates(
            namespaces=policies.Namespaces(include=[_, *_], exclude=[_, *_])
        ):
            yield at((*path, "namespaces"), "include and exclude exclude each other")
        case policies.Utilization():
            yield from utilization(args, path)
        case policies.CriticalPods() if not args.system_namespaces:
            yield at((*path, "systemNamespaces"), "names no namespace")
        case policies.UnplaceablePods() if args.brake and args.avoid in ("Taint", "Report"):
            text = f"needs avoid: Auto or Admission, since {args.avoid} makes no pod wait"
            yield at((*path, "brake"), text)


def nodes_of(selector: str | None) -> LabelSelector | None:
    """The nodes of a policy's ``nodeSelector``; None: all. PolicyError if it is none."""
    try:
        return label_selectors.parse(selector) if selector and selector.strip() else None
    except ValueError as error:
        raise PolicyError(at(("nodeSelector",), str(error))) from None


def _evictor(args: DefaultEvictorArgs, path: Path) -> Iterator[str]:
    if args.node_selector:
        yield at((*path, "nodeSelector"), "is not read: write the nodeSelector of the whole policy")
    yield from _selector(args.label_selector, (*path, "labelSelector"))
    yield from _selector(args.namespace_label_selector, (*path, "namespaceLabelSelector"))
    yield from _styles(args, path)
    if args.pod_protections is not None:
        yield from _protections(args.pod_protections, (*path, "podProtections"))
    threshold = args.priority_threshold
    if threshold is not None and (threshold.value is None) == (threshold.name is None):
        yield at((*path, "priorityThreshold"), "either value or name is expected")
    if args.min_pod_age is not None:
        try:
            duration(args.min_pod_age)
        except ValueError as error:
            yield at((*path, "minPodAge"), str(error))


def _styles(args: DefaultEvictorArgs, path: Path) -> Iterator[str]:
    if args.pod_protections is None:
        return
    fields = type(args).model_fields
    for name in sorted(DEPRECATED_SWITCHES.keys() & args.model_fields_set):
        protection = DEPRECATED_SWITCHES[name]
        default = protection in policies.DEFAULT_PROTECTIONS
        place = "defaultDisabled" if default else "extraEnabled"
        text = f"excludes podProtections: write {protection} into podProtections.{place} instead"
        yield at((*path, fields[name].alias or name), text)


def _protections(given: PodProtections, path: Path) -> Iterator[str]:
    defaults = policies.DEFAULT_PROTECTIONS
    sides = (("extraEnabled", given.extra_enabled), ("defaultDisabled", given.default_disabled))
    for key, names in sides:
        lifts = key == "defaultDisabled"
        known = [name for name in policies.Protection if (name in defaults) is lifts]
        for index, name in enumerate(names):
            if name not in known:
                text = f"{name!r} is not known: one of {', '.join(known)} is expected"
                yield at((*path, key, index), text)
            elif name in names[:index]:
                yield at((*path, key, index), f"{name} is repeated")
    config = given.config
    if config is not None and config.pods_with_pvc and "PodsWithPVC" not in given.extra_enabled:
        text = "has no effect: add PodsWithPVC to podProtections.extraEnabled"
        yield at((*path, "config", "PodsWithPVC"), text)


def _selector(given: SelectorModel | None, path: Path) -> Iterator[str]:
    for index, rule in enumerate(given.match_expressions if given is not None else ()):
        needs = rule.operator in ("In", "NotIn")
        if needs != bool(rule.values):
            text = f"{rule.operator} {'needs' if needs else 'has no'} values"
            yield at((*path, "matchExpressions", index, "values"), text)


def utilization(args: policies.Utilization, path: Path) -> Iterator[str]:
    """The rules for thresholds, as the descheduler has them."""
    if args.evictable_namespaces.include:
        yield at((*path, "evictableNamespaces", "include"), "only exclude is read here")
    yield from _resources(args.thresholds, (*path, "thresholds"))
    if not isinstance(args, policies.LowNodeUtilization):
        return
    low, high = args.thresholds, args.target_thresholds
    yield from _resources(high, (*path, "targetThresholds"))
    for name in sorted(low.keys() ^ high.keys()):
        side = "targetThresholds" if name in low else "thresholds"
        text = f"lacks {name}: thresholds and targetThresholds name the same resources"
        yield at((*path, side), text)
    if not args.use_deviation_thresholds:
        for name in sorted(low.keys() & high.keys()):
            if low[name] > high[name]:
                text = f"{low[name]:g} is above targetThresholds, which has {high[name]:g}"
                yield at((*path, "thresholds", name), text)


def _resources(given: policies.Thresholds, path: Path) -> Iterator[str]:
    if not given:
        yield at(path, "names no resource")
    for name in given:
        if not name or name == policies.DEVICE_CLASS_PREFIX:
            yield at((*path, name), "is not the name of a resource")
