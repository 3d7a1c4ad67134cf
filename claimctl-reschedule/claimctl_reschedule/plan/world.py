"""The model of the cluster on which a plan is made: which pod takes up what, on which node.

A chosen move counts at once: ``remove`` and ``add`` change the model, and ``rollback`` takes
changes back to a ``mark``. All orders are stable, so that the same cluster gives the same plan.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from msgspec.structs import replace as changed

from claimctl.label_selectors import LabelSelector, selects
from claimctl.reservation.facts.pods import TERMINAL_PHASES
from claimctl.wire.base import encode
from claimctl.wire.meta import find_condition
from claimctl.wire.nodes import Taint
from claimctl_reschedule.plan.pod_terms import Corner, PodTerm, PodTerms, corners, corners_of, count
from claimctl_reschedule.plan.requests import (
    CPU,
    MEMORY,
    PODS,
    amounts,
    pod_requests,
    scored_requests,
)
from claimctl_reschedule.shapes.scheduling import (
    Affinity,
    PodAffinityTerm,
    SchedulingNode,
    SchedulingPod,
)

_LONG_AGO = datetime.fromtimestamp(0, UTC)
PREFER_NO_SCHEDULE = "PreferNoSchedule"
HOSTNAME = "kubernetes.io/hostname"
Port = tuple[str, str, int]
"""Protocol, address of the host and port."""
GroupKey = tuple[str, str, tuple[str, ...]]
"""Namespace, UID of the controller owner, and the sorted images of the containers."""


@dataclass(slots=True, eq=False)
class WorldPod:
    """A pod that takes up room, or one that looks for room. ``node`` is where it is now."""

    pod: SchedulingPod
    uid: str
    namespace: str
    labels: Mapping[str, str]
    owner_uid: str
    """The UID of the controller owner, '' without one."""
    requests: Mapping[str, int]
    """By resource name, with one place among the node's ``pods``."""
    scored: tuple[int, int]
    """Milli-CPU and memory with which nodes are scored."""
    group: GroupKey | None = None
    """The pods that duplicate each other; None for a pod without owner, or one that is going."""
    node: str = ""

    def ending(self) -> WorldPod:
        """The pod while it is being deleted: it takes up room, and counts for no spread. It can be
        in the ``World`` beside the pod, which is then the replacement."""
        meta, uid = changed(self.pod.metadata, deletion_timestamp=_LONG_AGO), f"{self.uid} ending"
        return replace(self, pod=changed(self.pod, metadata=meta), uid=uid, group=None, node="")

    @property
    def key(self) -> tuple[str, str, str]:
        """Namespace, name and UID: the order in which pods are looked at."""
        return self.namespace, self.pod.metadata.name, self.uid


@dataclass(frozen=True, slots=True)
class Relocation:
    """A pod of a unit that is about to be moved."""

    pod: WorldPod
    source: str
    destination: str


@dataclass(slots=True, eq=False)
class WorldNode:
    node: SchedulingNode
    name: str
    labels: Mapping[str, str]
    allocatable: Mapping[str, int]
    cpu: int
    memory: int
    """Allocatable milli-CPU and bytes."""
    closed: str
    """Why no pod may be put here, '' if pods may be."""
    warnings: tuple[Taint, ...]
    """The taints with the effect PreferNoSchedule."""
    used: dict[str, int] = field(default_factory=dict)
    """Requests of all pods here; ``pods`` is their number."""
    left: dict[str, int] = field(default_factory=dict)
    """What ``allocatable`` has beyond ``used``."""
    scored: list[int] = field(default_factory=lambda: [0, 0])
    """The sum of ``WorldPod.scored``."""
    pods: dict[str, WorldPod] = field(default_factory=dict)
    """By UID."""
    ports: dict[str, tuple[Port, ...]] = field(default_factory=dict)
    """The host ports of the pods that have some, by UID."""


@dataclass(slots=True, eq=False)
class Matching:
    """How many pods on each node match a selector; nodes with none are absent."""

    namespaces: frozenset[str] | None
    selector: LabelSelector | None
    staying: bool
    per_node: dict[str, int] = field(default_factory=dict)

    def matches(self, pod: WorldPod) -> bool:
        if self.staying and pod.pod.metadata.deleting:
            return False
        here = self.namespaces is None or pod.namespace in self.namespaces
        return here and selects(self.selector, pod.labels)


@dataclass(frozen=True, slots=True)
class Domains:
    """The nodes whose pods count for a spread constraint, and their domains, each with no pod. No
    move changes them."""

    nodes: frozenset[str]
    none: Mapping[str, int]


