"""Validation of containers: names, images, ports, variables, resources, mounts."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.validation.amounts import AT_LEAST_ZERO, port_number
from kube_in_process.kinds.validation.port_names import port_name
from kube_in_process.kinds.validation.probes import (
    forbidden_in_init_containers,
    hooks_and_probes,
)
from kube_in_process.kinds.validation.security import container_security
from kube_in_process.objects import Object
from kube_in_process.text import names
from kube_in_process.text.quantity import number

_PULL = ("Always", "IfNotPresent", "Never")
_MESSAGES = ("File", "FallbackToLogsOnError")
_PROTOCOLS = ("SCTP", "TCP", "UDP")
_STANDARD = frozenset({"cpu", "memory", "ephemeral-storage"})
_NOT_STANDARD = (
    "must be a standard resource type or fully qualified",
    "must be a standard resource for containers",
)
_PRINTABLE = re.compile(r"[ -<>-~]+\Z")
_VARIABLE = (
    "a valid environment variable name must consist only of printable ASCII characters other "
    "than '='"
)
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
_FIELDS = re.compile(
    r"metadata\.(name|namespace|uid|(annotations|labels)\['.*'\])\Z|status\.(hostIPs?|podIPs?)\Z|"
    r"spec\.(nodeName|serviceAccountName)\Z"
)
_RESIZABLE = ("cpu", "memory")
_RESTARTS = ("NotRequired", "RestartContainer")
_NO_RESTART = "must be 'NotRequired' when pod `restartPolicy` is 'Never'"


@dataclass(frozen=True, slots=True)
class PodParts:
    """What containers refer to: names of claims and volumes, and when the pod restarts."""

    claims: list[str]
    volumes: set[Any]
    restart_policy: str = ""


def containers(given: list[Object], base: str, parts: PodParts) -> list[FieldError]:
    wrong: list[FieldError] = []
    seen: set[str] = set()
    for index, container in enumerate(given):
        path, name = f"{base}[{index}]", container.get("name", "")
        wrong += _container(container, path, parts)
        if name in seen:
            wrong.append(errors.duplicate(f"{path}.name", name))
        seen.add(name)
        wrong += hooks_and_probes(container, path)
    return wrong


def init_containers(
    given: list[Object], base: str, parts: PodParts, taken: Collection[str]
) -> list[FieldError]:
    """The errors of init containers. ``taken``: the names of the other containers."""
    wrong: list[FieldError] = []
    seen = set(taken)
    for index, container in enumerate(given):
        path, name = f"{base}[{index}]", container.get("name", "")
        wrong += _container(container, path, parts)
        if name in seen:
            wrong.append(errors.duplicate(f"{path}.name", name))
        seen.add(name)
        if container.get("restartPolicy") == "Always":
            wrong += hooks_and_probes(container, path)
        else:
            wrong += forbidden_in_init_containers(container, path)
    return wrong


def _container(container: Object, path: str, parts: PodParts) -> list[FieldError]:
    policy = container.get("terminationMessagePolicy")
    pull = container.get("imagePullPolicy")
    field_errors = [*_name(container, f"{path}.name"), *_image(container, f"{path}.image")]
    if policy not in _MESSAGES:
        where = f"{path}.terminationMessagePolicy"
        field_errors.append(errors.not_supported(where, policy or "", _MESSAGES))
    field_errors += ports(container.get("ports") or [], f"{path}.ports")
    field_errors += _variables(container.get("env") or [], f"{path}.env")
    field_errors += _mounts(container, parts.volumes, f"{path}.volumeMounts")
    if pull not in _PULL:
        field_errors.append(errors.not_supported(f"{path}.imagePullPolicy", pull or "", _PULL))
    field_errors += _resources(container.get("resources") or {}, f"{path}.resources", parts)
    policies = container.get("resizePolicy") or []
    field_errors += _resize_policies(policies, f"{path}.resizePolicy", parts)
    context = container.get("securityContext")
    return [*field_errors, *container_security(context, f"{path}.securityContext")]


def _resize_policies(policies: list[Object], path: str, parts: PodParts) -> list[FieldError]:
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, policy in enumerate(policies):
        resource = policy.get("resourceName") or ""
        restart = policy.get("restartPolicy") or ""
        if resource in seen:
            field_errors.append(errors.duplicate(f"{path}[{index}]", resource))
        seen.add(resource)
        field_errors += errors.invalid_choice(path, resource, _RESIZABLE)
        field_errors += errors.invalid_choice(path, restart, _RESTARTS)
        if parts.restart_policy == "Never" and restart not in ("", "NotRequired"):
            field_errors.append(errors.invalid_value(path, restart, _NO_RESTART))
    return field_errors


def _name(container: Object, path: str) -> list[FieldError]:
    name = container.get("name", "")
    if not name:
        return [errors.required(path)]
    return errors.invalid_name(path, name, names.namespace_name)


def _image(container: Object, path: str) -> list[FieldError]:
    image = container.get("image", "")
    if not image:
        return [errors.required(path)]
    text = "must not have leading or trailing whitespace"
    return [] if image == image.strip() else [errors.invalid_value(path, image, text)]


def ports(given: list[Object], base: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(given):
        path, name = f"{base}[{index}]", port.get("name", "")
        if name:
            bad = port_name(name)
            wrong += [errors.invalid_value(f"{path}.name", name, text) for text in bad]
            if not bad and name in seen:
                wrong.append(errors.duplicate(f"{path}.name", name))
            seen.add(name)
        wrong += _numbers(port, path)
        wrong += errors.invalid_choice(f"{path}.protocol", port.get("protocol", ""), _PROTOCOLS)
    return wrong


def _numbers(port: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    if not port.get("containerPort"):
        field_errors.append(errors.required(f"{path}.containerPort"))
    for key in ("containerPort", "hostPort"):
        value = port.get(key) or 0
        if value:
            field_errors += port_number(value, f"{path}.{key}")
    return field_errors


def _variables(given: list[Object], base: str) -> list[FieldError]:
    wrong: list[FieldError] = []
    for index, variable in enumerate(given):
        path, name = f"{base}[{index}]", variable.get("name", "")
        if not name:
            wrong.append(errors.required(f"{path}.name"))
        elif not _PRINTABLE.match(name):
            wrong.append(errors.invalid_value(f"{path}.name", name, _VARIABLE))
        if variable.get("valueFrom") is not None:
            wrong += _value_from(variable, f"{path}.valueFrom")
    return wrong


def _value_from(variable: Object, path: str) -> list[FieldError]:
    source = variable["valueFrom"]
    field_errors: list[FieldError] = []
    given = [key for key in _SOURCES if source.get(key) is not None]
    field = (source.get("fieldRef") or {}).get("fieldPath")
    if field is not None and not _FIELDS.match(field):
        text = f"error converting fieldPath: field label not supported: {field}"
        field_errors.append(errors.invalid_value(f"{path}.fieldRef.fieldPath", field, text))
    for key in ("configMapKeyRef", "secretKeyRef"):
        if source.get(key) is not None:
            field_errors += [
                errors.required(f"{path}.{key}.{part}")
                for part in ("name", "key")
                if not source[key].get(part)
            ]
    if variable.get("value"):
        text = "may not be specified when `value` is not empty"
        return [*field_errors, errors.invalid_value(path, "", text)] if given else field_errors
    if not given:
        *others, last = [f"`{key}`" for key in _SOURCES]
        text = f"must specify one of: {', '.join(others)} or {last}"
        return [*field_errors, errors.invalid_value(path, "", text)]
    if len(given) > 1:
        text = "may not have more than one field specified at a time"
        return [*field_errors, errors.invalid_value(path, "", text)]
    return field_errors


def _mounts(container: Object, volumes: set[Any], base: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for index, mount in enumerate(container.get("volumeMounts") or []):
        if not mount.get("name"):
            field_errors.append(errors.required(f"{base}[{index}].name"))
        if mount.get("name") not in volumes:
            field_errors.append(
                errors.field_not_found(f"{base}[{index}].name", mount.get("name", ""))
            )
        if not mount.get("mountPath"):
            field_errors.append(errors.required(f"{base}[{index}].mountPath"))
    return field_errors


def _resources(resources: Object, path: str, parts: PodParts) -> list[FieldError]:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    field_errors: list[FieldError] = []
    for key, amounts in (("limits", limits), ("requests", requests)):
        for name, amount in sorted(amounts.items()):
            field_errors += _resource(name, amount, f"{path}.{key}[{name}]")
            limit = limits.get(name)
            if key == "requests" and limit is not None and number(amount) > number(limit):
                text = f"must be less than or equal to {name} limit of {limit}"
                field_errors.append(errors.invalid_value(f"{path}.{key}", amount, text))
    return [*field_errors, *_claims(resources.get("claims") or [], parts.claims, f"{path}.claims")]


def _resource(name: str, amount: Any, path: str) -> list[FieldError]:
    field_errors = errors.invalid_name(path, name, names.qualified_name)
    if not field_errors and "/" not in name and name not in _STANDARD and "hugepages-" not in name:
        field_errors += [errors.invalid_value(path, name, text) for text in _NOT_STANDARD]
    if number(amount) < 0:
        field_errors.append(errors.invalid_value(path, amount, AT_LEAST_ZERO))
    return field_errors


def _claims(claims: list[Object], known: list[str], base: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for index, claim in enumerate(claims):
        path = f"{base}[{index}]"
        name, request = claim.get("name", ""), claim.get("request", "")
        if not name:
            field_errors.append(errors.required(path))
        elif (name, request) in seen or (name, "") in seen:
            field_errors.append(errors.duplicate(path, f"{name}/{request}" if request else name))
        elif name not in known:
            field_errors.append(_unknown_claim(path, name, known))
        seen.add((name, request))
    return field_errors


def _unknown_claim(path: str, name: str, known: list[str]) -> FieldError:
    where = "must be one of the names in pod.spec.resourceClaims"
    known = sorted(claim for claim in known if claim)
    text = f"{where}: {', '.join(known)}" if known else f"{where} which is empty"
    return FieldError("FieldValueNotFound", path, f"Not found: {errors.quoted(name)}: {text}")
