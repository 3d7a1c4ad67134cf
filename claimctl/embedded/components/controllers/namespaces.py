"""The namespace controller: what every namespace holds, and how one comes to its end.

Pods go first: other content is not touched while a pod is left.
"""

from __future__ import annotations

from claimctl.embedded.components.objects import deleting
from claimctl.embedded.errors import StatusError
from claimctl.embedded.kinds.kind import Kind
from claimctl.embedded.runtime.component import Component
from claimctl.embedded.storage.requests import DeleteOptions
from claimctl.embedded.storage.store import Revision
from claimctl.wire.base import Object

CONDITIONS = (
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    ("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
    (
        "NamespaceFinalizersRemaining",
        "ContentHasNoFinalizers",
        "All content-preserving finalizers finished",
    ),
)


class NamespaceController(Component[str]):
    name = "namespace-controller"

    def watch(self) -> None:
        self.views["namespaces"].subscribe(lambda change: self.queue.add(change.key[1]))
        self.context.feed.listen(self._take)

    def _take(self, revision: Revision, _: Object) -> None:
        """The end of something in a namespace that is going lets it go on."""
        if revision.type == "DELETED" and revision.namespace:
            namespace = self.views["namespaces"].get("", revision.namespace)
            if namespace is not None and deleting(namespace):
                self.queue.add(revision.namespace)

    def sync(self, key: str) -> None:
        namespace = self.views["namespaces"].get("", key)
        if namespace is None:
            return
        if not deleting(namespace):
            self._furnish(key)
            return
        self._empty(key)
        self._say(namespace)
        if not self._left(key):
            self._finalize(key)

    def _furnish(self, namespace: str) -> None:
        self._ensure("configmaps", "kube-root-ca.crt", namespace, {"data": {"ca.crt": "embedded"}})
        self._ensure("serviceaccounts", "default", namespace, {})

    def _ensure(self, plural: str, name: str, namespace: str, body: Object) -> None:
        if self.api.find(plural, namespace, name) is None:
            self.api.create(plural, {**body, "metadata": {"name": name, "namespace": namespace}})

    def _kinds(self) -> list[Kind]:
        kinds = [each for each in self.api.api.kinds if each.namespaced]
        return [each for each in kinds if "delete" in each.verbs and each.stored_in is None]

    def _empty(self, namespace: str) -> None:
        self._delete_all("pods", namespace)
        if self.api.list("pods", namespace):
            return
        for kind in self._kinds():
            self._delete_all(kind.resource, namespace)

    def _delete_all(self, plural: str, namespace: str) -> None:
        for obj in self.api.list(plural, namespace):
            if deleting(obj):
                continue
            try:
                options = DeleteOptions(propagation="Background")
                self.api.delete(plural, namespace, obj["metadata"]["name"], options)
            except StatusError as error:
                if error.reason != "NotFound":
                    raise

    def _left(self, namespace: str) -> bool:
        return any(self.api.list(kind.resource, namespace) for kind in self._kinds())

    def _say(self, namespace: Object) -> None:
        """Conditions, once."""
        status = namespace.get("status") or {}
        if status.get("conditions"):
            return
        now = self.context.now()
        conditions = [
            {
                "type": kind,
                "status": "False",
                "lastTransitionTime": now,
                "reason": reason,
                "message": message,
            }
            for kind, reason, message in CONDITIONS
        ]
        wanted = {**namespace, "status": {**status, "conditions": conditions}}
        self.api.update("namespaces", wanted, "status")

    def _finalize(self, name: str) -> None:
        namespace = self.api.find("namespaces", "", name)
        if namespace is not None:
            kept = [each for each in namespace["spec"]["finalizers"] if each != "kubernetes"]
            self.api.update("namespaces", {**namespace, "spec": {"finalizers": kept}}, "finalize")
