"""Validation of PersistentVolumes."""

from __future__ import annotations

from typing import Any

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.defaults.storage import default_volume
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.kinds.validation.node_selectors import node_selector
from kube_in_process.kinds.validation.volumes import (
    VOLUME_MODES,
    access_modes,
    host_path_errors,
    no_way_back,
)
from kube_in_process.kinds.volume_admission import VOLUME_FINALIZER, protect
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import names
from kube_in_process.text.quantity import number
from kube_in_process.text.times import timestamp

_RECLAIM = ("Delete", "Recycle", "Retain")
_SOURCES = (
    *("hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs"),
    *("rbd", "quobyte", "cephfs", "iscsi", "cinder", "fc", "flexVolume", "azureFile"),
    *("vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk", "scaleIO", "local"),
    *("storageos", "csi"),
)
"""The sources in the server's order: of several, the first one is right."""
_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)
_LONGEST_DRIVER = 63
_ENTERED = "lastPhaseTransitionTime"
_INLINE = "in the context of inline volumes"


class VolumeStrategy(Strategy):
    """A volume knows when it entered its phase."""

    revalidates = False
    status_keeps = ()

    def default(self, obj: Object, features: Features) -> None:
        default_volume(obj)

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        now = timestamp(context.clock.now())
        obj["status"] = {"phase": "Pending", _ENTERED: now}

    def prepare_update(self, new: Object, old: Object, context: WriteContext) -> None:
        super().prepare_update(new, old, context)
        if context.subresource != "status":
            return
        status, before = new["status"], old["status"]
        changed = status.get("phase") != before.get("phase")
        if changed and status.get(_ENTERED) in (None, before.get(_ENTERED)):
            status[_ENTERED] = timestamp(context.clock.now())
        elif not changed and _ENTERED in before:
            status.setdefault(_ENTERED, before[_ENTERED])

    def admit(self, obj: Object, context: WriteContext) -> None:
        """A volume stays while it is bound."""
        protect(obj, VOLUME_FINALIZER)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        return volume_rules(obj)

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "status":
            return []
        return [*volume_rules(new), *volume_changes(new, old)]


