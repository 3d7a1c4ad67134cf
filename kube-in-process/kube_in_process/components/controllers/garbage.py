"""The garbage collector: deletes dependents after, or before, their owners, or orphans them.

It builds the graph of all objects of all kinds from the stream of revisions.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field

from kube_in_process.components.objects import (
    deleting,
    finalizers,
    owners,
    uid,
    without,
    without_owner,
)
from kube_in_process.errors import NotFound
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component, Context
from kube_in_process.storage.requests import DeleteOptions
from kube_in_process.storage.store import Revision

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"


@dataclass(slots=True)
class GraphNode:
    """One object in the graph."""

    plural: str
    namespace: str
    name: str
    obj: Object
    owners: dict[str, Object] = field(default_factory=dict)
    """Owner references by UID."""


class GarbageCollector(Component[str]):
    name = "garbage-collector"
    user = "system:serviceaccount:kube-system:generic-garbage-collector"

    def __init__(self, context: Context) -> None:
        self._nodes: dict[str, GraphNode] = {}
        self._dependents: dict[str, dict[str, None]] = {}
        super().__init__(context)

    def watch(self) -> None:
        self.context.feed.listen(self._take)

    # The graph

    def _take(self, revision: Revision, obj: Object) -> None:
        if revision.plural == "events":
            return
        if revision.type == "DELETED":
            self._removed(uid(obj))
            return
        node = self._nodes.get(uid(obj))
        if node is None:
            plural = f"{revision.plural}.{revision.group}" if revision.group else revision.plural
            node = GraphNode(plural, revision.namespace, revision.name, obj)
            self._nodes[uid(obj)] = node
        began = _waits(obj) and (node.obj is obj or not _waits(node.obj))
        node.obj = obj
        if owners(obj) or node.owners:
            self._connect(uid(obj), node)
        if began:
            self._add(uid(obj))

    def _connect(self, own: str, node: GraphNode) -> None:
        wanted = {owner["uid"]: owner for owner in owners(node.obj)}
        if wanted == node.owners and not deleting(node.obj):
            return
        for owner in node.owners:
            if owner not in wanted:
                self._dependents.get(owner, {}).pop(own, None)
                self._add_owner(owner)
        for owner in wanted:
            self._dependents.setdefault(owner, {})[own] = None
            if owner not in self._nodes:
                self._add(own)
        if deleting(node.obj):
            for owner in wanted:
                self._add_owner(owner)
        node.owners = wanted

    def _removed(self, own: str) -> None:
        node = self._nodes.pop(own, None)
        for owner in node.owners if node else ():
            self._dependents.get(owner, {}).pop(own, None)
            self._add_owner(owner)
        for dependent in self._dependents.get(own, ()):
            self._add(dependent)

    def _add_owner(self, own: str) -> None:
        node = self._nodes.get(own)
        if node is not None and deleting(node.obj):
            self._add(own)

    def _add(self, own: str) -> None:
        self.queue.add_after(own, self.context.timings.garbage_collection)

    # One object

    def sync(self, key: str) -> None:
        node = self._nodes.get(key)
        if node is None:
            return
        if deleting(node.obj):
            self._finish(key, node)
        if node.owners and not deleting(node.obj):
            self._collect(key, node)

    def _finish(self, own: str, node: GraphNode) -> None:
        """Handle an object that waits until its dependents are deleted or orphaned."""
        marks = finalizers(node.obj)
        dependents = [self._nodes[dependent] for dependent in self._dependents.get(own, ())]
        if ORPHAN in marks:
            for dependent in dependents:
                self._disown(dependent, own)
            self._unmark(node, ORPHAN)
        elif FOREGROUND in marks:
            blocking = [
                dependent
                for dependent in dependents
                if dependent.owners[own].get("blockOwnerDeletion")
            ]
            for dependent in blocking:
                if not deleting(dependent.obj):
                    self._delete(
                        dependent, foreground=bool(self._dependents.get(uid(dependent.obj)))
                    )
            if not blocking:
                self._unmark(node, FOREGROUND)

    def _collect(self, own: str, node: GraphNode) -> None:
        """Delete a dependent whose owners are all gone; else remove the owners that are gone."""
        gone = [owner for owner in node.owners if not self._exists(owner, node)]
        if not gone:
            return
        if len(gone) == len(node.owners):
            self._delete(node, foreground=False)
            return
        for owner in gone:
            self._disown(node, owner)

    def _exists(self, owner: str, node: GraphNode) -> bool:
        if owner in self._nodes:
            return True
        reference = node.owners[owner]
        group = reference["apiVersion"].rpartition("/")[0]
        kind = self.api.api.kinds.by_kind(group, reference["kind"])
        if kind is None:
            return True
        space = node.namespace if kind.namespaced else ""
        stored = self.api.find(kind.resource, space, reference["name"])
        return stored is not None and uid(stored) == owner

    def _delete(self, node: GraphNode, *, foreground: bool) -> None:
        propagation = "Foreground" if foreground else "Background"
        options = DeleteOptions(uid(node.obj), propagation=propagation)
        with suppress(NotFound):
            self.api.delete(node.plural, node.namespace, node.name, options)

    def _disown(self, node: GraphNode, owner: str) -> None:
        with suppress(NotFound):
            self.api.patch(node.plural, node.namespace, node.name, without_owner(node.obj, owner))

    def _unmark(self, node: GraphNode, finalizer: str) -> None:
        kept = without(finalizers(node.obj), finalizer)
        version = node.obj["metadata"]["resourceVersion"]
        patch = {"metadata": {"finalizers": kept or None, "resourceVersion": version}}
        with suppress(NotFound):
            self.api.patch(node.plural, node.namespace, node.name, patch)


def _waits(obj: Object) -> bool:
    """Whether the object waits until its dependents are deleted or orphaned."""
    return deleting(obj) and bool({FOREGROUND, ORPHAN} & set(finalizers(obj)))
