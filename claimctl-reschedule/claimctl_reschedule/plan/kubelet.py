"""What a kubelet says about the resizes that wait on its node.

The rules are those of k8s.io/kubernetes/pkg/kubelet/allocation: a resize is granted if what the pod
wants fits beside what all other pods hold, for cpu and memory. A pod that is being deleted holds
its part until it has gone. Waiting resizes are tried in one order: those that grow nothing, then by
priority, Guaranteed before the others, and the longest waiting first. One that does not fit does
not stop those behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from claimctl.text import counted
from claimctl.wire.meta import Condition, find_condition
from claimctl_reschedule.plan.requests import CPU, MEMORY, desired_requests, held_requests
from claimctl_reschedule.plan.world import WorldNode, WorldPod
from claimctl_reschedule.shapes.records import RecordedResize
from claimctl_reschedule.shapes.scheduling import SchedulingPod

RESIZE_PENDING, DEFERRED = "PodResizePending", "Deferred"
Amounts = tuple[int, int]
"""Milli-CPU and bytes of memory."""
_GUARANTEED = "Guaranteed"


def deferred(pod: SchedulingPod) -> Condition | None:
    """The condition by which a kubelet says that a resize has no room now."""
    condition = find_condition(pod.status.conditions, RESIZE_PENDING)
    waits = condition is not None and condition.status == "True" and condition.reason == DEFERRED
    return condition if waits else None


def held(pod: SchedulingPod) -> Amounts:
    """What the pod takes up for its kubelet."""
    return _both(held_requests(pod))


def _both(requests: Mapping[str, int]) -> Amounts:
    return requests.get(CPU, 0), requests.get(MEMORY, 0)


@dataclass(frozen=True, slots=True)
class Waiting:
    """A pod whose resize waits."""

    pod: WorldPod
    desired: Amounts
    held: Amounts
    since: datetime
    """When the kubelet deferred it."""

    @property
    def more(self) -> Amounts:
        """What it takes beyond what it holds, once it is granted."""
        (cpu, memory), (held_cpu, held_memory) = self.desired, self.held
        return max(cpu - held_cpu, 0), max(memory - held_memory, 0)

    def fits(self, free: Amounts) -> bool:
        there = zip(self.desired, self.held, free, strict=True)
        return all(not wanted or wanted <= has + left for wanted, has, left in there)


@dataclass(frozen=True, slots=True)
class Account:
    """A node as its kubelet counts it."""

    allocatable: Amounts
    held: Mapping[str, Amounts]
    """By the UID of a pod on the node."""
    waiting: tuple[Waiting, ...]
    """In the kubelet's order."""

    def free(self, without: Collection[str] = ()) -> Amounts:
        """What nobody holds once these pods (UIDs) have gone."""
        here = [amounts for uid, amounts in self.held.items() if uid not in without]
        cpu, memory = self.allocatable
        return cpu - sum(used for used, _ in here), memory - sum(used for _, used in here)

    def granted(self, without: Collection[str] = ()) -> set[str]:
        """The pods whose resizes get room once these pods have gone."""
        granted: set[str] = set()
        cpu, memory = self.free(without)
        for resize in self.waiting:
            if resize.pod.uid not in without and resize.fits((cpu, memory)):
                cpu, memory = cpu - resize.more[0], memory - resize.more[1]
                granted.add(resize.pod.uid)
        return granted


def account(node: WorldNode) -> Account:
    """The account of a node, with the pods that are on it in the ``World``."""
    bound = [pod for pod in node.pods.values() if pod.pod.spec.node_name == node.name]
    amounts = {pod.uid: held(pod.pod) for pod in bound}
    waiting: list[Waiting] = []
    for pod in bound:
        condition = deferred(pod.pod)
        if condition is not None and not pod.pod.metadata.deleting:
            since = condition.last_transition_time or datetime.min.replace(tzinfo=UTC)
            waiting.append(Waiting(pod, _both(desired_requests(pod.pod)), amounts[pod.uid], since))
    return Account((node.cpu, node.memory), amounts, tuple(sorted(waiting, key=_rank)))


def _rank(resize: Waiting) -> tuple[bool, int, bool, datetime, tuple[str, str, str]]:
    pod = resize.pod.pod
    guaranteed = pod.status.qos_class == _GUARANTEED
    return any(resize.more), -(pod.spec.priority or 0), not guaranteed, resize.since, resize.pod.key


LATE = timedelta(minutes=10)
"""A kubelet looks at waiting resizes at least every three minutes."""


def in_vain(
    rounds: Iterable[RecordedResize], now: datetime
) -> Iterator[tuple[RecordedResize, str]]:
    """The rounds after which the pod waits on, and what to say about each. A run of ``claimctl
    reschedule`` removes the rounds of pods that wait no longer."""
    for resize in rounds:
        if resize.since is None or now < resize.since + LATE:
            continue
        minutes = (now - resize.since).total_seconds() // 60
        left = f"{counted(len(resize.victims), 'pod')} left for it {minutes:.0f} minutes ago"
        yield resize, f"its resize waits although {left}"
