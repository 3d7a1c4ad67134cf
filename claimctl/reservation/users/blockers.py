"""The blockers of a release: who uses the claim, or may do so without another write to it.

A scheduler uses the claim as it was when the scheduling of the pod began (PreFilter). If the claim
was open to the pod then, the scheduler binds the pod without another write to the claim. That may
take long: the scheduler's client waits for its rate limit, a volume is bound (up to 600 s), a
device is made ready (binding conditions, up to 600 s), or a Permit plugin waits for the pod's gang.
A claim is open to a pod if the list has one of these:

- the pod;
- the pod's PodGroup;
- any entry that is no pod, if schedulers list no pod beside such entries (KEP-5194).

So a pending pod counts as a consumer, whatever the reason of the release, until the binding time
has passed since this process first saw the claim closed to the pod (by the fence, or by the claim's
deletion). The time starts again with each process and after each gap in its watch.

claimctl takes out entries that it listed ahead, and those of several unschedulable pods that
schedulers listed and never bound (``left_listed``). Such a pod may be in a scheduling cycle,
whatever its condition says. So the binding time counts for it from then on.

``blockers`` yields them all, each kind in a function of its own. Whether pending pods block a
release is said by its reason (``PENDING_PODS_GIVE_WAY``), and how long each may still be bound by
``binding_seconds``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import inf

from claimctl.reservation.facts.decision import Blocker
from claimctl.reservation.facts.pods import Consumers, claim_names
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import (
    LIMIT,
    describe,
    groups_in,
    is_pod,
    is_pod_group,
    is_tombstone,
    is_workload,
)
from claimctl.reservation.facts.snapshot import LiveList, Snapshot
from claimctl.reservation.users.ghosts import ghost_blockers, unseen_history
from claimctl.text import counted, listed
from claimctl.wire.claims import Reference
from claimctl.wire.pods import Pod
from claimctl.wire.unreadable import Unreadable

POLL_SECONDS = 5.0
"""How often a scheduler looks at the conditions of devices, in seconds."""
PENDING_PODS_GIVE_WAY = frozenset(
    {
        Reason.REALLOCATED,
        Reason.HOLD_YIELDED,
        Reason.UNUSED_TOO_LONG,
        Reason.WITHDRAWN,
        Reason.CLAIM_DELETED,
        Reason.WORKLOAD_RECREATED,
    }
)
"""Reasons for which a claim is released although pods wait for it. For any other reason, pending
pods count as consumers, except those that wait in vain."""


def binding_seconds(snapshot: Snapshot, pod: Pod) -> float:
    """Seconds for which a scheduler may still bind the pod after the claim was closed to it."""
    rules, spec = snapshot.rules, pod.spec
    slow = (
        spec.scheduler_name not in ("", *rules.known_schedulers)
        or any(volume.may_be_unbound for volume in spec.volumes)
        or _may_be_of_gang(snapshot, pod)
        or _may_wait_for_devices(snapshot, pod)
    )
    return max(rules.binding_seconds, rules.slow_binding_seconds if slow else 0.0)


def _may_be_of_gang(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether a scheduler may keep the pod waiting for its gang.

    The Permit plugin of kube-scheduler for gangs waits for up to five minutes (GangScheduling,
    Kubernetes 1.35). An unknown group of the pod may be a gang.
    """
    if pod.spec.workload_ref is not None:
        return True
    name = pod.spec.group_name
    policies = [g.spec.scheduling_policy for g in snapshot.groups if g.metadata.name == name]
    gangs = any(policy is not None and policy.gang is not None for policy in policies)
    return bool(name) and (gangs or not policies)


