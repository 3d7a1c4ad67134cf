"""Validation of the volumes of a pod, and of the specs of PersistentVolumeClaims."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.objects import Object
from kube_in_process.text import names

_NEEDED = {
    "hostPath": "path",
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
    needed = _NEEDED.get(first)
    if needed and not volume[first].get(needed):
        found.append(errors.required(f"{path}.{first}.{needed}"))
    text = "may not specify more than 1 volume type"
    return [*found, *(errors.forbidden_field(f"{path}.{key}", text) for key in others)]


_ORDER = (
    *("emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret"),
    *("nfs", "iscsi", "glusterfs", "flexVolume", "configMap", "rbd", "cephfs", "flocker"),
    *("persistentVolumeClaim", "fc", "cinder", "quobyte", "vsphereVolume", "downwardAPI"),
    *("portworxVolume", "scaleIO", "projected", "storageos", "photonPersistentDisk", "azureDisk"),
    *("azureFile", "csi", "ephemeral", "image"),
)


def _rank(source: str) -> int:
    return _ORDER.index(source) if source in _ORDER else len(_ORDER)


_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def claim_spec_errors(spec: Object, path: str) -> list[FieldError]:
    """The errors of the spec of a PersistentVolumeClaim."""
    modes, found = spec.get("accessModes") or [], list[FieldError]()
    if not modes:
        text = "at least 1 access mode is required"
        found.append(errors.required(f"{path}.accessModes", text))
    found += [
        errors.not_supported(f"{path}.accessModes", mode, _MODES)
        for mode in modes
        if mode not in _MODES
    ]
    requests = (spec.get("resources") or {}).get("requests") or {}
    if "storage" not in requests:
        found.append(errors.required(f"{path}.resources[storage]"))
    return found
