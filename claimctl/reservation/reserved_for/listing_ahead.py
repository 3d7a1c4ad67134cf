"""List pending pods before the scheduler does, so that it has nothing to write for them.

Where pods are listed one by one, the scheduler writes each pod into the claim before it binds the
pod. If many pods share a claim, these writes conflict. The scheduler tries each of them five times,
then it fails at the pod (SchedulerError) and tries it again after a back-off of a second or more.
If it finds the pod listed at the beginning of a scheduling cycle, it writes nothing.

For a pod's first cycle, claimctl is always too late: the scheduler would add the pod a second time
and be refused (Duplicate value), which costs the pod a back-off. So claimctl lists a pod when the
scheduler has failed at it: then that cycle has ended, and the next one finds the pod listed.

In a crowd, claimctl lists all pods at once. There most of the scheduler's writes fail in any case,
one refusal costs less than five conflicts, and a busy API server would make claimctl's writes late.

An entry that another client removes is not added again: the scheduler removes the entry of a pod
that it gives up (Unreserve), and kube-controller-manager (KCM) the entry of a pod that its cache
does not show yet. The scheduler then lists the pod by itself.

A pod listed ahead can be bound without a write to the claim, like a pod that the scheduler listed.
``users.blockers`` says what that means for a release.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from math import inf

from claimctl.reservation.facts.decision import WriteList
from claimctl.reservation.facts.pods import failed_to_bind
from claimctl.reservation.facts.references import LIMIT, is_pod, is_workload
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.wire.claims import Reference
from claimctl.wire.podgroups import SchedulingPolicy
from claimctl.wire.pods import Pod

QUIET_SECONDS, BUSY_SECONDS = 0.1, 1.0
"""A scheduler writes pods into a claim until it has not changed for a moment, or for so long at
most."""
PATIENCE_SECONDS = 30.0
"""An entry may be taken out of a full list if its pod is unschedulable so long after the entry was
first seen."""


def pods_to_list(
    snapshot: Snapshot, owners: Collection[str], listed: Mapping[str, Reference]
) -> tuple[Reference, ...]:
    """The entries of the pods to list ahead, the oldest pods first.

    Args:
        owners: UIDs of the controllers whose pods may be listed, beside their workload's hold.
        listed: the entries of the desired list without these pods, by UID.
    """
    rules, pending = snapshot.rules, snapshot.consumers.pending
    if not snapshot.allocated or snapshot.deleting:
        return ()
    if not owners or not rules.list_ahead or snapshot.frozen or not snapshot.lists_each_pod:
        return ()
    if snapshot.until_in_vain == 0 or snapshot.late is not None:
        return ()
    waiting = [uid for uid in pending if uid not in listed]
    ages, crowded = snapshot.memory.arrivals.pod_age, len(pending) > rules.crowd
    ours = [
        uid
        for uid in waiting
        if (crowded or failed_to_bind(pending[uid]))
        and _is_simple(snapshot, pending[uid])
        and _was_never_listed(snapshot, pending[uid], owners)
    ]
    if ours and snapshot.node_missing:
        return ()
    ours.sort(key=lambda uid: (-ages[uid], pending[uid].metadata.name))
    room = LIMIT - len(listed) - (len(waiting) - len(ours))
    return tuple(pending[uid].reference for uid in ours[: max(room, 0)])


def listed_by(snapshot: Snapshot, write: WriteList) -> frozenset[str]:
    """UIDs of the pending pods that a write lists ahead."""
    pending, listed = snapshot.consumers.pending, snapshot.listed_uids
    return frozenset(
        entry.uid
        for entry in write.reserved_for
        if entry.uid in pending and entry.uid not in listed and is_pod(entry)
    )


def _was_never_listed(snapshot: Snapshot, pod: Pod, owners: Collection[str]) -> bool:
    """Whether the pod belongs to a workload that holds the claim, and is known to have had no entry
    in the list since it came."""
    owner, seen = pod.metadata.controller(), snapshot.memory.arrivals
    if owner is None or owner.uid not in owners:
        return False
    age = seen.pod_age.get(pod.metadata.uid)
    return age is not None and age <= seen.claim_age and pod.metadata.uid not in seen.entry_age


def _is_simple(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether nothing but the claim may keep the scheduler from binding the pod at once.

    An unknown scheduler may add the pod to the list without looking whether it is there. Schedulers
    list the pod itself if it has no PodGroup, or one without this claim. A gang waits for all its
    pods, and an unknown group may have the claim.
    """
    spec, name = pod.spec, pod.spec.group_name
    known = spec.scheduler_name in ("", *snapshot.rules.known_schedulers)
    groups = (group.spec for group in snapshot.groups if group.metadata.name == name)
    basic = any((group.scheduling_policy or SchedulingPolicy()).gang is None for group in groups)
    alone = not name or (basic and name not in snapshot.listed_groups)
    grouped = not alone or spec.workload_ref is not None
    volumes = any(volume.may_be_unbound for volume in spec.volumes)
    return known and not grouped and not volumes and not spec.scheduling_gates


