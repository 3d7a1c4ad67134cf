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
    found: list[FieldError] = []
    if len(controller) > _LONGEST_CONTROLLER:
        found.append(errors.too_long(path, _LONGEST_CONTROLLER))
    found += _prefixed_path(controller, path)
    if spec.get("parameters") is not None:
        found += _parameters(spec["parameters"], "spec.parameters")
    return found


def class_changes(new: Object, old: Object) -> list[FieldError]:
    return [*immutable(new["spec"], old["spec"], ("controller",), "spec."), *class_rules(new)]


def _prefixed_path(value: str, path: str) -> list[FieldError]:
    if not value:
        return [errors.required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        text = 'must be a domain-prefixed path (such as "acme.io/foo")'
        return [errors.invalid_value(path, value, text)]
    found = errors.invalid_name(path, host, names.subdomain)
    if not re.fullmatch(_HTTP_PATH, rest):
        text = f"Invalid path (regex used for validation is '{_HTTP_PATH}')"
        found.append(errors.invalid_value(path, rest, text))
    return found


def reference(target: Object, path: str) -> list[FieldError]:
    """The errors of apiGroup, kind and name of a reference to an object."""
    found: list[FieldError] = []
    if target.get("apiGroup") is not None:
        found += errors.invalid_name(f"{path}.apiGroup", target["apiGroup"], names.subdomain)
    for key in ("kind", "name"):
        found += _segment(target.get(key) or "", f"{path}.{key}")
    return found


def _segment(value: str, path: str) -> list[FieldError]:
    if not value:
        return [errors.required(path)]
    return errors.invalid_name(path, value, names.path_segment)


def _parameters(parameters: Object, path: str) -> list[FieldError]:
    found = reference(parameters, path)
    scope, space = parameters.get("scope") or "", parameters.get("namespace")
    where = f"{path}.namespace"
    if scope not in _SCOPES:
        return [*found, errors.not_supported(f"{path}.scope", scope, _SCOPES)]
    if scope == "Cluster" and space is not None:
        return [*found, errors.forbidden_field(where, "`parameters.scope` is set to 'Cluster'")]
    if scope == "Namespace" and space is None:
        return [*found, errors.required(where, "`parameters.scope` is set to 'Namespace'")]
    if scope == "Namespace":
        found += errors.invalid_name(where, str(space), names.namespace_name)
    return found


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
    found = label_selector(spec.get("podSelector") or {}, "spec.podSelector")
    for direction, side in (("ingress", "from"), ("egress", "to")):
        for index, rule in enumerate(spec.get(direction) or []):
            path = f"spec.{direction}[{index}]"
            for at, port in enumerate(rule.get("ports") or []):
                found += _policy_port(port, f"{path}.ports[{at}]")
            for at, peer in enumerate(rule.get(side) or []):
                found += _peer(peer or {}, f"{path}.{side}[{at}]", known)
    types = spec.get("policyTypes") or []
    if len(types) > len(_POLICY_TYPES):
        text = "may not specify more than two policyTypes"
        return [*found, errors.invalid_value("spec.policyTypes", types, text)]
    found += [
        errors.not_supported(f"spec.policyTypes[{index}]", each, _POLICY_TYPES)
        for index, each in enumerate(types)
        if each not in _POLICY_TYPES
    ]
    return found


def _policy_port(port: Object, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    protocol, number, end = port.get("protocol"), port.get("port"), port.get("endPort")
    where = f"{path}.endPort"
    if protocol is not None and protocol not in _PROTOCOLS:
        found.append(errors.not_supported(f"{path}.protocol", protocol, _PROTOCOLS))
    if isinstance(number, str):
        if end is not None:
            text = "may not be specified when `port` is non-numeric"
            found.append(errors.invalid_value(where, end, text))
        return [*found, *errors.invalid_name(f"{path}.port", number, port_name)]
    if number is None:
        text = "may not be specified when `port` is not specified"
        return [*found, *([] if end is None else [errors.invalid_value(where, end, text)])]
    found += port_number(number, f"{path}.port")
    if end is not None:
        if end < number:
            text = "must be greater than or equal to `port`"
            found.append(errors.invalid_value(where, number, text))
        found += port_number(end, where)
    return found


def _peer(peer: Object, path: str, known: frozenset[str]) -> list[FieldError]:
    found: list[FieldError] = []
    selectors = [key for key in ("podSelector", "namespaceSelector") if peer.get(key) is not None]
    for key in selectors:
        found += label_selector(peer[key], f"{path}.{key}")
    block = peer.get("ipBlock")
    if block is not None:
        found += _block(block, f"{path}.ipBlock", known)
    if block is None and not selectors:
        found.append(errors.required(path, "must specify a peer"))
    if block is not None and selectors:
        text = "may not specify both ipBlock and another peer"
        found.append(errors.forbidden_field(path, text))
    return found


def _block(block: Object, path: str, known: frozenset[str]) -> list[FieldError]:
    cidr = block.get("cidr") or ""
    if not cidr:
        return [errors.required(f"{path}.cidr")]
    found = cidr_errors(cidr, f"{path}.cidr", known)
    whole = network_of(cidr)
    if whole is None:
        return found
    for index, each in enumerate(block.get("except") or []):
        place, part = f"{path}.except[{index}]", network_of(each)
        found += cidr_errors(each, place, known)
        if part is not None and not _strictly_within(part, whole):
            text = "must be a strict subset of `cidr`"
            found.append(errors.invalid_value(place, each, text))
    return found


def _strictly_within(part: Any, whole: Network) -> bool:
    return bool(part.version == whole.version and part != whole and part.subnet_of(whole))


def address_rules(obj: Object) -> list[FieldError]:
    """The errors of an IPAddress, whose name is checked as metadata."""
    parent = (obj.get("spec") or {}).get("parentRef")
    path = "spec.parentRef"
    if parent is None:
        return [errors.required(path)]
    found: list[FieldError] = []
    if parent.get("group"):
        found += errors.invalid_name(f"{path}.group", parent["group"], names.subdomain)
    for key in ("resource", "name"):
        found += _segment(parent.get(key) or "", f"{path}.{key}")
    if parent.get("namespace"):
        found += errors.invalid_name(f"{path}.namespace", parent["namespace"], names.path_segment)
    return found


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
    found: list[FieldError] = []
    for index, cidr in enumerate(cidrs):
        found += canonical_cidr_errors(cidr, f"{path}[{index}]")
    networks = [each for each in map(network_of, cidrs) if each is not None]
    if len(networks) == 2 and networks[0].version == networks[1].version:
        found.append(errors.invalid_value(path, cidrs, _FAMILIES))
    return found


def service_cidr_changes(new: Object, old: Object) -> list[FieldError]:
    """A network may be added to the one that is there. Nothing else may change."""
    after, before = new["spec"].get("cidrs") or [], old["spec"].get("cidrs") or []
    added = (len(before), len(after)) == (1, 2)
    if len(after) != len(before) and not added:
        return [errors.invalid_value("spec.cidrs", after, "field is immutable")]
    found = [
        errors.invalid_value(f"spec.cidrs[{index}]", after[index], "field is immutable")
        for index, cidr in enumerate(before)
        if after[index] != cidr
    ]
    return [*found, *(service_cidr_rules(new) if added else [])]
