"""Cells of a table: each is measured on nodes of its own, in a namespace of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kube_in_process.components.kubelet.kubelet import RUN_SECONDS
from kube_in_process.real.servers.nodes import NODE

from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient

CELL_LABEL = "claimctl.io/cell"
"""On the nodes of a cell: its namespace."""
LONG_RUN = {RUN_SECONDS: "1000000"}
"""The annotation of pods that run until they are deleted."""


async def furnish(client: DocumentClient, namespace: str, nodes: Sequence[str]) -> None:
    """Create the namespace of a cell, and give it its nodes."""
    for node in nodes:
        labels = {CELL_LABEL: namespace}
        await client.patch(NODE, "", node, {"metadata": {"labels": labels}})
    meta = {"name": namespace}
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})


def document(api_version: str, kind: str, name: str, namespace: str, spec: Any) -> Object:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}