def scheduler_busy_left(snapshot: Snapshot) -> float:
    """Seconds for which claimctl leaves the list to a scheduler that is writing some pods into it.

    Each write in between makes those of all pods fail once more, and a pod that fails five times
    waits for a second or more. What is listed meanwhile keeps the claim allocated. A hold is late
    by a second after the allocation at most, also if pods come and go all the time.
    """
    waiting, memory = _left_to_scheduler(snapshot), snapshot.memory
    crowded = len(snapshot.consumers.pending) > snapshot.rules.crowd
    if not waiting or crowded or not snapshot.lists_each_pod:
        return 0.0
    busy = memory.allocated_age
    if any(map(is_workload, snapshot.non_pods)):
        # a hold is there already: so the time counts from the oldest pod that is not listed
        busy = min(busy, max(memory.arrivals.pod_age.get(uid, inf) for uid in waiting))
    return max(min(QUIET_SECONDS - memory.version_age, BUSY_SECONDS - busy), 0.0)


def _left_to_scheduler(snapshot: Snapshot) -> set[str]:
    """UIDs of the pending pods that a scheduler may be writing into the list. Pods whose PodGroup
    is listed need no entry."""
    groups = snapshot.consumers.groups
    waiting = snapshot.consumers.pending.keys() - snapshot.listed_uids
    if not groups:
        return waiting
    return {uid for uid in waiting if groups.get(uid) not in snapshot.listed_groups}


@dataclass(frozen=True, slots=True)
class GivenUp:
    """The entries listed ahead that have to leave the list while a hold keeps the claim."""

    uids: frozenset[str] = frozenset()
    after: float | None = None
    """Seconds until more entries may have to go."""


NOTHING_GIVEN_UP = GivenUp()
"""No entry has to go, now or later."""


def entries_to_give_up(snapshot: Snapshot) -> GivenUp:
    """The entries of unschedulable pods listed ahead that are given up while the claim is held.

    - If no pod uses the claim for some seconds, or its devices are to be given up, all of them go.
      If the claim is given up later, the wait for pods that are being bound has begun already.
    - In a full list, the entries of pods that stay unschedulable make room for pods that wait.
    """
    pods, listed = snapshot.consumers, snapshot.listed_uids
    stale = pods.ahead & pods.stuck.keys()
    if not stale:
        return NOTHING_GIVEN_UP
    # an entry that keeps the claim allocated, whatever becomes of pending pods
    if not any(map(is_workload, snapshot.non_pods)) and listed.isdisjoint(pods.bound):
        return NOTHING_GIVEN_UP
    until = snapshot.until_in_vain
    if until is not None:
        return GivenUp(after=until) if until > 0 else GivenUp(stale)
    needed = 0
    if len(listed) >= LIMIT and not snapshot.shared:
        # the pods that wait for a place
        needed = sum(uid not in listed and uid not in pods.groups for uid in pods.pending)
    if not needed:
        return NOTHING_GIVEN_UP
    ages = snapshot.memory.arrivals.entry_age
    left = {uid: PATIENCE_SECONDS - ages.get(uid, 0.0) for uid in sorted(stale)}
    over = [uid for uid, seconds in left.items() if seconds <= 0]
    return GivenUp(
        frozenset(over[:needed]),
        min((seconds for seconds in left.values() if seconds > 0), default=None),
    )
