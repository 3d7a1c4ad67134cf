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
    found: list[FieldError] = []
    for index, subset in enumerate(obj.get("subsets") or []):
        found += _subset(subset, f"subsets[{index}]")
    return found


def endpoints_changes(new: Object, old: Object) -> list[FieldError]:
    """What did not change is not checked again."""
    return [] if new.get("subsets") == old.get("subsets") else endpoints_rules(new)


def _subset(subset: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    lists = ("addresses", "notReadyAddresses")
    if not any(subset.get(key) for key in lists):
        found.append(errors.required(path, "must specify `addresses` or `notReadyAddresses`"))
    for key in lists:
        for index, address in enumerate(subset.get(key) or []):
            found += _address(address, f"{path}.{key}[{index}]")
    ports = subset.get("ports") or []
    for index, port in enumerate(ports):
        found += _port(port, f"{path}.ports[{index}]", named=len(ports) > 1)
    return found


def _address(address: Object, path: str) -> list[FieldError]:
    ip = address.get("ip") or ""
    found = ip_errors(ip, f"{path}.ip")
    if address.get("hostname"):
        found += errors.invalid_name(f"{path}.hostname", address["hostname"], names.label)
    if address.get("nodeName") is not None:
        found += errors.invalid_name(f"{path}.nodeName", address["nodeName"], names.subdomain)
    return [*found, *endpoint_errors(ip, f"{path}.ip")]


def _port(port: Object, path: str, *, named: bool) -> list[FieldError]:
    name = port.get("name") or ""
    found: list[FieldError] = []
    if named and not name:
        found.append(errors.required(f"{path}.name"))
    elif name:
        found += errors.invalid_name(f"{path}.name", name, names.label)
    found += port_number(port.get("port") or 0, f"{path}.port")
    found += errors.invalid_choice(f"{path}.protocol", port.get("protocol") or "", PROTOCOLS)
    return [*found, *app_protocol(port, path)]


def app_protocol(port: Object, path: str) -> list[FieldError]:
    protocol = port.get("appProtocol")
    if protocol is None:
        return []
    return errors.invalid_name(f"{path}.appProtocol", protocol, names.qualified_name)


def slice_rules(obj: Object) -> list[FieldError]:
    return [*_slice_head(obj), *_slice_endpoints(obj)]


def slice_changes(new: Object, old: Object) -> list[FieldError]:
    """Endpoints that did not change are not checked again. The type of addresses is fixed."""
    found = _slice_head(new)
    if new.get("endpoints") != old.get("endpoints"):
        found += _slice_endpoints(new)
    return [*found, *immutable(new, old, ("addressType",))]


def _slice_head(obj: Object) -> list[FieldError]:
    found = errors.invalid_choice("addressType", obj.get("addressType") or "", _TYPES)
    ports = obj.get("ports") or []
    if len(ports) > _MOST_PORTS:
        return [*found, errors.too_many("ports", len(ports), _MOST_PORTS)]
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"ports[{index}]", port.get("name") or ""
        if name:
            found += errors.invalid_name(f"{path}.name", name, names.label)
        if name in seen:
            found.append(errors.duplicate(f"{path}.name", name))
        seen.add(name)
        protocol = port.get("protocol") or ""
        if protocol not in PROTOCOLS:
            found.append(errors.not_supported(f"{path}.protocol", protocol, PROTOCOLS))
        found += app_protocol(port, path)
    return found


def _slice_endpoints(obj: Object) -> list[FieldError]:
    endpoints = obj.get("endpoints") or []
    if len(endpoints) > _MOST_ENDPOINTS:
        return [errors.too_many("endpoints", len(endpoints), _MOST_ENDPOINTS)]
    found: list[FieldError] = []
    for index, endpoint in enumerate(endpoints):
        path = f"endpoints[{index}]"
        found += _endpoint_addresses(endpoint, obj.get("addressType") or "", f"{path}.addresses")
        if endpoint.get("nodeName") is not None:
            found += errors.invalid_name(f"{path}.nodeName", endpoint["nodeName"], names.subdomain)
        if endpoint.get("hostname") is not None:
            found += errors.invalid_name(f"{path}.hostname", endpoint["hostname"], names.label)
        found += _hints(endpoint.get("hints") or {}, f"{path}.hints")
    return found


def _endpoint_addresses(endpoint: Object, kind: str, path: str) -> list[FieldError]:
    addresses = endpoint.get("addresses") or []
    found: list[FieldError] = []
    if not addresses:
        found.append(errors.required(path, "must contain at least 1 address"))
    elif len(addresses) > _MOST_ADDRESSES:
        found.append(errors.too_many(path, len(addresses), _MOST_ADDRESSES))
    for index, address in enumerate(addresses):
        place = f"{path}[{index}]"
        if kind == "FQDN":
            found += _domain_name(address, place)
        elif kind in _IP and (wrong := _IP[kind](address, place)):
            found += wrong
        elif kind in _IP:
            if is_v6(address) != (kind == "IPv6"):
                found.append(errors.invalid_value(path, address, f"must be an {kind} address"))
            found += endpoint_errors(address, place)
    return found


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
    found: list[FieldError] = []
    for key, rule in (("forZones", names.label_value), ("forNodes", names.subdomain)):
        given = [each.get("name") or "" for each in hints.get(key) or []]
        if len(given) > _MOST_HINTS:
            return [*found, errors.too_many(f"{path}.{key}", len(given), _MOST_HINTS)]
        for index, name in enumerate(given):
            where = f"{path}.{key}[{index}].name"
            if name in given[:index]:
                found.append(errors.duplicate(where, name))
            found += errors.invalid_name(where, name, rule)
    return found
