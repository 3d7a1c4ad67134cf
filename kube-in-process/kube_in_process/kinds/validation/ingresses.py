"""Validation of Ingresses."""

from __future__ import annotations

import re

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.validation.addresses import address_of, ip_errors
from kube_in_process.kinds.validation.amounts import port_number
from kube_in_process.kinds.validation.networking import reference
from kube_in_process.kinds.validation.port_names import port_name
from kube_in_process.objects import Object
from kube_in_process.text import names

_CLASS = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")
_SEQUENCES = ("//", "/./", "/../", "%2f", "%2F")
_SUFFIXES = ("/..", "/.")
_NO_ADDRESS = "must be a DNS name, not an IP address"
_WILDCARD = r"\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WILDCARD_TEXT = (
    "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which "
    "must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric "
    f"character (e.g. '*.example.com', regex used for validation is '{_WILDCARD}')"
)


def ingress_rules(obj: Object) -> list[FieldError]:
    """The errors of a new Ingress."""
    field_errors = spec_rules(obj)
    given = (obj["metadata"].get("annotations") or {}).get(_CLASS)
    wanted = obj["spec"].get("ingressClassName")
    if given is not None and wanted is not None and given != wanted:
        text = "must match `ingressClassName` when both are specified"
        field_errors.append(errors.invalid_value(f"annotations.{_CLASS}", given, text))
    return field_errors


def ingress_changes(new: Object, old: Object) -> list[FieldError]:
    return spec_rules(new)


def spec_rules(obj: Object) -> list[FieldError]:
    spec = obj["spec"]
    backend, rules = spec.get("defaultBackend"), spec.get("rules") or []
    field_errors: list[FieldError] = []
    if not rules and backend is None:
        text = "either `defaultBackend` or `rules` must be specified"
        field_errors.append(errors.invalid_value("spec", None, text))
    if backend is not None:
        field_errors += _backend(backend, "spec.defaultBackend")
    for index, rule in enumerate(rules):
        field_errors += _rule(rule, f"spec.rules[{index}]")
    for index, tls in enumerate(spec.get("tls") or []):
        field_errors += _tls(tls, f"spec.tls[{index}]")
    if spec.get("ingressClassName") is not None:
        path = "spec.ingressClassName"
        field_errors += errors.invalid_name(path, spec["ingressClassName"], names.subdomain)
    return field_errors


def _host(host: str, path: str) -> list[FieldError]:
    if "*" not in host:
        return errors.invalid_name(path, host, names.subdomain)
    field_errors = []
    if len(host) > 253:
        field_errors.append(errors.invalid_value(path, host, "must be no more than 253 characters"))
    if not re.fullmatch(_WILDCARD, host):
        field_errors.append(errors.invalid_value(path, host, _WILDCARD_TEXT))
    return field_errors


def _rule(rule: Object, path: str) -> list[FieldError]:
    host, http = rule.get("host") or "", rule.get("http")
    field_errors: list[FieldError] = []
    if host and address_of(host) is not None:
        field_errors.append(errors.invalid_value(f"{path}.host", host, _NO_ADDRESS))
    if host:
        field_errors += _host(host, f"{path}.host")
    if http is None:
        return field_errors
    paths = http.get("paths") or []
    if not paths:
        field_errors.append(errors.required(f"{path}.http.paths"))
    for index, http_path in enumerate(paths):
        field_errors += _path(http_path, f"{path}.http.paths[{index}]")
    return field_errors


def _path(path: Object, place: str) -> list[FieldError]:
    kind, value, where = path.get("pathType"), path.get("path") or "", f"{place}.path"
    if kind is None:
        return [errors.required(f"{place}.pathType", "pathType must be specified")]
    field_errors: list[FieldError] = []
    if kind not in _PATH_TYPES:
        field_errors.append(errors.not_supported(f"{place}.pathType", kind, _PATH_TYPES))
    elif not value.startswith("/") and (value or kind != "ImplementationSpecific"):
        field_errors.append(errors.invalid_value(where, value, "must be an absolute path"))
    if kind in ("Exact", "Prefix"):
        texts = [f"must not contain '{sequence}'" for sequence in _SEQUENCES if sequence in value]
        texts += [f"cannot end with '{suffix}'" for suffix in _SUFFIXES if value.endswith(suffix)]
        field_errors += [errors.invalid_value(where, value, text) for text in texts]
    return [*field_errors, *_backend(path.get("backend") or {}, f"{place}.backend")]


def _backend(backend: Object, path: str) -> list[FieldError]:
    service, resource = backend.get("service"), backend.get("resource")
    if service is not None and resource is not None:
        text = "cannot set both resource and service backends"
        return [errors.invalid_value(path, "", text)]
    if resource is not None:
        return reference(resource, f"{path}.resource")
    if service is None:
        return [errors.invalid_value(path, "", "resource or service backend is required")]
    name, where = service.get("name") or "", f"{path}.service.name"
    field_errors = (
        errors.invalid_name(where, name, names.label) if name else [errors.required(where)]
    )
    port = service.get("port") or {}
    if port.get("name") and port.get("number"):
        text = "cannot set both port name & port number"
        return [*field_errors, errors.invalid_value(path, "", text)]
    if port.get("name"):
        where = f"{path}.service.port.name"
        return [*field_errors, *errors.invalid_name(where, port["name"], port_name)]
    if port.get("number"):
        return [*field_errors, *port_number(port["number"], f"{path}.service.port.number")]
    return [*field_errors, errors.required(path, "port name or number is required")]


def _tls(tls: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for index, host in enumerate(tls.get("hosts") or []):
        field_errors += _host(host, f"{path}.hosts[{index}]")
    if tls.get("secretName"):
        field_errors += errors.invalid_name(
            f"{path}.secretName", tls["secretName"], names.subdomain
        )
    return field_errors


def ingress_status_rules(obj: Object) -> list[FieldError]:
    """The errors of the addresses in a status."""
    field_errors: list[FieldError] = []
    balancer = obj["status"].get("loadBalancer") or {}
    for index, ingress in enumerate(balancer.get("ingress") or []):
        path, host = f"status.loadBalancer.ingress[{index}]", ingress.get("hostname") or ""
        if ingress.get("ip"):
            field_errors += ip_errors(ingress["ip"], f"{path}.ip")
        if host:
            field_errors += errors.invalid_name(f"{path}.hostname", host, names.subdomain)
        if host and address_of(host) is not None:
            field_errors.append(errors.invalid_value(f"{path}.hostname", host, _NO_ADDRESS))
    return field_errors
