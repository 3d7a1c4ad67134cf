"""Validation of the spec of a pod or of a pod template."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.metadata import validate_labels
from kube_in_process.kinds.validation.containers import (
    PodParts,
    containers,
    init_containers,
)
from kube_in_process.kinds.validation.go_text import STRUCTS, go_text
from kube_in_process.kinds.validation.placement import affinity, spread
from kube_in_process.kinds.validation.security import pod_security
from kube_in_process.kinds.validation.volumes import volumes
from kube_in_process.objects import Object
from kube_in_process.text import names

_POLICIES = ("Always", "OnFailure", "Never")
_DNS = ("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None")
_SYSTEMS = ("linux", "windows")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_KEYLESS = (
    'operator must be Exists when `key` is empty, which means "match all values and all keys"'
)


def validate_pod_spec(spec: Object, path: str) -> list[FieldError]:
    """The errors of a spec, in the order of the server."""
    field_errors = volumes(spec.get("volumes") or [], f"{path}.volumes")
    field_errors += _claims(spec.get("resourceClaims") or [], f"{path}.resourceClaims")
    field_errors += _containers(spec, path)
    field_errors += _host_network(spec, f"{path}.containers")
    for key, supported in (("restartPolicy", _POLICIES), ("dnsPolicy", _DNS)):
        field_errors += errors.invalid_choice(f"{path}.{key}", spec.get(key) or "", supported)
    field_errors += validate_labels(spec.get("nodeSelector") or {}, f"{path}.nodeSelector")
    field_errors += pod_security(spec.get("securityContext") or {}, f"{path}.securityContext")
    field_errors += affinity(spec.get("affinity"), f"{path}.affinity")
    if spec.get("dnsPolicy") == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        field_errors.append(_dns_config(spec, f"{path}.dnsConfig"))
    for index, gate in enumerate(spec.get("readinessGates") or []):
        where = f"{path}.readinessGates[{index}].conditionType"
        field_errors += errors.invalid_name(
            where, gate.get("conditionType") or "", names.qualified_name
        )
    field_errors += _gates(spec.get("schedulingGates") or [], f"{path}.schedulingGates")
    constraints = spec.get("topologySpreadConstraints") or []
    field_errors += spread(constraints, f"{path}.topologySpreadConstraints")
    field_errors += _names(spec, path)
    field_errors += tolerations(spec.get("tolerations") or [], f"{path}.tolerations")
    field_errors += _host_aliases(spec.get("hostAliases") or [], f"{path}.hostAliases")
    if spec.get("os") is not None:
        name = spec["os"].get("name") or ""
        field_errors += (
            [] if name in _SYSTEMS else [errors.not_supported(f"{path}.os", name, _SYSTEMS)]
        )
    return [
        *field_errors,
        *_group(spec.get("schedulingGroup"), f"{path}.schedulingGroup.podGroupName"),
    ]


def _containers(spec: Object, path: str) -> list[FieldError]:
    given, first = spec.get("containers") or [], spec.get("initContainers") or []
    parts = PodParts(
        [claim.get("name", "") for claim in spec.get("resourceClaims") or []],
        {volume.get("name") for volume in spec.get("volumes") or []},
        spec.get("restartPolicy") or "",
    )
    taken = [container.get("name", "") for container in given]
    return [
        *([] if given else [errors.required(f"{path}.containers")]),
        *containers(given, f"{path}.containers", parts),
        *init_containers(first, f"{path}.initContainers", parts, taken),
    ]


def _host_network(spec: Object, base: str) -> list[FieldError]:
    if not spec.get("hostNetwork"):
        return []
    text = "must match `containerPort` when `hostNetwork` is true"
    return [
        errors.invalid_value(f"{base}[{index}].ports[{place}].hostPort", port["hostPort"], text)
        for index, container in enumerate(spec.get("containers") or [])
        for place, port in enumerate(container.get("ports") or [])
        if port.get("hostPort") and port["hostPort"] != port.get("containerPort")
    ]


def _dns_config(spec: Object, path: str) -> FieldError:
    if spec.get("dnsConfig") is None:
        return errors.required(path, "must provide `dnsConfig` when `dnsPolicy` is None")
    text = "must provide at least one DNS nameserver when `dnsPolicy` is None"
    return errors.required(f"{path}.nameservers", text)


def _host_aliases(aliases: list[Object], base: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for index, alias in enumerate(aliases):
        field_errors += errors.invalid_name(
            f"{base}[{index}].ip", alias.get("ip") or "", names.address
        )
        for place, name in enumerate(alias.get("hostnames") or []):
            where = f"{base}[{index}].hostnames[{place}]"
            field_errors += errors.invalid_name(where, name, names.subdomain)
    return field_errors


def _names(spec: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for key in ("serviceAccountName", "nodeName"):
        if value := spec.get(key):
            field_errors += errors.invalid_name(f"{path}.{key}", value, names.subdomain)
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= 2**31 - 1:
        text = "must be between 1 and 2147483647, inclusive"
        field_errors.append(errors.invalid_value(f"{path}.activeDeadlineSeconds", deadline, text))
    for key in ("hostname", "subdomain"):
        if value := spec.get(key):
            field_errors += errors.invalid_name(f"{path}.{key}", value, names.label)
    return field_errors


def _gates(gates: list[Object], base: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        path, name = f"{base}[{index}]", gate.get("name", "")
        field_errors += errors.invalid_name(path, name, names.qualified_name)
        if name in seen:
            field_errors.append(errors.duplicate(path, name))
        seen.add(name)
    return field_errors


def tolerations(given: list[Object], base: str) -> list[FieldError]:
    return [
        error
        for index, toleration in enumerate(given)
        for error in _toleration(toleration, f"{base}[{index}]")
    ]


def _toleration(toleration: Object, path: str) -> list[FieldError]:
    key, operator = toleration.get("key") or "", toleration.get("operator") or ""
    effect, value = toleration.get("effect") or "", toleration.get("value") or ""
    field_errors: list[FieldError] = []
    if key:
        field_errors += errors.invalid_name(f"{path}.key", key, names.qualified_name)
    if not key and operator != "Exists":
        field_errors.append(errors.invalid_value(f"{path}.operator", operator, _KEYLESS))
    if toleration.get("tolerationSeconds") is not None and effect != "NoExecute":
        text = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        field_errors.append(errors.invalid_value(f"{path}.effect", effect, text))
    if operator in ("", "Equal"):
        wrong = names.label_value(value)
        if wrong:
            field_errors.append(errors.invalid_value(f"{path}.operator", value, ";".join(wrong)))
    elif operator == "Exists":
        if value:
            text = "value must be empty when `operator` is 'Exists'"
            field_errors.append(errors.invalid_value(f"{path}.operator", value, text))
    else:
        field_errors.append(errors.not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect and effect not in _EFFECTS:
        field_errors.append(errors.not_supported(f"{path}.effect", effect, _EFFECTS))
    return field_errors


def _group(group: Object | None, path: str) -> list[FieldError]:
    if group is None:
        return []
    name = group.get("podGroupName")
    if name is None:
        return [errors.invalid_text(path, "null", "must specify one of: `podGroupName`")]
    return errors.invalid_name(path, name, names.subdomain)


def _claims(claims: list[Object], base: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, claim in enumerate(claims):
        path = f"{base}[{index}]"
        name = claim.get("name", "")
        if not name:
            field_errors.append(errors.required(f"{path}.name"))
        elif name in seen:
            field_errors.append(errors.duplicate(f"{path}.name", name))
        else:
            field_errors += errors.invalid_name(f"{path}.name", name, names.label)
        seen.add(name)
        field_errors += _claim_source(claim, path)
    return field_errors


def _claim_source(claim: Object, path: str) -> list[FieldError]:
    keys = ("resourceClaimName", "resourceClaimTemplateName")
    given = [key for key in keys if claim.get(key) is not None]
    shown = go_text(claim, STRUCTS["pod_claim"])
    if len(given) > 1:
        text = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        return [errors.invalid_text(path, shown, text)]
    if not given:
        text = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
        return [errors.invalid_text(path, shown, text)]
    value = claim[given[0]]
    return errors.invalid_name(f"{path}.{given[0]}", value, names.subdomain)
