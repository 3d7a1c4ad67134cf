"""Nodes as snapshots see them: a view of the cache, and boot IDs that outlive Node objects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cachetools import LRUCache

from claimctl.kube.informer import Informer
from claimctl.wire.nodes import Node

REMEMBERED_NODES = 10_000


class NodeView(Mapping[str, Node]):
    """The node cache by name, without copying it for every decision."""

    def __init__(self, nodes: Informer[Node]) -> None:
        self._nodes = nodes

    def __getitem__(self, name: str) -> Node:
        node = self._nodes.get(name)
        if node is None:
            raise KeyError(name)
        return node

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(node.metadata.name for node in self._nodes.items()))

    def __len__(self) -> int:
        return sum(1 for _ in self._nodes.items())


class BootIds:
    """The boot ID each node showed last.

    A lost node's object may be gone before the pods on it are, and that it is gone proves nothing.
    """

    def __init__(self) -> None:
        self._ids: LRUCache[str, str] = LRUCache(REMEMBERED_NODES)

    def observe(self, node: Node) -> bool:
        """Note what a node shows; True when it has booted since it was last seen."""
        name, boot_id = node.metadata.name, node.status.node_info.boot_id
        before = self._ids.get(name, "")
        if boot_id:
            self._ids[name] = boot_id
        return bool(before) and bool(boot_id) and before != boot_id

    def of(self, node_name: str) -> str:
        """The last boot ID seen on the node, or ''."""
        return self._ids.get(node_name, "")
