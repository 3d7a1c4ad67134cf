"""Whether objects may be created in a namespace."""

from __future__ import annotations

from kube_in_process.errors import StatusError, Subject, forbidden, not_found
from kube_in_process.kinds.kind import Kind
from kube_in_process.storage.store import Address, Store


def admit_namespace(store: Store, kind: Kind, namespace: str, name: str) -> None:
    """Refuse a create in a namespace that does not exist (404) or is terminating (403)."""
    if not kind.namespaced:
        return
    stored = store.get(Address("", "namespaces", "", namespace))
    if stored is None:
        raise not_found(Subject("", "namespaces", namespace))
    if stored["metadata"].get("deletionTimestamp"):
        raise _terminating(kind, namespace, name)


def _terminating(kind: Kind, namespace: str, name: str) -> StatusError:
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    error = forbidden(Subject(kind.group, kind.plural, name), why)
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    error.details = {**(error.details or {}), "causes": [cause]}
    return error
