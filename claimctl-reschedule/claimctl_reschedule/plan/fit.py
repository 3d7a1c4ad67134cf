"""Whether a node fits a pod, or the replacement of a pod: everything but its claims.

The rules are those of the scheduler's filters. ``inventory`` judges the claims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from claimctl.wire.claims import NodeSelector
from claimctl.wire.nodes import Node
from claimctl.wire.placement import admits, matches_term, taints_of
from claimctl_reschedule.plan import affinity, spread
from claimctl_reschedule.plan.requests import PODS
from claimctl_reschedule.plan.world import ANY_ADDRESS, Port, World, WorldNode, WorldPod, host_ports
from claimctl_reschedule.shapes.scheduling import (
    PersistentVolume,
    PersistentVolumeClaim,
    SchedulingPod,
)

_KNOWN_OPERATORS = frozenset({"", "Equal", "Exists"})


class Unknown(Exception):
    """claimctl cannot judge where the pod fits; the text says why."""


@dataclass(slots=True)
class Fitting:
    """One pod's question to all nodes, at one moment of the ``World``."""

    pod: WorldPod
    still: Callable[[WorldNode], str]
    """The checks whose answer no move changes."""
    ports: tuple[Port, ...]
    pods: affinity.PodAffinityCheck | None
    spreads: tuple[spread.SpreadCheck, ...]
    by_devices: frozenset[str]
    """Resources that devices can provide where a node has none of them."""

    def problem(self, node: WorldNode) -> str:
        """Why the node does not fit, in a few words; '' if it fits."""
        if problem := self.still(node) or self._lacking(node):
            return problem
        if self.ports and _taken(self.ports, node):
            return "host port in use"
        if self.pods is not None and (problem := self.pods.problem(node)):
            return problem
        for check in self.spreads:
            if problem := check.problem(node):
                return problem
        return ""

    def _lacking(self, node: WorldNode) -> str:
        left = node.left
        for name, number in self.pod.requests.items():
            if number > left.get(name, 0) and number:
                if name in self.by_devices and not node.allocatable.get(name):
                    continue
                return "too many pods" if name == PODS else f"insufficient {name}"
        return ""


@dataclass(slots=True)
class Fitter:
    """Asks where pods fit, and remembers the answers that no move changes. ``by_devices`` are the
    extended resources that a DeviceClass provides."""

    world: World
    volumes: Volumes
    by_devices: frozenset[str] = frozenset()
    _still: dict[object, dict[str, str]] = field(default_factory=dict)

    def of(self, pod: WorldPod) -> Fitting:
        """What the pod needs of a node; the pod itself must not be on one. Raises what ``still``
        does."""
        return Fitting(
            pod=pod,
            still=self.still(pod.pod),
            ports=host_ports(pod.pod),
            pods=affinity.check_of(self.world, pod),
            spreads=spread.checks_of(self.world, pod, wanted_nodes(pod.pod)),
            by_devices=self.by_devices,
        )

    def still(self, pod: SchedulingPod) -> Callable[[WorldNode], str]:
        """The checks whose answer no move changes: why the node does not fit, '' if it does. Raises
        Unknown: a toleration or a volume of the pod cannot be judged."""
        spec = pod.spec
        for toleration in spec.tolerations:
            if toleration.operator not in _KNOWN_OPERATORS:
                text = f"claimctl does not know the operator {toleration.operator} of a toleration"
                raise Unknown(text)
        volumes = self.volumes.affinity_of(pod)
        key = (wanted_nodes(pod).shape, spec.tolerations, volumes)
        answers = self._still.setdefault(key, {})

        def judge(node: WorldNode) -> str:
            answer = answers.get(node.name)
            if answer is None:
                answer = answers[node.name] = _still_problem(pod, volumes, node)
            return answer

        return judge


def wanted_nodes(pod: SchedulingPod) -> spread.NodeWishes:
    """The nodes that the pod's node selector and required node affinity name."""
    selector = tuple(sorted((pod.spec.node_selector or {}).items()))
    shape = (selector, _required_affinity(pod))
    return spread.NodeWishes(shape, lambda node: matches_affinity(pod, node.node))


def _required_affinity(pod: SchedulingPod) -> NodeSelector | None:
    nodes = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    return nodes.required if nodes else None


def matches_affinity(pod: SchedulingPod, node: Node) -> bool:
    """Whether the node matches the pod's node selector and required node affinity."""
    labels, required = node.metadata.labels or {}, _required_affinity(pod)
    wanted = pod.spec.node_selector or {}
    chosen = all(labels.get(key) == value for key, value in wanted.items())
    return chosen and (required is None or _selects(required, node))


def _selects(selector: NodeSelector, node: Node) -> bool:
    """A term without requirements selects no node."""
    return any(
        (term.match_expressions or term.match_fields) and matches_term(term, node)
        for term in selector.node_selector_terms or ()
    )


def _still_problem(pod: SchedulingPod, volumes: tuple[NodeSelector, ...], node: WorldNode) -> str:
    if node.closed:
        return node.closed
    if not matches_affinity(pod, node.node):
        return "node selector or affinity"
    if not admits(taints_of(node.node), pod.spec.tolerations):
        return "cordoned" if node.node.spec.unschedulable else "taint"
    if not all(_selects(volume, node.node) for volume in volumes):
        return "volume node affinity"
    return ""


def _taken(ports: tuple[Port, ...], node: WorldNode) -> bool:
    return any(
        protocol == other_protocol
        and number == other_number
        and (address == other_address or ANY_ADDRESS in (address, other_address))
        for protocol, address, number in ports
        for others in node.ports.values()
        for other_protocol, other_address, other_number in others
    )


class Volumes:
    def __init__(
        self, claims: Iterable[PersistentVolumeClaim], volumes: Iterable[PersistentVolume]
    ) -> None:
        self._claims = {claim.metadata.key: claim for claim in claims}
        self._volumes = {volume.metadata.name: volume for volume in volumes}

    def claims_of(self, pod: SchedulingPod) -> Iterator[PersistentVolumeClaim | None]:
        """The PersistentVolumeClaims that the pod names; None for one that is not known. The claim
        of an ephemeral volume is not among them: the replacement gets a new one."""
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is not None:
                name = volume.persistent_volume_claim.claim_name
                yield self._claims.get((pod.metadata.namespace, name))

    def affinity_of(self, pod: SchedulingPod) -> tuple[NodeSelector, ...]:
        """What a node must fulfil to use all volumes of the pod. Raises Unknown if one is not
        found."""
        selectors: list[NodeSelector] = []
        for claim in self.claims_of(pod):
            if claim is None:
                raise Unknown("a PersistentVolumeClaim of the pod was not found")
            volume = self._volumes.get(claim.spec.volume_name)
            if volume is None:
                name = claim.metadata.name
                raise Unknown(f"the volume of PersistentVolumeClaim {name} was not found")
            nodes = volume.spec.node_affinity
            if nodes is not None and nodes.required is not None:
                selectors.append(nodes.required)
        return tuple(selectors)
