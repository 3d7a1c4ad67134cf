"""Validation of the security contexts of pods and containers."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.validation.go_text import STRUCTS, go_text
from kube_in_process.objects import Object

_IDENTITY = "must be between 0 and 2147483647, inclusive"
_CHANGES = ("Always", "OnRootMismatch")


def pod_security(context: Object, path: str) -> list[FieldError]:
    """The errors of spec.securityContext."""
    field_errors = _identities(context, ("fsGroup", "runAsUser", "runAsGroup"), path)
    for index, group in enumerate(context.get("supplementalGroups") or []):
        field_errors += _identity(group, f"{path}.supplementalGroups[{index}]")
    policy = context.get("fsGroupChangePolicy")
    if policy is not None and policy not in _CHANGES:
        field_errors.append(errors.not_supported(f"{path}.fsGroupChangePolicy", policy, _CHANGES))
    return field_errors


def container_security(context: Object | None, path: str) -> list[FieldError]:
    """The errors of the securityContext of a container."""
    if context is None:
        return []
    field_errors = _identities(context, ("runAsUser", "runAsGroup"), path)
    if context.get("allowPrivilegeEscalation") is not False:
        return field_errors
    if context.get("privileged"):
        text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        field_errors.append(errors.invalid_text(path, _shown(context), text))
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        added = "`capabilities.Add` CAP_SYS_ADMIN"
        text = f"cannot set `allowPrivilegeEscalation` to false and {added}"
        field_errors.append(errors.invalid_text(path, _shown(context), text))
    return field_errors


def _shown(context: Object) -> str:
    return go_text(context, STRUCTS["security_context"])


def _identities(context: Object, keys: tuple[str, ...], path: str) -> list[FieldError]:
    return [
        error
        for key in keys
        if context.get(key) is not None
        for error in _identity(context[key], f"{path}.{key}")
    ]


def _identity(value: int, path: str) -> list[FieldError]:
    return [] if 0 <= value < 2**31 else [errors.invalid_value(path, value, _IDENTITY)]
