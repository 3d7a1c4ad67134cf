"""Validation of IngressClasses, NetworkPolicies, IPAddresses and ServiceCIDRs."""

from __future__ import annotations

import re
from typing import Any

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.validation.addresses import (
    Network,
    canonical_cidr_errors,
    cidr_errors,
    network_of,
)
from kube_in_process.kinds.validation.amounts import port_number
from kube_in_process.kinds.validation.go_text import STRUCTS, go_text
from kube_in_process.kinds.validation.label_selectors import label_selector
from kube_in_process.kinds.validation.ordinary import immutable
from kube_in_process.kinds.validation.port_names import port_name
from kube_in_process.objects import Object
from kube_in_process.text import names

_LONGEST_CONTROLLER = 250
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"
_SCOPES = ("Cluster", "Namespace")
_POLICY_TYPES = ("Ingress", "Egress")
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_FAMILIES = (
    "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
)


def class_rules(obj: Object) -> list[FieldError]:
    """The errors of an IngressClass."""
    spec = obj.get("spec") or {}
    controller, path = spec.get("controller") or "", "spec.controller"
    field_errors: list[FieldError] = []
    if len(controller) > _LONGEST_CONTROLLER:
        field_errors.append(errors.too_long(path, _LONGEST_CONTROLLER))
    field_errors += _prefixed_path(controller, path)
    if spec.get("parameters") is not None:
        field_errors += _parameters(spec["parameters"], "spec.parameters")
    return field_errors


def class_changes(new: Object, old: Object) -> list[FieldError]:
    return [*immutable(new["spec"], old["spec"], ("controller",), "spec."), *class_rules(new)]


def _prefixed_path(value: str, path: str) -> list[FieldError]:
    if not value:
        return [errors.required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return [errors.invalid_value(path, value, text)]
    field_errors = errors.invalid_name(path, host, names.subdomain)
    if not re.fullmatch(_HTTP_PATH, rest):
        text = f"Invalid path (regex used for validation is '{_HTTP_PATH}')"
        field_errors.append(errors.invalid_value(path, rest, text))
    return field_errors


def reference(target: Object, path: str) -> list[FieldError]:
    """The errors of apiGroup, kind and name of a reference to an object."""
    field_errors: list[FieldError] = []
    if target.get("apiGroup") is not None:
        field_errors += errors.invalid_name(f"{path}.apiGroup", target["apiGroup"], names.subdomain)
    for key in ("kind", "name"):
        field_errors += _segment(target.get(key) or "", f"{path}.{key}")
    return field_errors


def _segment(value: str, path: str) -> list[FieldError]:
    if not value:
        return [errors.required(path)]
    return errors.invalid_name(path, value, names.path_segment)


def _parameters(parameters: Object, path: str) -> list[FieldError]:
    field_errors = reference(parameters, path)
    scope, space = parameters.get("scope") or "", parameters.get("namespace")
    where = f"{path}.namespace"
    if scope not in _SCOPES:
        return [*field_errors, errors.not_supported(f"{path}.scope", scope, _SCOPES)]
    if scope == "Cluster" and space is not None:
        return [
            *field_errors,
            errors.forbidden_field(where, "`parameters.scope` is set to 'Cluster'"),
        ]
    if scope == "Namespace" and space is None:
        return [*field_errors, errors.required(where, "`parameters.scope` is set to 'Namespace'")]
    if scope == "Namespace":
        field_errors += errors.invalid_name(where, str(space), names.namespace_name)
    return field_errors


def policy_rules(obj: Object) -> list[FieldError]:
    """The errors of a new NetworkPolicy."""
    return _policy(obj["spec"], frozenset())


def policy_changes(new: Object, old: Object) -> list[FieldError]:
    """Blocks of addresses that the policy had are not checked again."""
    known: set[str] = set()
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for rule in old["spec"].get(direction) or []:
            for peer in rule.get(side) or []:
                block = peer.get("ipBlock") or {}
                known |= {block.get("cidr") or "", *(block.get("except") or [])}
    return _policy(new["spec"], frozenset(known))


def _policy(spec: Object, known: frozenset[str]) -> list[FieldError]:
    field_errors = label_selector(spec.get("podSelector") or {}, "spec.podSelector")
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or []):
            path = f"spec.{direction}[{index}]"
            for at, port in enumerate(rule.get("ports") or []):
                field_errors += _policy_port(port, f"{path}.ports[{at}]")
            for at, peer in enumerate(rule.get(side) or []):
                field_errors += _peer(peer or {}, f"{path}.{side}[{at}]", known)
    types = spec.get("policyTypes") or []
    if len(types) > len(_POLICY_TYPES):
        text = "may not specify more than two policyTypes"
        return [*field_errors, errors.invalid_value("spec.policyTypes", types, text)]
    field_errors += [
        errors.not_supported(f"spec.policyTypes[{index}]", policy_type, _POLICY_TYPES)
        for index, policy_type in enumerate(types)
        if policy_type not in _POLICY_TYPES
    ]
    return field_errors


