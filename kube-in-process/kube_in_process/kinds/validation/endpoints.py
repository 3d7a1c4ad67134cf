"""Validation of Endpoints and EndpointSlices."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.validation.addresses import (
    canonical_ip_errors,
    endpoint_errors,
    ip_errors,
    is_v6,
)
from kube_in_process.kinds.validation.amounts import port_number
from kube_in_process.kinds.validation.ordinary import immutable
from kube_in_process.objects import Object
from kube_in_process.text import names

PROTOCOLS = ("SCTP", "TCP", "UDP")
_TYPES = ("FQDN", "IPv4", "IPv6")
_MOST_ENDPOINTS, _MOST_ADDRESSES, _MOST_PORTS, _MOST_HINTS = 1000, 100, 20000, 8


def endpoints_rules(obj: Object) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for index, subset in enumerate(obj.get("subsets") or []):
        field_errors += _subset(subset, f"subsets[{index}]")
    return field_errors


def endpoints_changes(new: Object, old: Object) -> list[FieldError]:
    """What did not change is not checked again."""
    return [] if new.get("subsets") == old.get("subsets") else endpoints_rules(new)


def _subset(subset: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    lists = ("addresses", "notReadyAddresses")
    if not any(subset.get(key) for key in lists):
        field_errors.append(
            errors.required(path, "must specify `addresses` or `notReadyAddresses`")
        )
    for key in lists:
        for index, address in enumerate(subset.get(key) or []):
            field_errors += _address(address, f"{path}.{key}[{index}]")
    ports = subset.get("ports") or []
    for index, port in enumerate(ports):
        field_errors += _port(port, f"{path}.ports[{index}]", named=len(ports) > 1)
    return field_errors


def _address(address: Object, path: str) -> list[FieldError]:
    ip = address.get("ip") or ""
    field_errors = ip_errors(ip, f"{path}.ip")
    if address.get("hostname"):
        field_errors += errors.invalid_name(f"{path}.hostname", address["hostname"], names.label)
    if address.get("nodeName") is not None:
        field_errors += errors.invalid_name(
            f"{path}.nodeName", address["nodeName"], names.subdomain
        )
    return [*field_errors, *endpoint_errors(ip, f"{path}.ip")]


def _port(port: Object, path: str, *, named: bool) -> list[FieldError]:
    name = port.get("name") or ""
    field_errors: list[FieldError] = []
    if named and not name:
        field_errors.append(errors.required(f"{path}.name"))
    elif name:
        field_errors += errors.invalid_name(f"{path}.name", name, names.label)
    field_errors += port_number(port.get("port") or 0, f"{path}.port")
    field_errors += errors.invalid_choice(f"{path}.protocol", port.get("protocol") or "", PROTOCOLS)
    return [*field_errors, *app_protocol(port, path)]


def app_protocol(port: Object, path: str) -> list[FieldError]:
    protocol = port.get("appProtocol")
    if protocol is None:
        return []
    return errors.invalid_name(f"{path}.appProtocol", protocol, names.qualified_name)


def slice_rules(obj: Object) -> list[FieldError]:
    return [*_slice_head(obj), *_slice_endpoints(obj)]


def slice_changes(new: Object, old: Object) -> list[FieldError]:
    """Endpoints that did not change are not checked again. The type of addresses is fixed."""
    field_errors = _slice_head(new)
    if new.get("endpoints") != old.get("endpoints"):
        field_errors += _slice_endpoints(new)
    return [*field_errors, *immutable(new, old, ("addressType",))]


def _slice_head(obj: Object) -> list[FieldError]:
    field_errors = errors.invalid_choice("addressType", obj.get("addressType") or "", _TYPES)
    ports = obj.get("ports") or []
    if len(ports) > _MOST_PORTS:
        return [*field_errors, errors.too_many("ports", len(ports), _MOST_PORTS)]
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            field_errors += errors.invalid_name(f"{path}.name", name, names.label)
        if name in seen:
            field_errors.append(errors.duplicate(f"{path}.name", name))
        seen.add(name)
        protocol = port.get("protocol") or ""
        if protocol not in PROTOCOLS:
            field_errors.append(errors.not_supported(f"{path}.protocol", protocol, PROTOCOLS))
        field_errors += app_protocol(port, path)
    return field_errors


def _slice_endpoints(obj: Object) -> list[FieldError]:
    endpoints = obj.get("endpoints") or []
    if len(endpoints) > _MOST_ENDPOINTS:
        return [errors.too_many("endpoints", len(endpoints), _MOST_ENDPOINTS)]
    field_errors: list[FieldError] = []
    for index, endpoint in enumerate(endpoints):
        path = f"endpoints[{index}]"
        field_errors += _endpoint_addresses(
            endpoint, obj.get("addressType") or "", f"{path}.addresses"
        )
        if endpoint.get("nodeName") is not None:
            field_errors += errors.invalid_name(
                f"{path}.nodeName", endpoint["nodeName"], names.subdomain
            )
        if endpoint.get("hostname") is not None:
            field_errors += errors.invalid_name(
                f"{path}.hostname", endpoint["hostname"], names.label
            )
        field_errors += _hints(endpoint.get("hints") or {}, f"{path}.hints")
    return field_errors


def _endpoint_addresses(endpoint: Object, kind: str, path: str) -> list[FieldError]:
    addresses = endpoint.get("addresses") or []
    field_errors: list[FieldError] = []
    if not addresses:
        field_errors.append(errors.required(path, "must contain at least 1 address"))
    elif len(addresses) > _MOST_ADDRESSES:
        field_errors.append(errors.too_many(path, len(addresses), _MOST_ADDRESSES))
    for index, address in enumerate(addresses):
        place = f"{path}[{index}]"
        if kind == "FQDN":
            field_errors += _domain_name(address, place)
        elif kind in _IP and (wrong := _IP[kind](address, place)):
            field_errors += wrong
        elif kind in _IP:
            if is_v6(address) != (kind == "IPv6"):
                field_errors.append(
                    errors.invalid_value(path, address, f"must be an {kind} address")
                )
            field_errors += endpoint_errors(address, place)
    return field_errors


_IP = {"IPv4": ip_errors, "IPv6": canonical_ip_errors}


def _domain_name(name: str, path: str) -> list[FieldError]:
    if not name:
        return [errors.required(path)]
    name = name.removesuffix(".")
    if wrong := names.subdomain(name):
        return [errors.invalid_value(path, name, ",".join(wrong))]
    if "." not in name:
        text = "should be a domain with at least two segments separated by dots"
        return [errors.invalid_value(path, name, text)]
    return []


def _hints(hints: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for key, rule in (("forZones", names.label_value), ("forNodes", names.subdomain)):
        given = [hint.get("name") or "" for hint in hints.get(key) or []]
        if len(given) > _MOST_HINTS:
            return [*field_errors, errors.too_many(f"{path}.{key}", len(given), _MOST_HINTS)]
        for index, name in enumerate(given):
            where = f"{path}.{key}[{index}].name"
            if name in given[:index]:
                field_errors.append(errors.duplicate(where, name))
            field_errors += errors.invalid_name(where, name, rule)
    return field_errors
