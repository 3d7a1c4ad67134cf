"""The sizes of pods on a node, and what a kubelet does about resizes.

A resize changes the spec. The kubelet admits it if there is room: then the new requests are
*allocated*. As soon as the containers have them, they are *actual*. No kubelet was recorded: the
rules and texts are those of k8s.io/kubernetes/pkg/kubelet/allocation and of KEP-1287.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kube_in_process.components.objects import condition, deleting, name, uid
from kube_in_process.components.pods import phase
from kube_in_process.kinds.pod_requests import Amounts, amounts, of_spec, raise_to, summed
from kube_in_process.objects import Object

RETRY_SECONDS = 180.0
"""A kubelet looks at waiting resizes at least this often."""
PENDING, IN_PROGRESS = "PodResizePending", "PodResizeInProgress"
_COUNTED = ("cpu", "memory")
_QUALITIES = {"Guaranteed": 0, "Burstable": 1}


@dataclass(frozen=True, slots=True)
class Sizes:
    """By the name of a container: its ``resources``, as in a spec."""

    allocated: Mapping[str, Object]
    actual: Mapping[str, Object]

    @classmethod
    def wanted(cls, pod: Object) -> Sizes:
        """The sizes of a pod that is admitted as its spec says."""
        resources = resources_of(pod)
        return cls(resources, resources)

    def counted(self, pod: Object) -> dict[str, int]:
        """What the pod takes of its node: the most of what is allocated and actual."""

        def count(container: Object) -> dict[str, int]:
            plain = container["name"]
            if plain not in self.allocated:
                return of_spec(container)
            most = amounts(self.allocated[plain].get("requests"))
            raise_to(most, amounts(self.actual[plain].get("requests")))
            return most

        return summed(pod["spec"], count)


def resources_of(pod: Object) -> dict[str, Object]:
    """The resources of containers and sidecars as the spec wants them."""
    spec = pod["spec"]
    beside = (
        container
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    )
    return {
        container["name"]: container.get("resources") or {}
        for container in (*spec["containers"], *beside)
    }


def is_resized(pod: Object, sizes: Sizes) -> bool:
    """Whether the spec wants something else than what is allocated."""
    wanted = resources_of(pod)
    return {key: _plain(resources) for key, resources in wanted.items()} != {
        key: _plain(resources) for key, resources in sizes.allocated.items()
    }


def _plain(resources: Object) -> Mapping[str, Amounts]:
    return {key: amounts(resources.get(key)) for key in ("requests", "limits")}


class ResizeAnswer(StrEnum):
    ADMITTED = "Admitted"
    DEFERRED = "Deferred"
    INFEASIBLE = "Infeasible"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the kubelet says about the resize of a pod."""

    pod: Object
    answer: ResizeAnswer
    message: str = ""


@dataclass(slots=True)
class AdmittedPods:
    """The pods that a kubelet has admitted, by UID, and their sizes."""

    pods: dict[str, Object] = field(default_factory=dict)
    sizes: dict[str, Sizes] = field(default_factory=dict)

    def used(self, without: str = "") -> dict[str, int]:
        """What all pods take, but for one (UID). A pod that is being deleted takes its part."""
        total: dict[str, int] = {}
        for pod_uid, pod in self.pods.items():
            if pod_uid != without:
                for resource, number in self.sizes[pod_uid].counted(pod).items():
                    total[resource] = total.get(resource, 0) + number
        return total

    def retry(self, allocatable: Amounts) -> Iterator[Verdict]:
        """Look at all resizes that wait, in the kubelet's order; admit those that fit."""
        for pod in in_order(self._waiting(), self.sizes):
            verdict = self._judge(pod, allocatable)
            if verdict.answer is ResizeAnswer.ADMITTED:
                sizes = self.sizes[uid(pod)]
                self.sizes[uid(pod)] = Sizes(resources_of(pod), sizes.actual)
            yield verdict

    def _waiting(self) -> Iterator[Object]:
        for pod_uid, pod in self.pods.items():
            looked_at = phase(pod) == "Running" and not deleting(pod) and not _infeasible(pod)
            if looked_at and is_resized(pod, self.sizes[pod_uid]):
                yield pod

    def reverted(self) -> Iterator[Object]:
        """The pods whose resize waited and is not wanted any more."""
        for pod_uid, pod in self.pods.items():
            if condition(pod, PENDING) is not None and not is_resized(pod, self.sizes[pod_uid]):
                yield pod

    def _judge(self, pod: Object, allocatable: Amounts) -> Verdict:
        wanted = summed(pod["spec"])
        for resource in _COUNTED:
            there = allocatable.get(resource, 0)
            if wanted.get(resource, 0) > there:
                text = (
                    f"Node didn't have enough capacity: {resource}, "
                    f"requested: {wanted[resource]}, capacity: {there}"
                )
                return Verdict(pod, ResizeAnswer.INFEASIBLE, text)
        used = self.used(without=uid(pod))
        for resource, number in wanted.items():
            there = allocatable.get(resource, 0)
            if number > there - used.get(resource, 0):
                text = (
                    f"Node didn't have enough resource: {resource}, requested: {number}, "
                    f"used: {used.get(resource, 0)}, capacity: {there}"
                )
                return Verdict(pod, ResizeAnswer.DEFERRED, text)
        return Verdict(pod, ResizeAnswer.ADMITTED)


def _infeasible(pod: Object) -> bool:
    """Whether the kubelet has found that this very resize can never be admitted."""
    pending = condition(pod, PENDING) or {}
    current = pending.get("observedGeneration") == pod["metadata"].get("generation")
    return current and pending.get("reason") == ResizeAnswer.INFEASIBLE


def in_order(pods: Iterable[Object], sizes: Mapping[str, Sizes]) -> list[Object]:
    """Resizes that grow nothing first; then by priority, QoS class and the time of waiting."""

    def rank(pod: Object) -> tuple[bool, int, int, str, str]:
        waits = condition(pod, PENDING) or {}
        quality = (pod.get("status") or {}).get("qosClass", "")
        return (
            _grows(pod, sizes[uid(pod)]),
            -(pod["spec"].get("priority") or 0),
            _QUALITIES.get(quality, len(_QUALITIES)),
            waits.get("lastTransitionTime") or "~",
            name(pod),
        )

    return sorted(pods, key=rank)


def _grows(pod: Object, sizes: Sizes) -> bool:
    wanted, allocated = summed(pod["spec"]), Sizes(sizes.allocated, sizes.allocated).counted(pod)
    return any(wanted.get(name, 0) > allocated.get(name, 0) for name in _COUNTED)


def restarts(pod: Object, sizes: Sizes) -> set[str]:
    """The containers whose resize policy asks for a restart."""
    restarted = set()
    for container in pod["spec"]["containers"]:
        plain = container["name"]
        before, after = _plain(sizes.actual[plain]), _plain(sizes.allocated[plain])
        for policy in container.get("resizePolicy") or ():
            resource = policy["resourceName"]
            changed = any(before[key].get(resource) != after[key].get(resource) for key in before)
            if changed and policy["restartPolicy"] == "RestartContainer":
                restarted.add(plain)
    return restarted
