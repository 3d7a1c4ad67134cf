"""Validation of the volumes of a pod, and of the specs of PersistentVolumeClaims."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.validation.label_selectors import label_selector
from kube_in_process.objects import Object
from kube_in_process.text import names
from kube_in_process.text.quantity import number

_NEEDED = {
    "configMap": "name",
    "secret": "secretName",
    "persistentVolumeClaim": "claimName",
}
"""What a source has to name."""


def volumes(given: list[Object], base: str) -> list[FieldError]:
    """The errors of each volume: its name, and one source."""
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, volume in enumerate(given):
        path, name = f"{base}[{index}]", volume.get("name") or ""
        field_errors += _source(volume, path)
        if not name:
            field_errors.append(errors.required(f"{path}.name"))
        else:
            field_errors += errors.invalid_name(f"{path}.name", name, names.label)
        if name and name in seen:
            field_errors.append(errors.duplicate(f"{path}.name", name))
        seen.add(name)
    return field_errors


def _source(volume: Object, path: str) -> list[FieldError]:
    """The errors of the sources, in the server's order: of several, the first one is right."""
    sources = [key for key, value in volume.items() if key != "name" and value is not None]
    first, *others = sorted(sources, key=_rank) or [""]
    field_errors: list[FieldError] = []
    if first == "hostPath":
        field_errors += host_path_errors(volume[first], f"{path}.{first}")
    needed = _NEEDED.get(first)
    if needed and not volume[first].get(needed):
        field_errors.append(errors.required(f"{path}.{first}.{needed}"))
    text = "may not specify more than 1 volume type"
    return [*field_errors, *(errors.forbidden_field(f"{path}.{key}", text) for key in others)]


_HOST_PATHS = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate"),
    "Socket",
)


def host_path_errors(source: Object, path: str) -> list[FieldError]:
    folder, kind = source.get("path") or "", source.get("type")
    field_errors = no_way_back(folder, f"{path}.path")
    if folder and kind is not None and kind not in _HOST_PATHS:
        field_errors.append(errors.not_supported(f"{path}.type", kind, _HOST_PATHS))
    return field_errors


def no_way_back(folder: str, path: str) -> list[FieldError]:
    """The error of a path that is empty, or leads up."""
    if not folder:
        return [errors.required(path)]
    text = "must not contain '..'"
    return [errors.invalid_value(path, folder, text)] if ".." in folder.split("/") else []


_ORDER = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret"),
    *("nfs", "iscsi", "glusterfs", "flexVolume", "configMap", "rbd", "cephfs", "flocker"),
    *("persistentVolumeClaim", "fc", "cinder", "quobyte", "vsphereVolume", "downwardAPI"),
    *("portworxVolume", "scaleIO", "projected", "storageos", "photonPersistentDisk", "azureDisk"),
    *("azureFile", "csi", "ephemeral", "image"),
)


def _rank(source: str) -> int:
    return _ORDER.index(source) if source in _ORDER else len(_ORDER)


ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")


def access_modes(modes: list[str], path: str) -> list[FieldError]:
    """The errors of the ways in which a volume may be used."""
    known = [mode for mode in modes if mode in ACCESS_MODES]
    field_errors = [
        errors.not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES
    ]
    if "ReadWriteOncePod" in known and set(known) != {"ReadWriteOncePod"}:
        text = "may not use ReadWriteOncePod with other access modes"
        field_errors.append(errors.forbidden_field(path, text))
    return field_errors


def claim_spec_errors(spec: Object, path: str) -> list[FieldError]:
    """The errors of the spec of a PersistentVolumeClaim."""
    modes, field_errors = spec.get("accessModes") or [], list[FieldError]()
    if not modes:
        text = "at least 1 access mode is required"
        field_errors.append(errors.required(f"{path}.accessModes", text))
    if spec.get("selector") is not None:
        field_errors += label_selector(spec["selector"], f"{path}.selector")
    field_errors += access_modes(modes, f"{path}.accessModes")
    requests = (spec.get("resources") or {}).get("requests") or {}
    where = f"{path}.resources[storage]"
    if "storage" not in requests:
        field_errors.append(errors.required(where))
    elif number(requests["storage"]) <= 0:
        size = str(requests["storage"])
        field_errors.append(errors.invalid_value(where, size, "must be greater than zero"))
    for key in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(key):
            field_errors += errors.invalid_name(f"{path}.{key}", spec[key], names.subdomain)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        field_errors.append(errors.not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    return [*field_errors, *_data_sources(spec, path)]


def _data_sources(spec: Object, path: str) -> list[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    field_errors: list[FieldError] = []
    for key, given in (("dataSource", source), ("dataSourceRef", reference)):
        if given is not None:
            field_errors += _data_source(given, f"{path}.{key}")
    if source is None or reference is None:
        return field_errors
    if any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        field_errors.append(errors.invalid_text(path, "{}", "must match dataSourceRef"))
    return field_errors


def _data_source(source: Object, path: str) -> list[FieldError]:
    field_errors = [
        errors.required(f"{path}.{key}") for key in ("name", "kind") if not source.get(key)
    ]
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        field_errors.append(errors.invalid_value(path, kind, text))
    if group:
        field_errors += errors.invalid_name(f"{path}.apiGroup", group, names.subdomain)
    return field_errors
