"""A graph as a tree of text lines, or as a diagram in Mermaid's or Graphviz's language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from claimctl.commands.tree.graph import CLAIM, DEVICE, NODE, POD, Graph, Vertex


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


_MERMAID = {CLAIM: ("([", "])"), DEVICE: ("[[", "]]"), NODE: ("[/", "/]"), POD: ("(", ")")}
_DOT = {CLAIM: "ellipse", DEVICE: "component", NODE: "box3d", POD: "box"}


def mermaid(graph: Graph) -> str:
    """A Mermaid flow chart, as GitHub and GitLab draw it in Markdown."""
    ids = {key: f"v{number}" for number, key in enumerate(graph.vertices)}
    lines = ["flowchart LR"]
    for key, vertex in graph.vertices.items():
        left, right = _MERMAID.get(_kind(vertex), ("[", "]"))
        text = "<br>".join(map(_escape, _texts(vertex)))
        lines.append(f'  {ids[key]}{left}"{text}"{right}')
    for edge in graph.edges:
        lines.append(f"  {ids[edge.source]} -->|{edge.label}| {ids[edge.target]}")
    return "\n".join(lines)


def dot(graph: Graph) -> str:
    """A Graphviz digraph."""
    lines = ["digraph claims {", "  rankdir=LR;"]
    for key, vertex in graph.vertices.items():
        shape = _DOT.get(_kind(vertex), "folder")
        text = "\\n".join(map(_quote, _texts(vertex)))
        lines.append(f'  "{_quote(key)}" [shape={shape}, label="{text}"];')
    for edge in graph.edges:
        source, target = _quote(edge.source), _quote(edge.target)
        lines.append(f'  "{source}" -> "{target}" [label="{edge.label}"];')
    return "\n".join([*lines, "}"])


def _kind(vertex: Vertex) -> str:
    return POD if vertex.kind.endswith(" pods") else vertex.kind


def _texts(vertex: Vertex) -> list[str]:
    return [vertex.kind, vertex.name, *([vertex.note] if vertex.note else [])]


def _escape(text: str) -> str:
    """Text inside double quotes of Mermaid, which writes characters as ``#quot;``."""
    return text.replace("#", "#35;").replace('"', "#quot;").replace("<", "#lt;")


def _quote(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
