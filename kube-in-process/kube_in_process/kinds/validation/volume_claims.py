"""PersistentVolumeClaims."""

from __future__ import annotations

from decimal import Decimal

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.defaults.storage import default_claim
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.kinds.validation.volumes import claim_spec_errors
from kube_in_process.kinds.volume_admission import CLAIM_FINALIZER, default_class, protect
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.storage.store import Address
from kube_in_process.text.quantity import number

_FIXED = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName for "
    "bound claims"
)
_NO_EXPANSION = (
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
    "must support resize"
)
_DATA_SOURCES = (
    ("", "PersistentVolumeClaim"),
    ("snapshot.storage.k8s.io", "VolumeSnapshot"),
)
"""The kinds that dataSource may name alone: group and kind."""
_STORAGE = "storage.k8s.io"
_CLASS = "volume.beta.kubernetes.io/storage-class"


class VolumeClaimStrategy(Strategy):
    """A claim waits for a volume."""

    revalidates = False
    status_keeps = ()

    def default(self, obj: Object, features: Features) -> None:
        default_claim(obj)

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        obj["status"] = {"phase": "Pending"}
        align_data_sources(obj["spec"], {})

    def prepare_update(self, new: Object, old: Object, context: WriteContext) -> None:
        super().prepare_update(new, old, context)
        if context.subresource != "status":
            align_data_sources(new["spec"], old["spec"])

    def admit(self, obj: Object, context: WriteContext) -> None:
        """A claim stays while a pod uses it, and without a class it gets the default one."""
        protect(obj, CLAIM_FINALIZER)
        annotated = _CLASS in (obj["metadata"].get("annotations") or {})
        if obj["spec"].get("storageClassName") is None and not annotated:
            default = default_class(context.store.list(_STORAGE, "storageclasses"))
            if default:
                obj["spec"]["storageClassName"] = default

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return claim_spec_errors(obj["spec"], "spec")

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "status":
            return []
        return [*claim_spec_errors(new["spec"], "spec"), *claim_changes(new, old)]

    def admit_update(self, new: Object, old: Object, context: WriteContext) -> None:
        """Refuse more storage, unless the claim is bound and its class allows to expand it."""
        if context.subresource or _requested(new["spec"]) <= _requested(old["spec"]):
            return
        subject = errors.Subject("", "persistentvolumeclaims", new["metadata"]["name"])
        if old["status"].get("phase") != "Bound":
            raise errors.forbidden(subject, "Only bound persistent volume claims can be expanded")
        name = _annotation(new) or new["spec"].get("storageClassName") or ""
        address = Address("storage.k8s.io", "storageclasses", "", name)
        storage_class = context.store.get(address) if name else None
        if not (storage_class or {}).get("allowVolumeExpansion"):
            raise errors.forbidden(subject, _NO_EXPANSION)


def align_data_sources(spec: Object, before: Object) -> None:
    """Write the source of the data in both fields. What an old client could not mean is dropped."""
    if (spec.get("dataSourceRef") or {}).get("namespace"):
        del spec["dataSourceRef"]
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is not None and reference is None:
        kind = (source.get("apiGroup") or "", source.get("kind"))
        if kind in _DATA_SOURCES or before.get("dataSource") or before.get("dataSourceRef"):
            spec["dataSourceRef"] = dict(source)
        else:
            del spec["dataSource"]
    elif reference is not None and source is None:
        spec["dataSource"] = dict(reference)


def claim_changes(new: Object, old: Object) -> list[FieldError]:
    """A claim may get a volume and a class once, and a bound claim more storage."""
    before, after = old["spec"], new["spec"]
    field_errors: list[FieldError] = []
    was, now = _annotation(old), _annotation(new)
    if was != now:
        path = f"metadata.annotations.{_CLASS}"
        field_errors.append(errors.invalid_value(path, now, "field is immutable"))
    if _compared(after, before, old["status"]) != before:
        field_errors.append(errors.forbidden_field("spec", _FIXED))
    path, size = "spec.resources.requests.storage", _requested(after)
    if size < _requested(before):
        there = number(((old["status"].get("capacity")) or {}).get("storage"))
        if size <= there:
            text = "field can not be less than status.capacity"
            field_errors.append(errors.forbidden_field(path, text))
    if after.get("volumeMode") != before.get("volumeMode"):
        value = after.get("volumeMode")
        field_errors.append(errors.invalid_value("volumeMode", value, "field is immutable"))
    return field_errors


def _annotation(obj: Object) -> str:
    return str((obj["metadata"].get("annotations") or {}).get(_CLASS) or "")


def _requested(spec: Object) -> Decimal:
    return number(((spec.get("resources") or {}).get("requests") or {}).get("storage"))


def _compared(after: Object, before: Object, status: Object) -> Object:
    """The new spec, with the old values of what may change."""
    compared = dict(after)
    free = [key for key in ("volumeName", "storageClassName") if not before.get(key)]
    if before.get("storageClassName") == "":
        free.remove("storageClassName")
    if status.get("phase") == "Bound":
        free.append("volumeAttributesClassName")
        compared["resources"] = _with_old_size(after, before)
    for key in free:
        compared.pop(key, None)
        if key in before:
            compared[key] = before[key]
    return compared


def _with_old_size(after: Object, before: Object) -> Object:
    resources = dict(after.get("resources") or {})
    old = ((before.get("resources") or {}).get("requests") or {}).get("storage")
    if resources.get("requests") and old is not None:
        resources["requests"] = {**resources["requests"], "storage": old}
    return resources
