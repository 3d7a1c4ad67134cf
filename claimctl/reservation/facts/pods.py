"""Pods of a claim: which use it, which are done, and which may be ghosts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from claimctl.reservation.facts.references import is_pod, tombstone
from claimctl.reservation.remembered import Remembered
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import find_condition
from claimctl.wire.pods import ContainerStatus, Pod, PodResourceClaim, PodResourceClaimStatus

TERMINAL_PHASES = frozenset({"Succeeded", "Failed"})
DISRUPTED, SWEPT = "DisruptionTarget", "DeletionByPodGC"
"""The condition and reason that PodGC sets on a pod whose node is gone (since Kubernetes 1.26)."""

PREPARED = "PodReadyToStartContainers"
"""The condition of a bound pod whose devices are prepared and whose sandbox is there (beta, and on
by default, since Kubernetes 1.29)."""
_PREEMPTED = "PreemptionByScheduler"
_EVICTED = "DeletionByDeviceTaintManager"
"""The reason of the condition that KCM sets on a pod before it evicts the pod from a device."""


def claim_names(pod: Pod) -> frozenset[str]:
    """The claims that a pod uses, from the three fields that can name one."""
    named, status = names_in(pod.spec.resource_claims), pod.status
    if status.resource_claim_statuses:
        named |= names_in(status.resource_claim_statuses)
    if status.extended_resource_claim_status is not None:
        named |= {status.extended_resource_claim_status.resource_claim_name} - {""}
    return named


def _names(claims: tuple[PodResourceClaim | PodResourceClaimStatus, ...]) -> frozenset[str]:
    return frozenset(filter(None, (claim.resource_claim_name for claim in claims)))


names_in = Remembered(_names, most_bytes=8_000_000)
"""The names in the entries. The pods of a workload have equal entries."""


def awaited_templates(pod: Pod) -> tuple[str, ...]:
    """The templates from which kube-controller-manager is to make a claim for the pod, and has not
    made one yet."""
    made = {status.name for status in pod.status.resource_claim_statuses}
    return tuple(
        entry.resource_claim_template_name
        for entry in pod.spec.resource_claims
        if entry.resource_claim_template_name and entry.name not in made
    )


def is_bound(pod: Pod) -> bool:
    return bool(pod.spec.node_name)


def is_done(pod: Pod) -> bool:
    """Whether the pod certainly uses no device any more.

    A terminal phase alone does not prove it. PodGC sets the phase Failed on the pods of a lost
    node, although their containers may be running: such a pod is done only if its kubelet had
    reported every container as terminated. PodGC sets no condition if an administrator has tainted
    the node as out of service; by this taint, the administrator states that nothing runs there.
    """
    if pod.status.phase not in TERMINAL_PHASES:
        return pod.metadata.deleting and not is_bound(pod)
    condition = find_condition(pod.status.conditions, DISRUPTED)
    if is_bound(pod) and condition is not None and condition.reason == SWEPT:
        ended = all(container.state.terminated for container in _containers(pod))
        return ended and bool(pod.status.container_statuses)
    return not any(container.state.running for container in _containers(pod))


def is_finished(pod: Pod) -> bool:
    """Whether the pod is done and was bound. kube-controller-manager may remove such a pod from a
    list and add it again without end."""
    return is_done(pod) and is_bound(pod)


def vanishes_as_ghost(last: Pod) -> bool:
    """Whether a pod that is gone, and that was last seen as ``last``, may still use its devices: a
    kubelet sets a terminal phase before the object of a pod that has ended may be removed."""
    return is_bound(last) and not is_done(last)


def unschedulable_since(pod: Pod) -> datetime | None:
    """The time since which the pod is unschedulable, by its condition PodScheduled; or None."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    if condition is None or condition.status != "False" or condition.reason != "Unschedulable":
        return None
    return condition.last_transition_time


def is_stuck(pod: Pod) -> bool:
    """Whether a scheduler found no node for the pod, and is not binding the pod now: its condition
    stays Unschedulable then, and from Kubernetes 1.35 on the pod is nominated to the node."""
    return not pod.status.nominated_node_name and unschedulable_since(pod) is not None


def may_use(pod: Pod) -> bool:
    """Whether the pod uses its claims, or may do so soon: no gate keeps it from its scheduler, and
    it is not stuck."""
    return not pod.spec.scheduling_gates and not is_stuck(pod)


def failed_to_bind(pod: Pod) -> bool:
    """Whether a scheduler failed at the pod by an error, such as a conflict, and tries it again."""
    condition = find_condition(pod.status.conditions, "PodScheduled")
    return condition is not None and condition.reason == "SchedulerError"


def is_prepared(pod: Pod) -> bool | None:
    """Whether the kubelet has prepared the devices of a bound pod; None if the pod does not say."""
    if pod.status.phase != "Pending" or any(c.state.running for c in _containers(pod)):
        return True
    condition = find_condition(pod.status.conditions, PREPARED)
    return None if condition is None else condition.status == "True"


def is_unreported(pod: Pod) -> bool:
    """Whether the kubelet of a bound pod has reported nothing of it, as one that is away."""
    reported = is_prepared(pod) is not None or any(_containers(pod))
    return is_bound(pod) and not reported


