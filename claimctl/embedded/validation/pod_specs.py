"""What is wrong with the spec of a pod or of a pod template."""

from __future__ import annotations

from typing import Any

from claimctl.embedded import errors, names
from claimctl.embedded.errors import FieldError
from claimctl.embedded.go_text import Struct, go_text

Object = dict[str, Any]
_CLAIM: Struct = {"Name": None, "ResourceClaimName": None, "ResourceClaimTemplateName": None}
_POLICIES = ("Always", "OnFailure", "Never")


def validate_pod_spec(spec: Object, path: str) -> list[FieldError]:
    """Claims, containers, volumes and the restart policy."""
    claims = spec.get("resourceClaims") or []
    found = _claims(claims, f"{path}.resourceClaims")
    containers = spec.get("containers") or []
    if not containers:
        found.append(errors.required(f"{path}.containers"))
    volumes = {volume.get("name") for volume in spec.get("volumes") or []}
    known = [claim.get("name", "") for claim in claims]
    for key in ("containers", "initContainers"):
        seen: set[str] = set()
        for index, container in enumerate(spec.get(key) or []):
            below = f"{path}.{key}[{index}]"
            found += _container(container, below, seen)
            found += _container_claims(container, known, f"{below}.resources.claims")
            found += _mounts(container, volumes, f"{below}.volumeMounts")
    found += _group(spec.get("schedulingGroup"), f"{path}.schedulingGroup.podGroupName")
    if spec.get("restartPolicy") not in _POLICIES:
        where = f"{path}.restartPolicy"
        found.append(errors.not_supported(where, spec.get("restartPolicy"), _POLICIES))
    return found


def _group(group: Object | None, path: str) -> list[FieldError]:
    if group is None:
        return []
    name = group.get("podGroupName")
    if name is None:
        return [errors.invalid_text(path, "null", "must specify one of: `podGroupName`")]
    return [errors.invalid_value(path, name, text) for text in names.subdomain(name)]


def _claims(claims: list[Object], base: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        path = f"{base}[{index}]"
        name = claim.get("name", "")
        if not name:
            found.append(errors.required(f"{path}.name"))
        elif name in seen:
            found.append(errors.duplicate(f"{path}.name", name))
        else:
            found += [errors.invalid_value(f"{path}.name", name, t) for t in names.label(name)]
        seen.add(name)
        found += _claim_source(claim, path)
    return found


def _claim_source(claim: Object, path: str) -> list[FieldError]:
    keys = ("resourceClaimName", "resourceClaimTemplateName")
    given = [key for key in keys if claim.get(key) is not None]
    shown = go_text(claim, _CLAIM)
    if len(given) > 1:
        text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        return [errors.invalid_text(path, shown, text)]
    if not given:
        text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        return [errors.invalid_text(path, shown, text)]
    value = claim[given[0]]
    return [errors.invalid_value(f"{path}.{given[0]}", value, t) for t in names.subdomain(value)]


def _container(container: Object, path: str, seen: set[str]) -> list[FieldError]:
    found: list[FieldError] = []
    name = container.get("name", "")
    if not name:
        found.append(errors.required(f"{path}.name"))
    elif name in seen:
        found.append(errors.duplicate(f"{path}.name", name))
    else:
        found += [errors.invalid_value(f"{path}.name", name, t) for t in names.label(name)]
    seen.add(name)
    if not container.get("image"):
        found.append(errors.required(f"{path}.image"))
    return found


def _container_claims(container: Object, known: list[str], base: str) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate((container.get("resources") or {}).get("claims") or []):
        path = f"{base}[{index}]"
        name, request = claim.get("name", ""), claim.get("request", "")
        if not name:
            found.append(errors.required(f"{path}.name"))
        elif (name, request) in seen or (name, "") in seen:
            found.append(errors.duplicate(path, f"{name}/{request}" if request else name))
        elif name not in known:
            found.append(_unknown_claim(path, name, known))
        seen.add((name, request))
    return found


def _unknown_claim(path: str, name: str, known: list[str]) -> FieldError:
    where = "must be one of the names in pod.spec.resourceClaims"
    text = f"{where}: {', '.join(known)}" if known else f"{where} which is empty"
    return FieldError("FieldValueNotFound", path, f"Not found: {errors.quoted(name)}: {text}")


def _mounts(container: Object, volumes: set[Any], base: str) -> list[FieldError]:
    found: list[FieldError] = []
    for index, mount in enumerate(container.get("volumeMounts") or []):
        if mount.get("name") not in volumes:
            found.append(errors.field_not_found(f"{base}[{index}].name", mount.get("name", "")))
        if not mount.get("mountPath"):
            found.append(errors.required(f"{base}[{index}].mountPath"))
    return found
