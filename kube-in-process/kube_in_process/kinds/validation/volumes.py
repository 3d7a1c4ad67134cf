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
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, volume in enumerate(given):
        path, name = f"{base}[{index}]", volume.get("name") or ""
        found += _source(volume, path)
        if not name:
            found.append(errors.required(f"{path}.name"))
        else:
            found += errors.invalid_name(f"{path}.name", name, names.label)
        if name and name in seen:
            found.append(errors.duplicate(f"{path}.name", name))
        seen.add(name)
    return found


def _source(volume: Object, path: str) -> list[FieldError]:
    """The errors of the sources, in the server's order: of several, the first one is right."""
    sources = [key for key, value in volume.items() if key != "name" and value is not None]
    first, *others = sorted(sources, key=_rank) or [""]
    found: list[FieldError] = []
    if first == "hostPath":
        found += host_path_errors(volume[first], f"{path}.{first}")
    needed = _NEEDED.get(first)
    if needed and not volume[first].get(needed):
        found.append(errors.required(f"{path}.{first}.{needed}"))
    text = "may not specify more than 1 volume type"
    return [*found, *(errors.forbidden_field(f"{path}.{key}", text) for key in others)]


_HOST_PATHS = (
    *("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate"),
    "Socket",
)


def host_path_errors(source: Object, path: str) -> list[FieldError]:
    folder, kind = source.get("path") or "", source.get("type")
    found = no_way_back(folder, f"{path}.path")
    if folder and kind is not None and kind not in _HOST_PATHS:
        found.append(errors.not_supported(f"{path}.type", kind, _HOST_PATHS))
    return found


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
    found = [
        errors.not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES
    ]
    if "ReadWriteOncePod" in known and set(known) != {"ReadWriteOncePod"}:
        text = "may not use ReadWriteOncePod with other access modes"
        found.append(errors.forbidden_field(path, text))
    return found


def claim_spec_errors(spec: Object, path: str) -> list[FieldError]:
    """The errors of the spec of a PersistentVolumeClaim."""
    modes, found = spec.get("accessModes") or [], list[FieldError]()
    if not modes:
        text = "at least 1 access mode is required"
        found.append(errors.required(f"{path}.accessModes", text))
    if spec.get("selector") is not None:
        found += label_selector(spec["selector"], f"{path}.selector")
    found += access_modes(modes, f"{path}.accessModes")
    requests = (spec.get("resources") or {}).get("requests") or {}
    where = f"{path}.resources[storage]"
    if "storage" not in requests:
        found.append(errors.required(where))
    elif number(requests["storage"]) <= 0:
        size = str(requests["storage"])
        found.append(errors.invalid_value(where, size, "must be greater than zero"))
    for key in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(key):
            found += errors.invalid_name(f"{path}.{key}", spec[key], names.subdomain)
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        found.append(errors.not_supported(f"{path}.volumeMode", mode, VOLUME_MODES))
    return [*found, *_data_sources(spec, path)]


def _data_sources(spec: Object, path: str) -> list[FieldError]:
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    found: list[FieldError] = []
    for key, given in (("dataSource", source), ("dataSourceRef", reference)):
        if given is not None:
            found += _data_source(given, f"{path}.{key}")
    if source is None or reference is None:
        return found
    if any(source.get(key) != reference.get(key) for key in ("apiGroup", "kind", "name")):
        found.append(errors.invalid_text(path, "{}", "must match dataSourceRef"))
    return found


def _data_source(source: Object, path: str) -> list[FieldError]:
    found = [errors.required(f"{path}.{key}") for key in ("name", "kind") if not source.get(key)]
    group, kind = source.get("apiGroup") or "", source.get("kind") or ""
    if not group and kind != "PersistentVolumeClaim":
        text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        found.append(errors.invalid_value(path, kind, text))
    if group:
        found += errors.invalid_name(f"{path}.apiGroup", group, names.subdomain)
    return found
