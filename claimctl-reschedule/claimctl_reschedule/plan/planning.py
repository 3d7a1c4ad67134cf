"""Decide which pods to move: one plan over one picture of the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from claimctl.wire.resources import PODS
from claimctl_reschedule.plan import policy as policies
from claimctl_reschedule.plan.budgets import Budgets
from claimctl_reschedule.plan.claims import Claims
from claimctl_reschedule.plan.fit import Fitter, Volumes
from claimctl_reschedule.plan.inventory import Inventory
from claimctl_reschedule.plan.ledger import Ledger
from claimctl_reschedule.plan.observed import Observed
from claimctl_reschedule.plan.plan import Note, Plan
from claimctl_reschedule.plan.prediction import Predictor
from claimctl_reschedule.plan.protections import Protections
from claimctl_reschedule.plan.run import Context, Run
from claimctl_reschedule.plan.strategies.bad_nodes import leave_bad_nodes
from claimctl_reschedule.plan.strategies.critical import rescue_critical
from claimctl_reschedule.plan.strategies.duplicates import remove_duplicates
from claimctl_reschedule.plan.strategies.emptying import empty_nodes
from claimctl_reschedule.plan.strategies.resizes import make_room_for_resizes
from claimctl_reschedule.plan.strategies.unplaceable import place_elsewhere, stop_avoiding
from claimctl_reschedule.plan.strategies.utilization import balance_usage
from claimctl_reschedule.plan.units import ClaimUnits
from claimctl_reschedule.plan.world import World

NOT_LISTED = "no replacesPods counts: WorkloadKinds may not be listed (workloadkinds.claimctl.io)"


class UnknownPriorityClass(Exception):
    """A policy names a PriorityClass that the cluster does not have."""


def plan(observed: Observed, policy: policies.Policy) -> Plan:
    """Choose the moves of one run, with a reason for every pod that was considered and stays.

    The strategies of ``deschedule`` run once. Those of ``balance`` run until none of them finds
    another move, so that a run on the result has nothing left to do.

    Raises:
        UnknownPriorityClass: a priority threshold names a class that was not observed.
    """
    claims = Claims(observed)
    inventory = Inventory(observed, claims)
    return plan_with(observed, policy, inventory, ClaimUnits(observed, claims, inventory))


def plan_with(
    observed: Observed, policy: policies.Policy, devices: Inventory, units: ClaimUnits
) -> Plan:
    """``plan`` with another knowledge of claims."""
    volumes = Volumes(observed.volume_claims, observed.volumes)
    policy = policy.with_owners(observed.replacing_kinds or frozenset())
    run = _run(observed, policy, volumes, devices, units)
    if observed.replacing_kinds is None:
        run.notes.append(Note(strategy="", text=NOT_LISTED))
    run.notes += [
        Note(strategy="DefaultEvictor", profile=profile.name, text=text)
        for profile in policy.profiles
        for text in _surprises(profile.evictor)
    ]
    protections = [
        Protections(
            evictor=profile.evictor,
            policy=policy,
            world=run.world,
            budgets=run.budgets,
            volumes=volumes,
            now=observed.now,
            priority_threshold=_threshold(observed, profile.evictor.priority_threshold),
        )
        for profile in policy.profiles
    ]
    profiles = tuple(zip(policy.profiles, protections, strict=True))
    for profile, protected in profiles:
        for strategy in profile.deschedule:
            _apply(run, Context(strategy.name, profile, protected), strategy)
    if not policy.names(policies.UnplaceablePods):
        stop_avoiding(run)
    before = -1
    while len(run.moves) > before:
        before = len(run.moves)
        for profile, protected in profiles:
            for strategy in profile.balance:
                _apply(run, Context(strategy.name, profile, protected), strategy)
    skipped = sorted(run.skipped.values(), key=lambda skip: (skip.pod.namespace, skip.pod.name))
    return Plan(
        made_at=observed.now,
        cluster_uid=observed.cluster_uid,
        moves=tuple(run.moves),
        taints=tuple(run.taints),
        reallocations=tuple(run.reallocations),
        resizes=tuple(run.resizes),
        avoidances=tuple(run.avoidances),
        releases=tuple(run.releases),
        next_look=run.next_look,
        skipped=tuple(skipped),
        notes=tuple(run.notes),
    ).sealed()


def _surprises(evictor: policies.Evictor) -> Iterator[str]:
    """What an evictor says that has another effect than with the descheduler."""
    lifted = policies.DEFAULT_PROTECTIONS - evictor.protections
    if not evictor.node_fit:
        yield "nodeFit: false has no effect: a pod moves only to a node that fits it"
    if policies.Protection.FAILED_BARE in lifted:
        yield "FailedBarePods is lifted without effect: no strategy looks at failed bare pods"
    if policies.Protection.SYSTEM_CRITICAL in lifted and evictor.priority_threshold is not None:
        yield (
            "priorityThreshold holds for critical pods, too, although SystemCriticalPods is lifted"
        )


def _run(
    observed: Observed,
    policy: policies.Policy,
    volumes: Volumes,
    devices: Inventory,
    units: ClaimUnits,
) -> Run:
    # nobody can tell what room a pod takes up that cannot be read
    unread = (problem for problem in observed.unreadable if problem.resource.kind == PODS.kind)
    doubtful = [problem.read("spec.nodeName", str, "") or "" for problem in unread]
    labels = {known.metadata.name: known.metadata.labels or {} for known in observed.namespaces}
    world = World(observed.nodes, observed.pods, labels, doubtful)
    # the names by which pods ask for devices as for a resource: the class's own, and the implicit
    classes = observed.device_classes
    named = (known.spec.extended_resource_name for known in classes)
    implicit = (policies.DEVICE_CLASS_PREFIX + known.metadata.name for known in classes)
    fitter = Fitter(world, volumes, frozenset(filter(None, (*named, *implicit))))
    return Run(
        observed=observed,
        policy=policy,
        world=world,
        predictor=Predictor(world, fitter, devices),
        devices=devices,
        units=units,
        budgets=Budgets(observed.budgets, observed.unreadable),
        ledger=Ledger(policy.limits, observed.record, observed.now),
        workloads={
            owner.metadata.uid: above.uid
            for owner in observed.owners
            if (above := owner.metadata.controller()) is not None
        },
    )


def _threshold(observed: Observed, wanted: policies.PriorityThreshold | None) -> int | None:
    if wanted is None or not wanted.name:
        return wanted.value if wanted else None
    for priority_class in observed.priority_classes:
        if priority_class.metadata.name == wanted.name:
            return priority_class.value
    raise UnknownPriorityClass(
        f"priorityThreshold.name: there is no PriorityClass {wanted.name} in the cluster; "
        "name one that exists, or set priorityThreshold.value"
    )


def _apply(run: Run, context: Context, strategy: policies.Strategy) -> None:
    match strategy:
        case policies.RemoveDuplicates():
            remove_duplicates(run, context, strategy)
        case policies.LowNodeUtilization():
            limited = replace(context, limit_per_node=strategy.eviction_limits.node)
            balance_usage(run, limited, strategy)
        case policies.HighNodeUtilization():
            empty_nodes(run, context, strategy)
        case policies.CriticalPods():
            rescue_critical(run, context, strategy)
        case policies.DeferredResizes():
            make_room_for_resizes(run, context, strategy)
        case policies.UnplaceablePods():
            place_elsewhere(run, context, strategy)
        case policies.LeaveBadNodes():
            leave_bad_nodes(run, context)
