"""What ``claimctl reschedule`` leaves in a cluster, so that claimctl can remove it alone, too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from msgspec.structs import force_setattr

from claimctl.wire import pods
from claimctl.wire.base import Present, Wire
from claimctl.wire.meta import ObjectHeader
from claimctl.wire.nodes import Node, Taint
from claimctl.wire.resources import NODES, PODS, Resource, read_as

CRITICAL_TAINT = "CriticalAddonsOnly"
"""The key of the taint that keeps other pods off. Critical add-ons tolerate it."""
MOVING_TAINT = "claimctl.io/moving"
"""The key of the taint that closes the node of a unit whose held claims are given up."""
AVOID_TAINT = "claimctl.io/avoid"
"""The key of the taint (PreferNoSchedule) of a node that refuses the pods of an owner."""
TAINT_VALUE_PREFIX = "claimctl-"
"""Before the UID of a pod or of an owner: the value of every taint of claimctl's."""
OWN_KEYS = frozenset({CRITICAL_TAINT, MOVING_TAINT, AVOID_TAINT})
BRAKE_GATE = "claimctl.io/brake"
"""The scheduling gate of pods whose owner is braked."""


def is_own(key: str, value: str) -> bool:
    """Whether a taint is claimctl's. An administrator's has another value."""
    return key in OWN_KEYS and value.startswith(TAINT_VALUE_PREFIX)


def own_taints(nodes: Iterable[Node]) -> Iterator[tuple[str, Taint]]:
    """The names of nodes with claimctl's taints on them."""
    for node in nodes:
        for taint in node.spec.taints:
            if is_own(taint.key, taint.value):
                yield node.metadata.name, taint


class WholeTaints(Wire, frozen=True, kw_only=True):
    taints: tuple[dict[str, Any], ...] = ()
    """Each with all its fields, also those that claimctl does not know."""

    def __post_init__(self) -> None:
        # a null is as if the field was not there, as in every struct
        present = tuple(
            {name: value for name, value in taint.items() if value is not None}
            for taint in self.taints
        )
        if present != self.taints:
            force_setattr(self, "taints", present)


class TaintedNode(ObjectHeader, frozen=True, kw_only=True):
    """A node with its taints as the server sends them, so that they can be written again."""

    spec: WholeTaints = WholeTaints()


TAINTED_NODES = read_as(NODES, TaintedNode)


class NamedGate(Present, frozen=True, kw_only=True):
    name: str = ""


class WholePodSpec(pods.PodSpec, frozen=True, kw_only=True):
    scheduling_gates: tuple[NamedGate, ...] = ()


class WholePodStatus(pods.PodStatus, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class WholePod(pods.Pod, frozen=True, kw_only=True):
    """A pod with the names of its gates, and with the reason why a node refused it."""

    spec: WholePodSpec = WholePodSpec()
    status: WholePodStatus = WholePodStatus()

    @property
    def braked(self) -> bool:
        """Whether the pod waits because of the brake."""
        return any(gate.name == BRAKE_GATE for gate in self.spec.scheduling_gates)


WHOLE_PODS = read_as(PODS, WholePod)


class TracesStatus(Wire, frozen=True, kw_only=True):
    taints: tuple[Present, ...] = ()
    avoidances: tuple[Present, ...] = ()


class Traces(ObjectHeader, frozen=True, kw_only=True):
    """A RescheduleRecord: whether it has entries of taints and of avoidances."""

    status: TracesStatus = TracesStatus()


RECORDS = Resource(
    "claimctl.io", "v1alpha1", "reschedulerecords", "RescheduleRecord", Traces, namespaced=False
)
