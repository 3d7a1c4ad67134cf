"""A graph as a tree of text lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from claimctl.commands.tree.graph import Graph, Vertex


class Branches(NamedTuple):
    """The four pieces that a tree is drawn with."""

    between: str
    last: str
    beside: str
    after: str


LINES = Branches("├─ ", "└─ ", "│  ", "   ")
ASCII = Branches("|- ", "`- ", "|  ", "   ")


def lines(graph: Graph, branches: Branches = LINES) -> list[str]:
    """The graph from its roots down. What several roots share is repeated below each."""
    return [
        line
        for root in graph.roots()
        for line in (_label(root, ""), *_below(graph, root, branches, ""))
    ]


def _below(graph: Graph, vertex: Vertex, branches: Branches, indent: str) -> Iterator[str]:
    # a claim that a workload's pods use is drawn below the pods only
    below = graph.below(vertex.key)
    used = {lower.target for edge in below for lower in graph.below(edge.target)}
    edges = [edge for edge in below if edge.target not in used]
    for number, edge in enumerate(edges, start=1):
        last = number == len(edges)
        target = graph.vertices[edge.target]
        yield f"{indent}{branches.last if last else branches.between}{_label(target, edge.label)}"
        inside = indent + (branches.after if last else branches.beside)
        yield from _below(graph, target, branches, inside)


def _label(vertex: Vertex, how: str) -> str:
    note = f" ({vertex.note})" if vertex.note else ""
    what = f"{vertex.kind}: {vertex.name}" if " " in vertex.kind else vertex.key
    return f"{f'{how} ' if how else ''}{what}{note}"