def leaves_its_device(pod: Pod) -> bool:
    """Whether the bound pod is being deleted, and its workload is to keep the device. A preempted
    pod gives its device to the pod for which it had to go."""
    condition = find_condition(pod.status.conditions, DISRUPTED)
    return pod.metadata.deleting and (condition is None or condition.reason != _PREEMPTED)


def _containers(pod: Pod) -> Iterator[ContainerStatus]:
    yield from pod.status.container_statuses
    yield from pod.status.init_container_statuses
    yield from pod.status.ephemeral_container_statuses


def evicts_a_pod(claim: ResourceClaim, pods: Iterable[Pod]) -> bool:
    """Whether a bound pod of the list shows that KCM evicts it from a device."""
    listed = {entry.uid for entry in claim.status.reserved_for}
    return any(
        condition.type == DISRUPTED and condition.reason == _EVICTED
        for pod in pods
        if pod.metadata.uid in listed and is_bound(pod) and not is_done(pod)
        for condition in pod.status.conditions
    )


@dataclass(frozen=True, slots=True)
class Consumers:
    """The table of the pods that name one claim. A snapshot makes it once.

    Each of the first four columns has the pods of one state, by UID.
    """

    bound: dict[str, Pod]
    pending: dict[str, Pod]
    """Pods that are not bound yet. A listed one may be bound at any moment."""
    finished: dict[str, Pod]
    dropped: dict[str, Pod]
    """Pods that are being deleted and were never bound."""
    stuck: dict[str, datetime]
    """By UID of a pending pod for which a scheduler found no node: since when."""
    groups: dict[str, str]
    """By UID of a pod that is in a PodGroup: the group's name."""
    gated: set[str]
    """UIDs of the pending pods with scheduling gates. No scheduler looks at such a pod; its gate
    may stay until the devices are free."""
    listed: tuple[Reference, ...] = ()
    """The entries of the claim's list."""
    ahead: frozenset[str] = frozenset()
    """UIDs of the pending pods whose entries in the claim's list claimctl wrote."""
    full: bool = False
    """Whether the list has no place left, and each pod needs one."""
    relisted: bool = True
    """Whether kube-controller-manager lists a finished pod again that was taken out."""

    @classmethod
    def of(
        cls,
        pods: Iterable[Pod],
        listed: tuple[Reference, ...] = (),
        written: frozenset[str] = frozenset(),
        *,
        full: bool = False,
        relisted: bool = True,
    ) -> Consumers:
        """Sort the pods by state.

        Args:
            written: the UIDs of the entries that claimctl wrote.
        """
        table = cls({}, {}, {}, {}, {}, {}, set(), listed, full=full, relisted=relisted)
        for pod in pods:
            uid, bound = pod.metadata.uid, is_bound(pod)
            if is_done(pod):
                (table.finished if bound else table.dropped)[uid] = pod
            elif bound:
                table.bound[uid] = pod
            else:
                table.pending[uid] = pod
                if pod.spec.scheduling_gates:
                    table.gated.add(uid)
                since = unschedulable_since(pod)
                if since is not None and is_stuck(pod):
                    table.stuck[uid] = since
            if name := pod.spec.group_name:
                table.groups[uid] = name
        own = (entry.uid for entry in listed if is_pod(entry) and entry.uid in written)
        ahead = frozenset(own) & table.pending.keys() if written and table.pending else None
        return replace(table, ahead=ahead) if ahead else table

    @property
    def count(self) -> int:
        """The number of pods that use the claim, or will soon."""
        return len(self.bound) + len(self.pending) - len(self.stuck.keys() | self.gated)

    @property
    def alive(self) -> dict[str, Pod]:
        """The pods that use the claim, or may start to use it."""
        return {**self.bound, **self.pending}

    @property
    def tombstones(self) -> dict[str, Reference]:
        """The tombstones that finished pods need, by UID. KCM never adds a pod that is being
        deleted."""
        if not self.relisted:
            return {}
        finished = (pod.metadata for pod in self.finished.values() if not pod.metadata.deleting)
        return {meta.uid: tombstone(meta) for meta in finished}

    @property
    def left_listed(self) -> frozenset[str]:
        """UIDs of several unschedulable pods that a scheduler listed and never bound: it was killed
        or their node went. A scheduler frees a claim only for a pod that is alone in the list
        (PostFilter). So these pods would wait for each other for ever."""
        if self.bound or not self.stuck or sum(map(is_pod, self.listed)) < 2:
            return frozenset()
        return frozenset({entry.uid for entry in self.listed} & self.stuck.keys()) - self.ahead

    @property
    def removable(self) -> frozenset[str]:
        """UIDs of the pending pods whose entries only claimctl removes from the list."""
        return self.ahead | self.left_listed

    @property
    def shut_out(self) -> bool:
        """Whether the list is full, with no pod bound and none of the pending ones in it: then
        finished pods fill it. Without their tombstones, KCM would add them again."""
        if not self.full or self.bound or not self.pending:
            return False
        return all(entry.uid not in self.pending for entry in self.listed)

    def nodes(self) -> tuple[str, ...]:
        """The nodes of the bound pods, sorted."""
        return tuple(sorted({pod.spec.node_name for pod in self.bound.values()}))
