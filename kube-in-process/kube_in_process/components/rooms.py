"""What the pods of a node request, added up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from kube_in_process.components.objects import controller_uid, deleting, uid
from kube_in_process.components.requests import UNSTATED, host_ports, pod_requests
from kube_in_process.kinds.pod_requests import Amounts
from kube_in_process.objects import Object

Port = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """A pod with what the scheduler computes from it once."""

    pod: Object
    requests: Amounts
    counted: Amounts
    """The requests of cpu and memory with which nodes are compared."""
    ports: tuple[Port, ...]
    rules: bool
    """Whether it has rules about other pods: podAffinity or podAntiAffinity."""

    @classmethod
    def of(cls, pod: Object) -> Asked:
        affinity = pod["spec"].get("affinity") or {}
        return cls(
            pod,
            pod_requests(pod),
            pod_requests(pod, UNSTATED),
            tuple(host_ports(pod)),
            "podAffinity" in affinity or "podAntiAffinity" in affinity,
        )

    @property
    def priority(self) -> int:
        return priority(self.pod)


def priority(pod: Object) -> int:
    value: int = pod["spec"].get("priority") or 0
    return value


@dataclass(slots=True)
class Room:
    """The pods of one node by UID, and the sums of their requests."""

    pods: dict[str, Asked] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)
    owned: Counter[str] = field(default_factory=Counter)
    """By the UID of the controller: the pods that are not being deleted."""
    ruled: int = 0
    """The pods with rules about other pods."""

    def put(self, asked: Asked) -> None:
        self.take(uid(asked.pod))
        self.pods[uid(asked.pod)] = asked
        _sum(self.used, asked.requests, 1)
        _sum(self.counted, asked.counted, 1)
        self._count(asked, 1)

    def take(self, pod: str) -> None:
        asked = self.pods.pop(pod, None)
        if asked is not None:
            _sum(self.used, asked.requests, -1)
            _sum(self.counted, asked.counted, -1)
            self._count(asked, -1)

    def _count(self, asked: Asked, sign: int) -> None:
        self.ruled += sign * asked.rules
        if not deleting(asked.pod):
            for owner in controller_uid(asked.pod):
                self.owned[owner] += sign

    def copy(self) -> Room:
        return Room(
            dict(self.pods), dict(self.used), dict(self.counted), Counter(self.owned), self.ruled
        )

    def ports(self) -> Iterator[Port]:
        for asked in self.pods.values():
            yield from asked.ports


def _sum(total: dict[str, int], amounts: Amounts, sign: int) -> None:
    for resource, value in amounts.items():
        total[resource] = total.get(resource, 0) + sign * value