def _may_wait_for_devices(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether a claim of the pod has binding conditions, or may get some when it is allocated.

    The scheduler then asks every 5 s whether the claims are allocated and their conditions true. It
    does not notice that a claim was allocated anew (DRADeviceBindingConditions, Kubernetes 1.34).
    It gives the pod up if a device fails.
    """
    claim, polled = snapshot.claim, snapshot.memory.version_age >= 2 * POLL_SECONDS
    if polled and claim is not None:
        # the claim's driver reports that a device will not be ready for a pod, and the scheduler
        # has seen that by now
        for device in claim.devices:
            for condition in claim.status.reported(device):
                if condition.status == "True" and (
                    condition.type in device.binding_failure_conditions
                ):
                    return False
    names = claim_names(pod)
    claims = [claim if name == snapshot.name else snapshot.claims.get(name) for name in names]
    if any(device.binding_conditions for known in claims if known for device in known.devices):
        return True
    allocated = [known is not None and known.status.allocation is not None for known in claims]
    complete = all(allocated) and len(names) >= len(pod.spec.resource_claims)
    return snapshot.binding_conditions and not complete


def binding_left(snapshot: Snapshot, pod: Pod) -> float:
    """Seconds for which a scheduler may still bind a pending pod without a write to the claim. From
    the claim's deletion on, schedulers begin to schedule no pod with it, listed or not."""
    age = max(closed_age(snapshot, pod), snapshot.memory.deleting_age)
    return max(binding_seconds(snapshot, pod) - age, 0.0)


def longest_binding_left(snapshot: Snapshot) -> float:
    """The same for all pending pods that the claim is closed to; 0 if there is none."""
    pending = snapshot.consumers.pending.values()
    closed = (pod for pod in pending if not is_open(snapshot, pod))
    return max((binding_left(snapshot, pod) for pod in closed), default=0.0)


def closed_age(snapshot: Snapshot, pod: Pod) -> float:
    """Seconds since this process first saw the claim closed to the pod; 0 while it is open."""
    seen = snapshot.memory.openings
    if is_open(snapshot, pod):
        return 0.0
    ages = [
        seen.watched_age,
        seen.entry_age.get(pod.metadata.uid, seen.watched_age),
        snapshot.dialect.unlisted_age(seen.holder_age),
    ]
    if group := pod.spec.group_name:
        ages.append(seen.group_ages.get(group, inf))
    return min(ages)


def is_open(snapshot: Snapshot, pod: Pod) -> bool:
    """Whether a scheduler may bind the pod without a write to the claim, as the list is now."""
    if pod.metadata.uid in snapshot.listed_uids or snapshot.admits_unlisted:
        return True
    return pod.spec.group_name in groups_in(snapshot.non_pods) - {""}


@dataclass(frozen=True, slots=True)
class Users:
    """The pods that block a release.

    A pod to which the claim is still open is in none of the lists if the fence closes it.
    """

    using: list[Pod]
    """Pods that use the claim."""
    listed: list[Pod]
    """Pods that have to give way, and that a scheduler listed. It may bind them at any moment."""
    binding: list[Pod]
    """Pods that have to give way, and that may still be bound although the claim is closed."""
    binding_left: float = 0.0
    """Seconds for which the last of them may be bound."""


def users_among(snapshot: Snapshot, reason: Reason, consumers: Consumers) -> Users:
    """The pods that block a release, of the cache or of a live LIST."""
    using, in_list = list(consumers.bound.values()), list[Pod]()
    binding: dict[str, tuple[Pod, float]] = {}
    yielding = _yielding(reason, consumers)
    out = entries_to_take_out(snapshot, reason, consumers)
    deleting = snapshot.deleting
    for uid, pod in consumers.pending.items():
        if uid not in yielding:
            using.append(pod)
        elif uid in snapshot.listed_uids and uid not in out and not deleting:
            in_list.append(pod)
        elif (deleting or not is_open(snapshot, pod)) and (left := binding_left(snapshot, pod)) > 0:
            binding[uid] = pod, left
    pods = [pod for pod, _ in binding.values()]
    return Users(using, in_list, pods, max((left for _, left in binding.values()), default=0.0))


def _yielding(reason: Reason, consumers: Consumers) -> frozenset[str]:
    """UIDs of the pending pods that have to give way: the release does not wait until they have
    used the claim."""
    if reason in PENDING_PODS_GIVE_WAY or consumers.shut_out:
        return frozenset(consumers.pending)
    return frozenset(consumers.stuck) | consumers.gated


def entries_to_take_out(snapshot: Snapshot, reason: Reason, consumers: Consumers) -> frozenset[str]:
    """UIDs of the pods whose entries the fence removes: those that have to give way, and whose
    entries only claimctl removes.

    Without a hold beside them they stay: the fence would empty the list, and the scheduler might
    deallocate the claim (PostFilter). If such a pod is bound nevertheless during the wait after the
    fence, kube-controller-manager lists it again.
    """
    held = any(is_workload(entry) and not is_pod_group(entry) for entry in snapshot.non_pods)
    if snapshot.deleting or not held:
        return frozenset()
    return consumers.removable & _yielding(reason, consumers)


def blockers(snapshot: Snapshot, reason: Reason, own: frozenset[str]) -> Iterator[Blocker]:
    """All blockers of a release for this reason, by the caches. For ``own`` see ``Assessment``."""
    yield from users(snapshot, reason, snapshot.consumers)
    yield from ghost_blockers(snapshot)
    yield from unseen_history(snapshot)
    if foreign := [entry for entry in snapshot.non_pods if is_foreign(entry, own)]:
        text = f"the list has entries that claimctl does not own: {listed(map(describe, foreign))}"
        yield Blocker(Reason.UNKNOWN_REFERENCES, text)
    if snapshot.group_listed and not snapshot.deleting and snapshot.too_many_finished:
        yield no_room_for_finished()
    yield from against_release(snapshot.unreadable)


def users(snapshot: Snapshot, reason: Reason, consumers: Consumers) -> Iterator[Blocker]:
    """Blockers for the pods that use the claim, or that may be bound to it at any moment."""
    pods = users_among(snapshot, reason, consumers)
    if pods.using:
        use = counted(len(pods.using), "pod uses the claim", "pods use the claim")
        yield Blocker(Reason.CONSUMERS_LEFT, f"{use}: {names_of(pods.using)}")
    if pods.listed:
        waiting = counted(len(pods.listed), "pod that is", "pods that are")
        text = f"a scheduler has listed {waiting} not bound yet: {names_of(pods.listed)}"
        yield Blocker(Reason.PODS_LISTED, text)
    if pods.binding:
        binding = counted(len(pods.binding), "pod")
        text = f"a scheduler that still sees an older version of the claim may bind {binding}"
        message = f"{text}: {names_of(pods.binding)}"
        yield Blocker(Reason.PODS_MAY_BE_BOUND, message, pods.binding_left)


def live_users(
    snapshot: Snapshot, reason: Reason, live: LiveList, consumers: Consumers
) -> tuple[Blocker, ...]:
    """The same by the pods of a live LIST, with its unreadable pods."""
    return (*users(snapshot, reason, consumers), *against_release(live.unreadable))


def against_release(unread: Iterable[Unreadable]) -> Iterator[Blocker]:
    """A blocker for each unreadable object that may use the claim, hold it or make pods for it."""
    return (Blocker(Reason.UNREADABLE, item.describe()) for item in unread)


def names_of(pods: Iterable[Pod]) -> str:
    return listed(sorted(pod.metadata.name for pod in pods))


def is_foreign(reference: Reference, own: frozenset[str]) -> bool:
    """Whether another client keeps this entry in the list, to hold the claim."""
    return not is_pod(reference) and not is_tombstone(reference) and reference.uid not in own


def no_room_for_finished() -> Blocker:
    """The blocker of a list that has no room for the tombstones of all finished pods."""
    text = f"more than {LIMIT} pods of the PodGroup have finished and are still there"
    advice = "delete the group before the claim, or delete finished pods"
    return Blocker(Reason.FINISHED_PODS_LEFT, f"{text}: {advice}")
