"""Pending pods that a scheduler may still bind without another write to the claim.

A scheduler uses the claim as it was when the scheduling of the pod began (PreFilter). If the claim
was open to the pod then, the scheduler binds the pod without another write to the claim. That may
take long: the scheduler's client waits for its rate limit, a volume is bound (up to 600 s), or a
Permit plugin waits for the pod's gang. A claim is open to a pod if the list has one of these:

- the pod;
- the pod's PodGroup;
- any entry that is no pod, if schedulers list no pod beside such entries (KEP-5194).

So a pending pod counts as a consumer, whatever the reason of the release, until the binding time
has passed since this process first saw the claim closed to the pod (by the fence, or by the claim's
deletion). The time starts again with each process and after each gap in its watch. So it needs no
wall clock, and does not depend on the age of the pod. ``status.nominatedNodeName`` shows such a
pod, but such a pod need not have it.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from claimctl.reservation.dialects import DIALECTS
from claimctl.reservation.pods import Consumers, unschedulable_since
from claimctl.reservation.reasons import Reason
from claimctl.reservation.reserved_for.references import (
    is_pod,
    is_pod_group,
    is_workload,
    listed_ahead,
)
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
"""Reasons for which a claim is released although pods wait for it. With any other reason, pending
pods count as consumers."""


def binding_seconds(pod: Pod, rules: Rules, groups: Iterable[PodGroup] = ()) -> float:
    """Seconds for which a scheduler may still bind the pod after the claim was closed to it.

    Args:
        groups: the known PodGroups. An unknown group of the pod may be a gang.
    """
    known = pod.spec.scheduler_name in ("", *rules.known_schedulers)
    waits = any(volume.may_be_unbound for volume in pod.spec.volumes)
    slow = waits or not known or _may_be_of_gang(pod, groups)
    return max(rules.binding_seconds, rules.slow_binding_seconds if slow else 0.0)


def _may_be_of_gang(pod: Pod, groups: Iterable[PodGroup]) -> bool:
    """Whether a scheduler may keep the pod waiting for its gang.

    The Permit plugin of kube-scheduler for gangs waits for up to five minutes (GangScheduling,
    Kubernetes 1.35).
    """
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
    """Seconds for which a scheduler may still bind a pending pod without a write to the claim.

    From the claim's deletion on, schedulers begin to schedule no pod with it, listed or not.
    """
    age = max(_closed_age(snapshot, pod), snapshot.memory.deleting_age)
    return max(binding_seconds(pod, snapshot.rules, snapshot.groups) - age, 0.0)


def _closed_age(snapshot: Snapshot, pod: Pod) -> float:
    """Seconds since this process first saw the claim closed to the pod; 0 while it is open."""
    seen = snapshot.memory.openings
    if _is_open(snapshot, pod):
        return 0.0
    ages = [seen.watched_age, seen.entry_age.get(pod.metadata.uid, seen.watched_age)]
    if group_of(pod.spec):
        ages.append(seen.group_age)
    if _lists_no_pod_beside_others(snapshot):
        ages.append(seen.holder_age)
    return min(ages)


def schedulers_list_pods(snapshot: Snapshot) -> bool:
    """Whether schedulers list each pod that has no PodGroup before they bind it."""
    return not _lists_no_pod_beside_others(snapshot) and not snapshot.shared


def one_by_one(snapshot: Snapshot) -> bool:
    """Whether each pod of the present allocation was listed before it was bound."""
    groups = DIALECTS[snapshot.rules.dialect].groups or snapshot.memory.openings.group_age < inf
    return schedulers_list_pods(snapshot) and not groups


def _is_open(snapshot: Snapshot, pod: Pod) -> bool:
    group = group_of(pod.spec)
    return any(
        each.uid == pod.metadata.uid
        or (group and is_pod_group(each) and each.name == group)
        or (_lists_no_pod_beside_others(snapshot) and not is_pod(each))
        for each in snapshot.references
    )


def _lists_no_pod_beside_others(snapshot: Snapshot) -> bool:
    return not DIALECTS[snapshot.rules.dialect].lists_beside_others


def users_among(
    snapshot: Snapshot, reason: Reason, consumers: Consumers
) -> tuple[list[Pod], list[Pod]]:
    """The pods that block a release: those that use the claim, and those that may still be bound.

    A listed pending pod may be bound at any moment, because the scheduler lists a pod before it
    binds it. A pod to which the claim is still open does not count here: the fence comes first.
    """
    using, binding = list(consumers.bound.values()), []
    out = entries_to_take_out(snapshot, reason, consumers)
    for pod in consumers.pending.values():
        if reason not in PENDING_PODS_GIVE_WAY or _keeps_its_entry(snapshot, pod, out):
            using.append(pod)
        elif not _to_be_fenced(snapshot, pod) and binding_left(snapshot, pod) > 0:
            binding.append(pod)
    return using, binding


def _keeps_its_entry(snapshot: Snapshot, pod: Pod, taken_out: frozenset[str]) -> bool:
    uid = pod.metadata.uid
    listed = any(each.uid == uid for each in snapshot.references)
    return listed and not _deleting(snapshot) and uid not in taken_out


def _cannot_reach_devices(reason: Reason, pod: Pod) -> bool:
    return reason is Reason.REALLOCATED and unschedulable_since(pod) is not None


def _to_be_fenced(snapshot: Snapshot, pod: Pod) -> bool:
    return not _deleting(snapshot) and _is_open(snapshot, pod)


def _deleting(snapshot: Snapshot) -> bool:
    return snapshot.claim is not None and snapshot.claim.metadata.deleting


def entries_to_take_out(snapshot: Snapshot, reason: Reason, consumers: Consumers) -> frozenset[str]:
    """UIDs of the pending pods whose entries the fence removes.

    - Entries that claimctl listed ahead, if pending pods give way. Without a hold beside them they
      stay: the fence would empty the list, and the scheduler might deallocate (PostFilter).
    - Entries of unschedulable pods, if the devices are given up. A scheduler listed such a pod, did
      not bind it, and ended before it removed the entry. No other component removes the entry.

    If such a pod is bound nevertheless during the wait after the fence, kube-controller-manager
    lists it again.
    """
    claim = snapshot.claim
    if claim is None or claim.metadata.deleting:
        return frozenset()
    listed = {each.uid for each in snapshot.references if is_pod(each)}
    vain = frozenset(
        uid
        for uid, pod in consumers.pending.items()
        if uid in listed and _cannot_reach_devices(reason, pod)
    )
    held = any(is_workload(each) and not is_pod_group(each) for each in snapshot.references)
    gives_way = reason in PENDING_PODS_GIVE_WAY and held
    return vain | listed_ahead(claim, consumers.pending) if gives_way else vain
