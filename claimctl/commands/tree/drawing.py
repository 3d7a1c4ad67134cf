"""A graph as a tree of text lines, or as a diagram in Mermaid's or Graphviz's language."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from claimctl.commands.tree.graph import CLAIM, DEVICE, NODE, POD, ClaimProblem, Graph, Vertex
from claimctl.text import shortened, visible


class Branches(NamedTuple):
    """The four pieces that a tree is drawn with."""

    between: str
    last: str
    beside: str
    after: str


LINES = Branches("├─ ", "└─ ", "│  ", "   ")
ASCII = Branches("|- ", "`- ", "|  ", "   ")
_LONGEST = 600
"""A text of a vertex has at most so many characters; a name in Kubernetes has 253."""
_PLAIN = " -./,()"


def lines(graph: Graph, branches: Branches = LINES) -> list[str]:
    """The graph from its roots down. What several roots share is repeated below each."""
    return [
        line
        for root in graph.roots()
        for line in (_label(root, ""), *_below(graph, root, branches, ""))
    ]


def problem_lines(problems: Sequence[ClaimProblem], namespace: str) -> Iterator[str]:
    """What is wrong with the claims of the tree, and where to see what to do.

    Args:
        namespace: that of the claims; '' if their names have it.
    """
    if problems:
        yield "What is wrong:"
    for problem in problems:
        yield f"  claim {problem.claim}: {problem.message} ({problem.reason})"
    for claim in dict.fromkeys(problem.claim for problem in problems):
        place, _, name = claim.rpartition("/")
        yield f"  What to do: claimctl explain {name} -n {place or namespace}"


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
    what = vertex.key
    if _is_several(vertex):
        what = f"{vertex.kind}: {vertex.name}"
    elif not vertex.kind.isidentifier():  # a pod may name an owner of any kind
        what = f"{vertex.kind!r}/{vertex.name}"
    return shortened(f"{f'{how} ' if how else ''}{what}{note}", _LONGEST)


_MERMAID = {CLAIM: ("([", "])"), DEVICE: ("[[", "]]"), NODE: ("[/", "/]"), POD: ("(", ")")}
_DOT = {CLAIM: "ellipse", DEVICE: "component", NODE: "box3d", POD: "box"}


def mermaid(graph: Graph) -> str:
    """A Mermaid flow chart, as GitHub and GitLab draw it in Markdown."""
    ids = _ids(graph)
    lines = ["flowchart LR"]
    for key, vertex in graph.vertices.items():
        left, right = _MERMAID.get(_kind(vertex), ("[", "]"))
        text = "<br>".join(map(_for_mermaid, _texts(vertex)))
        lines.append(f'  {ids[key]}{left}"{text}"{right}')
    for edge in graph.edges:
        lines.append(f"  {ids[edge.source]} -->|{edge.label}| {ids[edge.target]}")
    return "\n".join(lines)


def dot(graph: Graph) -> str:
    """A Graphviz digraph."""
    ids = _ids(graph)
    lines = ["digraph claims {", "  rankdir=LR;"]
    for key, vertex in graph.vertices.items():
        shape = _DOT.get(_kind(vertex), "folder")
        text = "\\n".join(map(_for_dot, _texts(vertex)))
        lines.append(f'  {ids[key]} [shape={shape}, label="{text}"];')
    for edge in graph.edges:
        lines.append(f'  {ids[edge.source]} -> {ids[edge.target]} [label="{edge.label}"];')
    return "\n".join([*lines, "}"])


def _ids(graph: Graph) -> dict[str, str]:
    """Names of the vertices within a diagram, by their keys; nobody else chooses a part of them."""
    return {key: f"v{number}" for number, key in enumerate(graph.vertices)}


def _kind(vertex: Vertex) -> str:
    return POD if _is_several(vertex) else vertex.kind


def _is_several(vertex: Vertex) -> bool:
    """Whether the vertex stands for several pods."""
    return vertex.kind.endswith(" pods")


def _texts(vertex: Vertex) -> list[str]:
    texts = (vertex.kind, vertex.name, *([vertex.note] if vertex.note else []))
    return [shortened(text, _LONGEST) for text in texts]


def _for_mermaid(text: str) -> str:
    """Text inside double quotes of Mermaid, as HTML. What is no letter, digit, or plain sign of a
    name is written by its number (``#34;``): Mermaid looks for comments, directives, styles,
    entities and Markdown inside quotes, too."""
    return "".join(
        sign if sign.isalnum() or sign in _PLAIN else f"#{ord(sign)};" for sign in visible(text)
    )


def _for_dot(text: str) -> str:
    """Text inside double quotes of Graphviz, which reads entities and ``\\N`` there."""
    quoted = visible(text).replace("\\", "\\\\").replace('"', '\\"')
    return quoted.replace("&", "&amp;")
