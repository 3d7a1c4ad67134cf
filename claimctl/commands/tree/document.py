"""A graph as a JSON document for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from claimctl.commands.tree.graph import Graph


def document(graph: Graph, namespace: str) -> dict[str, Any]:
    """The stable form of a graph: objects by ``kind/name``, and what connects them."""
    return {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "ClaimTree",
        "namespace": namespace,
        "objects": [
            {"id": key, "kind": each.kind, "name": each.name, "state": each.note}
            for key, each in graph.vertices.items()
        ],
        "edges": [asdict(each) for each in graph.edges],
    }
