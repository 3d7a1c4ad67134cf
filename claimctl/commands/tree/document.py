"""A graph as a JSON document for programs."""

from __future__ import annotations

from typing import Annotated

from claimctl.cli.documents import Document, Part, says
from claimctl.commands.tree.graph import Edge, Graph


class TreeObject(Part, frozen=True):
    id: Annotated[str, says("kind/name")]
    kind: str
    name: str
    state: str


class ClaimTree(Document, frozen=True):
    """``claimctl tree``"""

    namespace: str
    objects: tuple[TreeObject, ...]
    edges: tuple[Edge, ...]


def document(graph: Graph, namespace: str) -> ClaimTree:
    objects = tuple(
        TreeObject(id=key, kind=vertex.kind, name=vertex.name, state=vertex.note)
        for key, vertex in graph.vertices.items()
    )
    return ClaimTree(namespace=namespace, objects=objects, edges=tuple(graph.edges))