def _policy_port(port: Object, path: str) -> list[FieldError]:
    field_errors: list[FieldError] = []
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    where = f"{path}.endPort"
    if protocol is not None and protocol not in _PROTOCOLS:
        field_errors.append(errors.not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    if isinstance(number, str):
        if end is not None:
            text = "may not be specified when `port` is non-numeric"
            field_errors.append(errors.invalid_value(where, end, text))
        return [*field_errors, *errors.invalid_name(f"{path}.port", number, port_name)]
    if number is None:
        text = "may not be specified when `port` is not specified"
        return [*field_errors, *([] if end is None else [errors.invalid_value(where, end, text)])]
    field_errors += port_number(number, f"{path}.port")
    if end is not None:
        if end < number:
            text = "must be greater than or equal to `port`"
            field_errors.append(errors.invalid_value(where, number, text))
        field_errors += port_number(end, where)
    return field_errors


def _peer(peer: Object, path: str, known: frozenset[str]) -> list[FieldError]:
    field_errors: list[FieldError] = []
    selectors = [key for key in ("podSelector", "namespaceSelector") if peer.get(key) is not None]
    for key in selectors:
        field_errors += label_selector(peer[key], f"{path}.{key}")
    block = peer.get("ipBlock")
    if block is not None:
        field_errors += _block(block, f"{path}.ipBlock", known)
    if block is None and not selectors:
        field_errors.append(errors.required(path, "must specify a peer"))
    if block is not None and selectors:
        text = "may not specify both ipBlock and another peer"
        field_errors.append(errors.forbidden_field(path, text))
    return field_errors


def _block(block: Object, path: str, known: frozenset[str]) -> list[FieldError]:
    cidr = block.get("cidr") or ""
    if not cidr:
        return [errors.required(f"{path}.cidr")]
    field_errors = cidr_errors(cidr, f"{path}.cidr", known)
    whole = network_of(cidr)
    if whole is None:
        return field_errors
    for index, exception in enumerate(block.get("except") or []):
        place, part = f"{path}.except[{index}]", network_of(exception)
        field_errors += cidr_errors(exception, place, known)
        if part is not None and not _strictly_within(part, whole):
            text = "must be a strict subset of `cidr`"
            field_errors.append(errors.invalid_value(place, exception, text))
    return field_errors


def _strictly_within(part: Any, whole: Network) -> bool:
    return bool(part.version == whole.version and part != whole and part.subnet_of(whole))


def address_rules(obj: Object) -> list[FieldError]:
    """The errors of an IPAddress, whose name is checked as metadata."""
    parent = (obj.get("spec") or {}).get("parentRef")
    path = "spec.parentRef"
    if parent is None:
        return [errors.required(path)]
    field_errors: list[FieldError] = []
    if parent.get("group"):
        field_errors += errors.invalid_name(f"{path}.group", parent["group"], names.subdomain)
    for key in ("resource", "name"):
        field_errors += _segment(parent.get(key) or "", f"{path}.{key}")
    if parent.get("namespace"):
        field_errors += errors.invalid_name(
            f"{path}.namespace", parent["namespace"], names.path_segment
        )
    return field_errors


def address_changes(new: Object, old: Object) -> list[FieldError]:
    if new["spec"].get("parentRef") == old["spec"].get("parentRef"):
        return []
    shown = go_text(new["spec"].get("parentRef"), STRUCTS["parent_reference"])
    return [errors.invalid_text("spec.parentRef", shown, "field is immutable")]


def service_cidr_rules(obj: Object) -> list[FieldError]:
    """The errors of a ServiceCIDR: one network, or one of each family."""
    cidrs, path = (obj.get("spec") or {}).get("cidrs") or [], "spec.cidrs"
    if not cidrs:
        return [errors.required(path, "at least one CIDR required")]
    if len(cidrs) > 2:
        shown = errors.quoted({"CIDRs": cidrs})
        return [errors.invalid_text(path, shown, "may only hold up to 2 values")]
    field_errors: list[FieldError] = []
    for index, cidr in enumerate(cidrs):
        field_errors += canonical_cidr_errors(cidr, f"{path}[{index}]")
    networks = [network for network in map(network_of, cidrs) if network is not None]
    if len(networks) == 2 and networks[0].version == networks[1].version:
        field_errors.append(errors.invalid_value(path, cidrs, _FAMILIES))
    return field_errors


def service_cidr_changes(new: Object, old: Object) -> list[FieldError]:
    """A network may be added to the one that is there. Nothing else may change."""
    after, before = new["spec"].get("cidrs") or [], old["spec"].get("cidrs") or []
    added = (len(before), len(after)) == (1, 2)
    if len(after) != len(before) and not added:
        return [errors.invalid_value("spec.cidrs", after, "field is immutable")]
    field_errors = [
        errors.invalid_value(f"spec.cidrs[{index}]", after[index], "field is immutable")
        for index, cidr in enumerate(before)
        if after[index] != cidr
    ]
    return [*field_errors, *(service_cidr_rules(new) if added else [])]
