"""The namespace controller: the objects of every namespace, and the deletion of namespaces.

Pods are deleted first. While a pod is left, other objects stay.
"""

from __future__ import annotations

from contextlib import suppress

from kube_in_process.components.objects import deleting, made_condition
from kube_in_process.errors import NotFound
from kube_in_process.kinds.kind import Kind
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Component
from kube_in_process.storage.requests import DeleteOptions
from kube_in_process.storage.store import Revision
from kube_in_process.text.data import table

CONDITIONS = table(__package__, "namespace_conditions.json", list[dict[str, str]])
"""The conditions of a namespace that is being deleted; all of them are False."""


class NamespaceController(Component[str]):
    name = "namespace-controller"

    def watch(self) -> None:
        self.views["namespaces"].subscribe(lambda change: self.queue.add(change.key[1]))
        self.context.feed.listen(self._take)

    def _take(self, revision: Revision, _: Object) -> None:
        """Look again at a namespace that is being deleted when an object in it is gone."""
        if revision.type == "DELETED" and revision.namespace:
            namespace = self.views["namespaces"].get("", revision.namespace)
            if namespace is not None and deleting(namespace):
                self.queue.add(revision.namespace)

    def sync(self, key: str) -> None:
        namespace = self.views["namespaces"].get("", key)
        if namespace is None:
            return
        if not deleting(namespace):
            self._create_objects(key)
            return
        self._empty(key)
        self._write_conditions(namespace)
        if not self._has_objects(key):
            self._finalize(key)

    def _create_objects(self, namespace: str) -> None:
        self._ensure("configmaps", "kube-root-ca.crt", namespace, {"data": {"ca.crt": "embedded"}})
        self._ensure("serviceaccounts", "default", namespace, {})

    def _ensure(self, plural: str, name: str, namespace: str, body: Object) -> None:
        if self.api.find(plural, namespace, name) is None:
            self.api.create(plural, {**body, "metadata": {"name": name, "namespace": namespace}})

    def _kinds(self) -> list[Kind]:
        kinds = [kind for kind in self.api.api.kinds if kind.namespaced]
        return [kind for kind in kinds if "delete" in kind.verbs and kind.stored_in is None]

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
            options = DeleteOptions(propagation="Background")
            with suppress(NotFound):
                self.api.delete(plural, namespace, obj["metadata"]["name"], options)

    def _has_objects(self, namespace: str) -> bool:
        return any(self.api.list(kind.resource, namespace) for kind in self._kinds())

    def _write_conditions(self, namespace: Object) -> None:
        """Write the conditions, once."""
        status = namespace.get("status") or {}
        if status.get("conditions"):
            return
        now = self.context.now()
        conditions = [
            made_condition(status="False", now=now, **condition) for condition in CONDITIONS
        ]
        wanted = {**namespace, "status": {**status, "conditions": conditions}}
        self.api.update("namespaces", wanted, "status")

    def _finalize(self, name: str) -> None:
        namespace = self.api.find("namespaces", "", name)
        if namespace is not None:
            kept = [
                finalizer
                for finalizer in namespace["spec"]["finalizers"]
                if finalizer != "kubernetes"
            ]
            self.api.update("namespaces", {**namespace, "spec": {"finalizers": kept}}, "finalize")