class World:
    """Nodes and pods with their use of room. ``namespaces`` has the labels of each namespace. On a
    node of ``doubtful`` is a pod that cannot be read: no pod is put there."""

    def __init__(
        self,
        nodes: Iterable[SchedulingNode],
        pods: Iterable[SchedulingPod],
        namespaces: Mapping[str, Mapping[str, str]],
        doubtful: Iterable[str] = (),
    ) -> None:
        ordered = sorted(nodes, key=lambda node: node.metadata.name)
        self.nodes: dict[str, WorldNode] = {node.metadata.name: _node(node) for node in ordered}
        for name in doubtful:
            if name in self.nodes:
                self.nodes[name].closed = "a pod there cannot be read"
        self.namespaces = namespaces
        self.pods: dict[str, WorldPod] = {}
        """The pods that take up room on a node, by UID."""
        self.unreadable: dict[str, str] = {}
        """What is wrong with the requests of a pod, by UID. Such a pod takes up one place."""
        self.by_owner: dict[str, dict[str, WorldPod]] = {}
        """The pods of each controller owner, by UID."""
        self.owned: dict[str, dict[str, int]] = {}
        """How many pods of an owner, without those that are going, each node has."""
        self.groups: dict[GroupKey, dict[str, int]] = {}
        """How many pods of a group each node has."""
        self.domains: dict[Hashable, Domains] = {}
        """What is known of the domains of spread constraints."""
        self._by_namespace: dict[str, dict[str, WorldPod]] = {}
        self._matching: dict[tuple[frozenset[str] | None, bytes, bool], Matching] = {}
        self._watching: dict[Corner, list[Matching]] = {}
        self._anti = PodTerms()
        self._wishes = PodTerms()
        self._journal: list[Callable[[], None]] = []
        self._shared: dict[tuple[object, ...], Mapping[str, int]] = {}
        for pod in sorted(pods, key=lambda pod: pod.metadata.key):
            if (room := room_of(pod)) in self.nodes:
                self.add(self.seen(pod), room)
        self._journal.clear()

    def seen(self, pod: SchedulingPod) -> WorldPod:
        """The pod with what it requests, not on a node yet."""
        try:
            requests, scored = pod_requests(pod), scored_requests(pod)
        except ValueError as error:
            self.unreadable[pod.metadata.uid] = str(error)
            requests, scored = {}, (0, 0)
        requests[PODS] = 1
        shared = self._shared.setdefault(tuple(sorted(requests.items())), requests)
        meta = pod.metadata
        owner = meta.controller()
        group: GroupKey | None = None
        if owner is not None and not meta.deleting:
            images = tuple(sorted(container.image for container in pod.spec.containers))
            group = meta.namespace, owner.uid, images
        return WorldPod(
            pod=pod,
            uid=meta.uid,
            namespace=meta.namespace,
            labels=meta.labels or {},
            owner_uid=owner.uid if owner else "",
            requests=shared,
            scored=scored,
            group=group,
        )

    # changes

    def mark(self) -> int:
        """A point to which ``rollback`` can go back."""
        return len(self._journal)

    def rollback(self, mark: int) -> None:
        while len(self._journal) > mark:
            undo = self._journal.pop()
            undo()
            self._journal.pop()

    @contextmanager
    def trial(self) -> Iterator[None]:
        """What is changed inside is taken back at the end."""
        mark = self.mark()
        try:
            yield
        finally:
            self.rollback(mark)

    def add(self, pod: WorldPod, node: str) -> None:
        """The pod is on the node from now on."""
        self._change(pod, node, 1)
        self._journal.append(lambda: self.remove(pod))

    def remove(self, pod: WorldPod) -> None:
        """The pod leaves its node."""
        node = pod.node
        self._change(pod, node, -1)
        self._journal.append(lambda: self.add(pod, node))

    def _change(self, pod: WorldPod, name: str, sign: int) -> None:
        node = self.nodes[name]
        for resource, number in pod.requests.items():
            node.used[resource] = node.used.get(resource, 0) + sign * number
            node.left[resource] = node.left.get(resource, 0) - sign * number
        node.scored[0] += sign * pod.scored[0]
        node.scored[1] += sign * pod.scored[1]
        of_namespace = self._by_namespace.setdefault(pod.namespace, {})
        of_owner = self.by_owner.setdefault(pod.owner_uid, {})
        for known in (node.pods, self.pods, of_namespace, of_owner):
            if sign > 0:
                known[pod.uid] = pod
            else:
                del known[pod.uid]
        node.ports.pop(pod.uid, None)
        if sign > 0 and (ports := host_ports(pod.pod)):
            node.ports[pod.uid] = ports
        pod.node = name if sign > 0 else ""
        if pod.group is not None:
            count(self.groups.setdefault(pod.group, {}), name, sign)
            count(self.owned.setdefault(pod.owner_uid, {}), name, sign)
        self._count_terms(pod, name, sign)

    def _count_terms(self, pod: WorldPod, node: str, sign: int) -> None:
        if self._watching:
            for corner in corners_of(pod.namespace, pod.labels):
                for matching in self._watching.get(corner, ()):
                    if matching.matches(pod):
                        count(matching.per_node, node, sign)
        affinity = pod.pod.spec.affinity
        if affinity is None:
            return
        anti = ((self._anti, term, 0) for term in required_anti_affinity(affinity))
        liked = ((self._wishes, term, weight) for term, weight in wishes(affinity))
        for terms, term, weight in (*anti, *liked):
            known = terms.of(pod.namespace, term, weight, self.namespaces_of)
            count(known.per_node, node, sign)

    # questions

    def matching(
        self,
        namespaces: frozenset[str] | None,
        selector: LabelSelector | None,
        *,
        staying: bool = False,
    ) -> Mapping[str, int]:
        """How many pods of these namespaces (None: all) match the selector, by node. ``staying``:
        without the pods that are being deleted."""
        key = (namespaces, encode(selector), staying)
        cached = self._matching.get(key)
        if cached is None:
            cached = self._matching[key] = Matching(namespaces, selector, staying)
            for corner in corners(namespaces, selector):
                self._watching.setdefault(corner, []).append(cached)
            for pod in self._in(namespaces):
                if cached.matches(pod):
                    count(cached.per_node, pod.node, 1)
        return cached.per_node

    def anti_terms(self, pod: WorldPod) -> Iterator[PodTerm]:
        """The required anti-affinity terms, of pods on nodes, that mean the pod."""
        return self._anti.meaning(pod.namespace, pod.labels)

    def wishes(self, pod: WorldPod) -> Iterator[PodTerm]:
        """The terms of pods on nodes that mean the pod, and for which nodes near them score."""
        return self._wishes.meaning(pod.namespace, pod.labels)

    def namespaces_of(self, term: PodAffinityTerm, namespace: str) -> frozenset[str] | None:
        """The namespaces that a term of a pod in ``namespace`` means; None for all."""
        if term.namespace_selector is None:
            return frozenset(term.namespaces or (namespace,))
        selector = term.namespace_selector
        if not selector.match_labels and not selector.match_expressions:
            return None
        known = self.namespaces.items()
        chosen = (name for name, labels in known if selects(selector, labels))
        return frozenset((*term.namespaces, *chosen))

    def _in(self, namespaces: frozenset[str] | None) -> Iterator[WorldPod]:
        if namespaces is None:
            yield from self.pods.values()
        for name in sorted(namespaces or ()):
            yield from self._by_namespace.get(name, {}).values()


