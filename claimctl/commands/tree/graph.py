"""Who makes which pods, and which claims, devices and nodes they use, as a graph.

``build`` adds the vertices and edges of each pod (``_pod``) and of each claim (``_claim``). Another
kind of vertex or edge is added there; ``drawing`` has the shapes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Annotated

from claimctl.cli.documents import Document, Part, ReasonText, says
from claimctl.commands.claims.claim_view import ClaimView
from claimctl.commands.claims.matters import reasons_of
from claimctl.reservation.facts.pods import claim_names
from claimctl.reservation.kinds.shipped import KINDS
from claimctl.text import listed
from claimctl.wire.meta import OwnerReference
from claimctl.wire.nodes import Node
from claimctl.wire.placement import CORDON, lasting_taints
from claimctl.wire.pods import Pod
from claimctl.wire.resources import REPLICASETS

POD, CLAIM, DEVICE, NODE = "Pod", "ResourceClaim", "Device", "Node"
FEW = 3
"""More pods than these that hang together alike are drawn as one vertex."""


@dataclass(frozen=True, slots=True)
class Vertex:
    """One object, or several pods that hang together alike."""

    kind: str
    name: str
    note: str = ""
    """Its state, in a few words."""

    @property
    def key(self) -> str:
        """Unique within a graph, and what commands accept: ``kind/name``."""
        return f"{self.kind}/{self.name}"


class Edge(Part, frozen=True, kw_only=False):
    """``source`` makes, uses, has or is on ``target``; both are keys of vertices."""

    source: str
    target: str
    label: str


class ClaimProblem(ReasonText, frozen=True):
    """What is wrong with a claim."""

    claim: str


@dataclass(slots=True)
class Graph:
    vertices: dict[str, Vertex] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)
    problems: list[ClaimProblem] = field(default_factory=list)
    _known: set[Edge] = field(default_factory=set)
    _below: dict[str, list[Edge]] = field(default_factory=dict)
    _above: dict[str, list[Edge]] = field(default_factory=dict)

    def add(self, vertex: Vertex) -> str:
        """Add a vertex; returns its key. A note replaces an empty one."""
        known = self.vertices.get(vertex.key)
        if known is None or (vertex.note and not known.note):
            self.vertices[vertex.key] = vertex
        return vertex.key

    def connect(self, source: str, target: str, label: str) -> None:
        edge = Edge(source, target, label)
        if edge not in self._known:
            self._known.add(edge)
            self.edges.append(edge)
            self._below.setdefault(source, []).append(edge)
            self._above.setdefault(target, []).append(edge)

    def below(self, key: str) -> Sequence[Edge]:
        return self._below.get(key, ())

    def above(self, key: str) -> Sequence[Edge]:
        return self._above.get(key, ())

    def roots(self) -> list[Vertex]:
        """The vertices that nothing points to."""
        return [vertex for key, vertex in self.vertices.items() if not self.above(key)]


def build(
    views: Sequence[ClaimView],
    pods: Iterable[Pod],
    chains: Mapping[str, Sequence[OwnerReference]] = MappingProxyType({}),
    nodes: Mapping[str, Node] | None = None,
    *,
    everywhere: bool = False,
) -> Graph:
    """The graph of one namespace, or of all.

    Args:
        chains: the controllers of pods by their UIDs, the nearest first.
        nodes: None if the user may not list them.
        everywhere: whether the objects are of all namespaces: then names are namespace/name.
    """
    graph = Graph()
    for pod in sorted(pods, key=lambda pod: pod.metadata.key):
        names = claim_names(pod)
        place = f"{pod.metadata.namespace}/" if everywhere else ""
        if names:
            _pod(graph, pod, chains.get(pod.metadata.uid, ()), sorted(names), place)
    for view in views:
        place = f"{view.namespace}/" if everywhere else ""
        _claim(graph, view, nodes, place)
        graph.problems += (
            ClaimProblem(claim=f"{place}{view.name}", reason=it.reason, message=it.message)
            for it in reasons_of(view.matters)
        )
    return graph


def _pod(
    graph: Graph, pod: Pod, chain: Sequence[OwnerReference], claims: Sequence[str], place: str
) -> None:
    phase = "Deleting" if pod.metadata.deleting else pod.status.phase or "Pending"
    key = below = graph.add(Vertex(POD, f"{place}{pod.metadata.name}", phase))
    for owner in chain:
        # ReplicaSets stand for the Deployments that own them
        if owner.kind == REPLICASETS.kind and owner is not chain[-1]:
            continue
        above = graph.add(Vertex(owner.kind, f"{place}{owner.name}"))
        graph.connect(above, below, "makes")
        below = above
    for name in claims:
        graph.connect(key, graph.add(Vertex(CLAIM, f"{place}{name}")), "uses")


def _claim(graph: Graph, view: ClaimView, nodes: Mapping[str, Node] | None, place: str) -> None:
    names = [f"{workload.resource}/{workload.name}" for workload in view.workloads]
    held = f", held by {' and '.join(names)}" if names else ""
    wrong = ", ".join(dict.fromkeys(matter.reason for matter in view.matters))
    note = f"{view.state}{held}{f': {wrong}' if wrong else ''}"
    key = graph.add(Vertex(CLAIM, f"{place}{view.name}", note))
    for workload in view.workloads:
        kind = KINDS.get((workload.api_group, workload.resource))
        if kind:
            holder = graph.add(Vertex(kind, f"{place}{workload.name}"))
            graph.connect(holder, key, "holds")
    for reservation in view.reservations:
        ref = reservation.spec.workload_ref
        holder = graph.add(Vertex(ref.kind, f"{place}{ref.name}"))
        if not any(edge.target == key for edge in graph.below(holder)):
            graph.connect(holder, key, "reserves")
    for device in view.claim.devices:
        target = graph.add(Vertex(DEVICE, f"{device.pool}/{device.device}"))
        graph.connect(key, target, "has")
        # pools of devices of one node have the node's name; others may span all nodes of the claim
        for node in (device.pool,) if device.pool in view.nodes else view.nodes:
            graph.connect(target, graph.add(Vertex(NODE, node, _state(node, nodes))), "is on")


def _state(name: str, nodes: Mapping[str, Node] | None) -> str:
    """What keeps pods from a node; '' for nothing, or if the nodes are not known."""
    if nodes is None:
        return ""
    if name not in nodes:
        return "does not exist"
    if nodes[name].status.is_unready:
        return "not ready"
    return "cordoned" if CORDON in lasting_taints(nodes[name]) else ""


def around(graph: Graph, keys: Iterable[str]) -> Graph:
    """The part of the graph that is connected with these vertices, above and below them."""
    wanted = set(keys)
    kept = _reach(graph, wanted, upward=True) | _reach(graph, wanted, upward=False)
    part = Graph()
    for key, vertex in graph.vertices.items():
        if key in kept:
            part.add(vertex)
    for edge in graph.edges:
        if edge.source in kept and edge.target in kept:
            part.connect(edge.source, edge.target, edge.label)
    part.problems = [it for it in graph.problems if f"{CLAIM}/{it.claim}" in kept]
    return part


def _reach(graph: Graph, start: Iterable[str], *, upward: bool) -> set[str]:
    keys, left = set[str](), list(start)
    while left:
        key = left.pop()
        if key in keys:
            continue
        keys.add(key)
        edges = graph.above(key) if upward else graph.below(key)
        left += [edge.source if upward else edge.target for edge in edges]
    return keys


def merged(graph: Graph) -> Graph:
    """The graph with one vertex for more than ``FEW`` pods that hang together alike."""
    alike: dict[tuple[frozenset[str], frozenset[str]], list[Vertex]] = {}
    for key, vertex in graph.vertices.items():
        if vertex.kind == POD:
            above = frozenset(edge.source for edge in graph.above(key))
            around_it = (above, frozenset(edge.target for edge in graph.below(key)))
            alike.setdefault(around_it, []).append(vertex)
    names = {pod.key: _together(pods) for pods in alike.values() if len(pods) > FEW for pod in pods}
    drawn = Graph(problems=graph.problems)
    keys = {key: drawn.add(names.get(key, vertex)) for key, vertex in graph.vertices.items()}
    for edge in graph.edges:
        drawn.connect(keys[edge.source], keys[edge.target], edge.label)
    return drawn


def _together(pods: Sequence[Vertex]) -> Vertex:
    counts = Counter(pod.note for pod in pods)
    states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    named = listed(pod.name for pod in pods)
    return replace(pods[0], kind=f"{len(pods)} pods", name=named, note=states)


class TreeObject(Part, frozen=True):
    id: Annotated[str, says("kind/name")]
    kind: str
    name: str
    state: str


class ClaimTree(Document, frozen=True):
    """``claimctl tree``"""

    namespace: Annotated[str, says("'' for all: then each name is namespace/name")]
    objects: tuple[TreeObject, ...]
    edges: tuple[Edge, ...]
    problems: tuple[ClaimProblem, ...]


def document(graph: Graph, namespace: str) -> ClaimTree:
    """The graph for programs."""
    objects = tuple(
        TreeObject(id=key, kind=vertex.kind, name=vertex.name, state=vertex.note)
        for key, vertex in graph.vertices.items()
    )
    return ClaimTree(
        namespace=namespace,
        objects=objects,
        edges=tuple(graph.edges),
        problems=tuple(graph.problems),
    )
