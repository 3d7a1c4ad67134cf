"""What admission adds to new claims and volumes: finalizers, and the default StorageClass."""

from __future__ import annotations

from collections.abc import Iterable

from kube_in_process.objects import Object

CLAIM_FINALIZER = "kubernetes.io/pvc-protection"
VOLUME_FINALIZER = "kubernetes.io/pv-protection"
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
"""The annotation of the default StorageClass."""


def protect(obj: Object, finalizer: str) -> None:
    """Add a finalizer, so that the object stays while it is used."""
    known = obj["metadata"].get("finalizers") or []
    if finalizer not in known:
        obj["metadata"]["finalizers"] = [*known, finalizer]


def default_class(classes: Iterable[Object]) -> str:
    """The newest StorageClass that is marked as the default; '' for none."""
    marked = [
        storage_class
        for storage_class in classes
        if (storage_class["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"
    ]
    marked.sort(key=lambda storage_class: str(storage_class["metadata"]["name"]))
    marked.sort(
        key=lambda storage_class: str(storage_class["metadata"]["creationTimestamp"]), reverse=True
    )
    return str(marked[0]["metadata"]["name"]) if marked else ""