def room_of(pod: SchedulingPod) -> str:
    """The node on which the pod takes up room: its own, or the one that a preemption frees. A pod
    that has ended, and a pod that only waits, take up none: ''."""
    ended = pod.status.phase in TERMINAL_PHASES
    return "" if ended else pod.spec.node_name or pod.status.nominated_node_name


def required_anti_affinity(affinity: Affinity | None) -> tuple[PodAffinityTerm, ...]:
    anti = affinity.pod_anti_affinity if affinity else None
    return anti.required if anti else ()


def wishes(affinity: Affinity) -> Iterator[tuple[PodAffinityTerm, int]]:
    """The terms by which a pod makes nodes near it better or worse for others, with weights. The
    terms of a required affinity count 1 (hardPodAffinityWeight of the default scheduler)."""
    if affinity.pod_affinity is not None:
        yield from ((term, 1) for term in affinity.pod_affinity.required)
    yield from preferred_terms(affinity)


def preferred_terms(affinity: Affinity) -> Iterator[tuple[PodAffinityTerm, int]]:
    """The terms of preferred affinity and, with negative weights, of preferred anti-affinity."""
    for terms, sign in ((affinity.pod_affinity, 1), (affinity.pod_anti_affinity, -1)):
        for wish in terms.preferred if terms else ():
            yield wish.pod_affinity_term, sign * wish.weight


def host_ports(pod: SchedulingPod) -> tuple[Port, ...]:
    """The host ports of all containers and sidecars."""
    inits = pod.spec.init_containers
    sidecars = (container for container in inits if container.restart_policy == "Always")
    return tuple(
        (port.protocol, port.host_ip or ANY_ADDRESS, port.host_port)
        for container in (*pod.spec.containers, *sidecars)
        for port in container.ports
        if port.host_port
    )


ANY_ADDRESS = "0.0.0.0"
"""A port at this address conflicts with the same port at every address."""


def _node(node: SchedulingNode) -> WorldNode:
    """A node whose allocatable cannot be read has no room."""
    ready = find_condition(node.status.conditions, "Ready")
    try:
        allocatable = amounts(node.status.allocatable)
    except ValueError:
        allocatable = {}
    return WorldNode(
        node=node,
        name=node.metadata.name,
        labels=node.metadata.labels or {},
        allocatable=allocatable,
        cpu=allocatable.get(CPU, 0),
        memory=allocatable.get(MEMORY, 0),
        closed="" if ready is None or ready.status == "True" else "not ready",
        left=dict(allocatable),
        warnings=tuple(taint for taint in node.spec.taints if taint.effect == PREFER_NO_SCHEDULE),
    )
