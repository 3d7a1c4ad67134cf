"""Namespaces: their finalizers, their phase, and the label with their name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kube_in_process import errors
from kube_in_process.errors import FieldError, Subject
from kube_in_process.kinds.defaults.workloads import default_conditions
from kube_in_process.kinds.emulation import pod_security_warnings
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import names

_IMMORTAL = ("default", "kube-system", "kube-public")
_NAME_LABEL = "kubernetes.io/metadata.name"


def _finalizer(name: str, path: str) -> list[FieldError]:
    field_errors = errors.invalid_name(path, name, names.qualified_name)
    if "/" not in name and name not in ("kubernetes", "orphan", "foregroundDeletion"):
        text = "name is neither a standard finalizer name nor is it fully qualified"
        field_errors.append(errors.invalid_value(path, name, text))
    return field_errors


class NamespaceStrategy(Strategy):
    """A namespace is removed when spec.finalizers is empty; only PUT /finalize changes that."""

    name_check = staticmethod(names.namespace_name)
    status_keeps = ()
    selectable_fields: ClassVar[Mapping[str, str]] = {"status.phase": "", "name": ""}

    def default(self, obj: Object, features: Features) -> None:
        metadata = obj["metadata"]
        if metadata.get("name"):
            metadata.setdefault("labels", {})[_NAME_LABEL] = metadata["name"]
        default_conditions(obj.get("status") or {}, ("lastTransitionTime",))

    def admit(self, obj: Object, context: WriteContext) -> None:
        context.warnings.extend(pod_security_warnings(obj["metadata"].get("labels") or {}))

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        obj["status"] = {"phase": "Active"}
        spec = obj.setdefault("spec", {})
        given = spec.get("finalizers") or []
        spec["finalizers"] = given if "kubernetes" in given else [*given, "kubernetes"]
        self.default(obj, context.features)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        field_errors: list[FieldError] = []
        for name in obj["spec"].get("finalizers") or []:
            field_errors += _finalizer(name, "spec.finalizers")
        return field_errors

    def prepare_update(self, new: Object, old: Object, context: WriteContext) -> None:
        labels = new["metadata"].get("labels") or {}
        if labels != old["metadata"].get("labels"):
            context.warnings.extend(pod_security_warnings(labels))
        if context.subresource == "status":
            super().prepare_update(new, old, context)
            if not new["status"].get("phase"):
                new["status"]["phase"] = "Active"
            return
        new["status"] = old["status"]
        if context.subresource != "finalize":
            new["spec"] = old["spec"]
        elif not new.get("spec", {}).get("finalizers"):
            new["spec"] = {}

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "finalize":
            field_errors: list[FieldError] = []
            for index, name in enumerate(new["spec"].get("finalizers") or []):
                field_errors += _finalizer(name, f"spec.finalizers[{index}]")
            return field_errors
        phase = new["status"].get("phase", "")
        if context.subresource != "status":
            return []
        deleting = bool(new["metadata"].get("deletionTimestamp"))
        wanted = "Terminating" if deleting else "Active"
        if phase == wanted:
            return []
        when = "is not empty" if deleting else "is empty"
        text = f"may only be '{wanted}' if `deletionTimestamp` {when}"
        return [errors.invalid_value("status.Phase", phase, text)]

    def admit_delete(self, name: str) -> None:
        if name in _IMMORTAL:
            why = "this namespace may not be deleted"
            raise errors.forbidden(Subject("", "namespaces", name), why)

    def pending(self, obj: Object) -> bool:
        # the first DELETE only marks a namespace, even one without finalizers
        meta, spec = obj["metadata"], obj["spec"]
        first = not meta.get("deletionTimestamp")
        return first or bool(meta.get("finalizers") or spec.get("finalizers"))

    def mark_deleting(self, obj: Object, grace: int) -> None:
        obj["status"]["phase"] = "Terminating"

    def selectable(self, obj: Object) -> Mapping[str, str]:
        return {**super().selectable(obj), "name": obj["metadata"]["name"]}