def volume_rules(obj: Object) -> list[FieldError]:
    """The errors of a PersistentVolume."""
    spec, path = obj["spec"], "spec"
    field_errors = [*_modes(spec, path), *_capacity(spec.get("capacity") or {}, f"{path}.capacity")]
    reclaim, where = (
        spec.get("persistentVolumeReclaimPolicy"),
        f"{path}.persistentVolumeReclaimPolicy",
    )
    if reclaim and reclaim not in _RECLAIM:
        field_errors.append(errors.not_supported(where, reclaim, _RECLAIM))
    field_errors += _affinity(spec.get("nodeAffinity"), f"{path}.nodeAffinity")
    field_errors += _sources(spec, path)
    root = ((spec.get("hostPath") or {}).get("path") or "x").rstrip("/") == ""
    if root and reclaim == "Recycle":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        field_errors.append(errors.forbidden_field(where, text))
    if spec.get("storageClassName"):
        where = f"{path}.storageClassName"
        field_errors += errors.invalid_name(where, spec["storageClassName"], names.subdomain)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        field_errors.append(errors.not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    return [*field_errors, *_attributes_class(spec, path)]


def volume_changes(new: Object, old: Object) -> list[FieldError]:
    """The source and the mode of a volume may not change, and a class of attributes may not go."""
    before, after = old["spec"], new["spec"]
    field_errors: list[FieldError] = []
    if _source_of(after, before) != _source_of(before, before):
        text = "spec.persistentvolumesource is immutable after creation"
        field_errors.append(errors.forbidden_field("spec.persistentvolumesource", text))
    if after.get("volumeMode") != before.get("volumeMode"):
        value = after.get("volumeMode")
        field_errors.append(errors.invalid_value("volumeMode", value, "field is immutable"))
    if before.get("nodeAffinity") is not None and after.get("nodeAffinity") is None:
        text = "field is immutable, except for updating from beta label to GA"
        field_errors.append(errors.invalid_value("nodeAffinity", None, text))
    key = "volumeAttributesClassName"
    if before.get(key) is not None and after.get(key) is None:
        text = "update from non-nil value to nil is forbidden"
        field_errors.append(errors.forbidden_field(f"spec.{key}", text))
    return field_errors


def _source_of(spec: Object, before: Object) -> Object:
    """The sources of a spec, without a secret for expansion that was not there before."""
    sources = {key: spec[key] for key in _SOURCES if spec.get(key) is not None}
    if "csi" in sources and not (before.get("csi") or {}).get("controllerExpandSecretRef"):
        sources["csi"] = {**sources["csi"], "controllerExpandSecretRef": None}
    return sources


def inline_volume_errors(spec: Object, path: str) -> list[FieldError]:
    """The errors of a volume that only a VolumeAttachment describes."""
    field_errors = [
        errors.forbidden_field(f"{path}.{key}", f"may not be specified {_INLINE}")
        for key in ("claimRef", "capacity")
        if spec.get(key)
    ]
    if spec.get("csi") is None:
        field_errors.append(errors.required(f"{path}.csi", f"has to be specified {_INLINE}"))
    field_errors += [*_modes(spec, path), *_sources(spec, path)]
    if spec.get("storageClassName"):
        text = f"may not be specified {_INLINE}"
        field_errors.append(errors.forbidden_field(f"{path}.storageClassName", text))
    return field_errors


def _modes(spec: Object, path: str) -> list[FieldError]:
    modes, where = spec.get("accessModes") or [], f"{path}.accessModes"
    return [*([] if modes else [errors.required(where)]), *access_modes(modes, where)]


def _capacity(capacity: Object, path: str) -> list[FieldError]:
    field_errors = [] if capacity else [errors.required(path)]
    if set(capacity) != {"storage"}:
        field_errors.append(errors.not_supported(path, capacity or None, ("storage",)))
    for name, amount in capacity.items():
        whole = int(number(amount))
        if whole < 0:
            text = "must be a valid resource quantity"
            field_errors.append(errors.invalid_value(f"{path}[{name}]", whole, text))
        field_errors += not_positive(amount, f"{path}[{name}]")
    return field_errors


def not_positive(amount: Any, path: str) -> list[FieldError]:
    """The error of a quantity that is not greater than zero."""
    if number(amount) > 0:
        return []
    return [errors.invalid_value(path, str(amount), "must be greater than zero")]


def negative_quantity(amount: Any, path: str) -> list[FieldError]:
    """The error of a quantity below zero."""
    if number(amount) >= 0:
        return []
    return [errors.invalid_value(path, str(amount), "must be greater than or equal to 0")]


def _affinity(affinity: Object | None, path: str) -> list[FieldError]:
    if affinity is None:
        return []
    if affinity.get("required") is None:
        text = "must specify required node constraints"
        return [errors.required(f"{path}.required", text)]
    return node_selector(affinity["required"], f"{path}.required")


def _sources(spec: Object, path: str) -> list[FieldError]:
    given = [key for key in _SOURCES if spec.get(key) is not None]
    if not given:
        return [errors.required(path, "must specify a volume type")]
    first, *others = given
    text = "may not specify more than 1 volume type"
    field_errors = _source(first, spec, path)
    return [*field_errors, *(errors.forbidden_field(f"{path}.{key}", text) for key in others)]


def _source(kind: str, spec: Object, path: str) -> list[FieldError]:
    source, place = spec[kind], f"{path}.{kind}"
    if kind == "hostPath":
        return host_path_errors(source, place)
    if kind == "local":
        field_errors = no_way_back(source.get("path") or "", f"{place}.path")
        if spec.get("nodeAffinity") is None:
            text = "Local volume requires node affinity"
            field_errors.append(errors.required(f"{path}.nodeAffinity", text))
        return field_errors
    if kind == "nfs":
        return _nfs(source, place)
    return _csi(source, place) if kind == "csi" else []


def _nfs(source: Object, path: str) -> list[FieldError]:
    missing = [key for key in ("server", "path") if not source.get(key)]
    field_errors = [errors.required(f"{path}.{key}") for key in missing]
    folder = source.get("path") or ""
    if not folder.startswith("/"):
        field_errors.append(
            errors.invalid_value(f"{path}.path", folder, "must be an absolute path")
        )
    return field_errors


def _csi(source: Object, path: str) -> list[FieldError]:
    field_errors = csi_driver_name(source.get("driver") or "", f"{path}.driver")
    if not source.get("volumeHandle"):
        field_errors.append(errors.required(f"{path}.volumeHandle"))
    for key in _SECRETS:
        secret = source.get(key)
        for part in ("name", "namespace"):
            if secret is not None and not secret.get(part):
                field_errors.append(errors.required(f"{path}.{key}.{part}"))
    return field_errors


def csi_driver_name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [errors.required(path)]
    field_errors = [errors.too_long(path, _LONGEST_DRIVER)] if len(name) > _LONGEST_DRIVER else []
    return [
        *field_errors,
        *(errors.invalid_value(path, name, t) for t in names.subdomain(name.lower())),
    ]


def _attributes_class(spec: Object, path: str) -> list[FieldError]:
    name, where = spec.get("volumeAttributesClassName"), f"{path}.volumeAttributesClassName"
    if name is None:
        return []
    if name == "":
        field_errors = [errors.required(where, "an empty string is disallowed")]
    else:
        field_errors = errors.invalid_name(where, name, names.subdomain)
    if spec.get("csi") is None:
        text = "has to be specified when using volumeAttributesClassName"
        field_errors.append(errors.required(f"{path}.csi", text))
    return field_errors
