"""Pods that a scheduler may bind to the claim without writing to it any more.

A scheduler decides on the claim as it saw it when it began to schedule the pod (PreFilter). If the
claim was open to the pod then, the pod is bound without another write to the claim, however long
that takes: the scheduler's client waits for its rate limit, a volume for its binding (up to 600 s),
a Permit plugin for its peers. A claim is open to a pod while it lists the pod, or the pod's
PodGroup, or, where schedulers list no pod beside others (KEP-5194), anything that is no pod.

So a pending pod counts as a consumer, whatever the reason of a release, until ``binding_seconds``
have passed since this process first saw the claim closed to it (the fence, or its deletion). The
wait begins anew with every process and with every gap in what it sees, so it needs no wall clock
and nothing about when the pod was made: newer pods count as well. ``status.nominatedNodeName``
shows such a pod, but that it is not set proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from claimctl.reservation.dialects import DIALECTS
from claimctl.reservation.pods import Consumers, unschedulable_since
from claimctl.reservation.reasons import Reason
from claimctl.reservation.reserved_for.references import is_pod, is_pod_group
from claimctl.reservation.snapshot import Rules, Snapshot
from claimctl.reservation.workloads import group_of
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod

PENDING_PODS_GIVE_WAY = frozenset(
    {
        Reason.REALLOCATED,
        Reason.HOLD_YIELDED,
        Reason.WITHDRAWN,
        Reason.CLAIM_DELETED,
        Reason.WORKLOAD_RECREATED,
    }
)
"""Reasons for which a claim is released although pods wait for it; for any other they count."""


def binding_seconds(pod: Pod, rules: Rules, groups: Iterable[PodGroup] = ()) -> float:
    """How long after the claim was closed to the pod a scheduler may still bind it.

    Args:
        groups: the PodGroups that are known; one that the pod names and that is not among them
            may be a gang.
    """
    known = pod.spec.scheduler_name in ("", *rules.known_schedulers)
    waits = any(volume.may_be_unbound for volume in pod.spec.volumes)
    slow = waits or not known or _may_be_of_gang(pod, groups)
    return max(rules.binding_seconds, rules.slow_binding_seconds if slow else 0.0)


def _may_be_of_gang(pod: Pod, groups: Iterable[PodGroup]) -> bool:
    """Whether any scheduler may keep the pod waiting for its peers: kube-scheduler has a Permit
    plugin for gangs, which waits for up to five minutes (GangScheduling, Kubernetes 1.35)."""
    if pod.spec.workload_ref is not None:
        return True
    name = group_of(pod.spec)
    if not name:
        return False
    policies = [each.spec.scheduling_policy for each in groups if each.metadata.name == name]
    return not policies or any(
        policy is not None and policy.gang is not None for policy in policies
    )


def binding_left(snapshot: Snapshot, pod: Pod) -> float:
    """Seconds for which a pending pod may still be bound without a write; 0 when it may not.

    Of a claim that is being deleted schedulers begin nothing new, whoever is listed.
    """
    age = _closed_age(snapshot, pod)
    if snapshot.claim is not None and snapshot.claim.metadata.deleting:
        age = max(age, snapshot.memory.deleting_age)
    return max(binding_seconds(pod, snapshot.rules, snapshot.groups) - age, 0.0)


def _closed_age(snapshot: Snapshot, pod: Pod) -> float:
    """Since when the claim is closed to the pod, as far as this process can tell."""
    seen = snapshot.memory.openings
    if _is_open(snapshot, pod):
        return 0.0
    ages = [seen.watched_age, seen.entry_age.get(pod.metadata.uid, seen.watched_age)]
    if group_of(pod.spec):
        ages.append(seen.group_age)
    if _lists_nobody_beside_others(snapshot):
        ages.append(seen.holder_age)
    return min(ages)


def _is_open(snapshot: Snapshot, pod: Pod) -> bool:
    group = group_of(pod.spec)
    return any(
        each.uid == pod.metadata.uid
        or (group and is_pod_group(each) and each.name == group)
        or (_lists_nobody_beside_others(snapshot) and not is_pod(each))
        for each in snapshot.references
    )


def _lists_nobody_beside_others(snapshot: Snapshot) -> bool:
    return not DIALECTS[snapshot.rules.dialect].lists_beside_others


def users_among(
    snapshot: Snapshot, reason: Reason, consumers: Consumers
) -> tuple[list[Pod], list[Pod]]:
    """The pods that stand in the way of a release: those that use the claim, and others that a
    scheduler may still bind to it.

    A pending pod that is listed may be bound at any moment: the scheduler lists first. Where the
    claim is open to a pod by a holder, the fence has to come first.
    """
    using, binding = list(consumers.bound.values()), []
    for pod in consumers.pending.values():
        if reason not in PENDING_PODS_GIVE_WAY or _keeps_its_entry(snapshot, reason, pod):
            using.append(pod)
        elif not _to_be_fenced(snapshot, pod) and binding_left(snapshot, pod) > 0:
            binding.append(pod)
    return using, binding


def _keeps_its_entry(snapshot: Snapshot, reason: Reason, pod: Pod) -> bool:
    listed = any(each.uid == pod.metadata.uid for each in snapshot.references)
    return listed and not _deleting(snapshot) and not _waits_in_vain(reason, pod)


def _waits_in_vain(reason: Reason, pod: Pod) -> bool:
    return reason is Reason.REALLOCATED and unschedulable_since(pod) is not None


def _to_be_fenced(snapshot: Snapshot, pod: Pod) -> bool:
    return not _deleting(snapshot) and _is_open(snapshot, pod)


def _deleting(snapshot: Snapshot) -> bool:
    return snapshot.claim is not None and snapshot.claim.metadata.deleting


def entries_to_take_out(snapshot: Snapshot, reason: Reason, consumers: Consumers) -> frozenset[str]:
    """UIDs of the listed pods that find no node: their entries go with the fence.

    A scheduler has listed them for a binding that did not come about, and ended before it took the
    entry out. Nothing else would ever end that; and if such a pod is bound all the same, which the
    wait after the fence is for, KCM lists it again.
    """
    listed = {each.uid for each in snapshot.references if is_pod(each)}
    return frozenset(
        uid
        for uid, pod in consumers.pending.items()
        if uid in listed and _waits_in_vain(reason, pod)
    )
