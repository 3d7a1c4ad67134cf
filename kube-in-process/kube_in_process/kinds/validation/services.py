"""Services: their defaults, and what the server keeps and gives at a write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.defaults.network import default_service, is_external
from kube_in_process.kinds.service_addresses import Taken, allocate
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.kinds.validation.addresses import is_v6
from kube_in_process.kinds.validation.service_rules import (
    address_errors,
    is_headless,
    service_changes,
    service_errors,
    service_status_errors,
    stack_errors,
)
from kube_in_process.objects import Object
from kube_in_process.options import Features
from kube_in_process.text import names

_WITH_NODE_PORTS = ("LoadBalancer", "NodePort")
RELAXED_NAMES = (1, 36)
"""From this version on, the name of a Service may begin with a digit."""


class ServiceStrategy(Strategy):
    """A Service gets addresses and ports, but nothing listens there."""

    name_check = staticmethod(names.label)
    revalidates = False
    status_keeps = ()
    selectable_fields: ClassVar[Mapping[str, str]] = {"spec.clusterIP": "", "spec.type": ""}

    def default(self, obj: Object, features: Features) -> None:
        default_service(obj)

    def prepare_create(self, obj: Object, context: WriteContext) -> None:
        obj["status"] = {"loadBalancer": {}}
        spec = obj["spec"]
        align_addresses(spec, {})
        set_families(spec, {})
        _allocate(obj, {}, context)

    def prepare_update(self, new: Object, old: Object, context: WriteContext) -> None:
        super().prepare_update(new, old, context)
        if context.subresource == "status":
            return
        spec, before = new["spec"], old["spec"]
        if spec["type"] != "LoadBalancer":
            new["status"] = {"loadBalancer": {}}
        drop_what_the_type_lacks(spec, before)
        keep_given(spec, before)
        align_addresses(spec, before)
        set_families(spec, before)
        _allocate(new, before, context)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        spec = obj["spec"]
        field_errors = first_errors(spec, {}) or service_errors(spec, {})
        name = obj["metadata"].get("name") or ""
        if context.features.version < RELAXED_NAMES and not names.label(name):
            field_errors = [
                *errors.invalid_name("metadata.name", name, names.label_1035),
                *field_errors,
            ]
        return field_errors

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "status":
            return service_status_errors(new, old)
        spec, before = new["spec"], old["spec"]
        return first_errors(spec, before) or [
            *service_changes(spec, before),
            *service_errors(spec, before),
        ]


def first_errors(spec: Object, before: Object) -> list[FieldError]:
    """The errors of addresses, which the server gives before it checks the rest."""
    return address_errors(spec, before) or stack_errors(spec)


def _allocate(obj: Object, before: Object, context: WriteContext) -> None:
    """Give addresses and ports, which the server does before it validates the rest."""
    if first_errors(obj["spec"], before):
        return
    name, namespace = obj["metadata"].get("name", ""), obj["metadata"].get("namespace", "")
    others = [
        service
        for service in context.store.list("", "services")
        if (service["metadata"]["namespace"], service["metadata"]["name"]) != (namespace, name)
    ]
    field_errors = allocate(obj["spec"], before, Taken(others), context.rng)
    if field_errors:
        raise errors.invalid(errors.Subject("", "Service", name), field_errors)


def align_addresses(spec: Object, before: Object) -> None:
    """Make clusterIPs follow clusterIP where a client wrote only the one."""
    single, many = spec.get("clusterIP") or "", spec.get("clusterIPs") or []
    if not before:
        if single and not many:
            spec["clusterIPs"] = [single]
        return
    if single == (before.get("clusterIP") or "") or many != (before.get("clusterIPs") or []):
        return
    if single and many:
        spec["clusterIPs"] = [single, *many[1:]]
    elif single:
        spec["clusterIPs"] = [single]
    else:
        spec.pop("clusterIPs", None)


def set_families(spec: Object, before: Object) -> None:
    """Choose the policy and the families of the addresses; the cluster has those of IPv4.

    A headless Service without a selector may have endpoints of both families.
    """
    if spec["type"] == "ExternalName":
        return
    anywhere = is_headless(spec) and not spec.get("selector")
    if spec.get("ipFamilyPolicy") is None:
        chosen = "RequireDualStack" if anywhere else "SingleStack"
        spec["ipFamilyPolicy"] = before.get("ipFamilyPolicy") or chosen
    single = spec["ipFamilyPolicy"] == "SingleStack"
    for key in ("clusterIPs", "ipFamilies"):
        if single and before and spec.get(key) == before.get(key):
            spec[key] = (spec.get(key) or [])[:1]
    families = spec.get("ipFamilies") or []
    if not families and not any(is_v6(cluster_ip) for cluster_ip in spec.get("clusterIPs") or []):
        families = spec["ipFamilies"] = ["IPv4"]
    if anywhere and not single and len(families) == 1:
        spec["ipFamilies"] = [*families, "IPv4" if families == ["IPv6"] else "IPv6"]


def drop_what_the_type_lacks(spec: Object, before: Object) -> None:
    """Remove unchanged fields that another type does not have. A changed one is refused later."""
    kind, was = spec["type"], before["type"]
    groups: list[tuple[str, ...]] = []
    if kind == "ExternalName":
        spec.pop("internalTrafficPolicy", None)
    if kind == "ExternalName" != was:
        groups += [("clusterIP", "clusterIPs"), ("ipFamilies",), ("ipFamilyPolicy",)]
    if was == "LoadBalancer" != kind:
        groups += [(key,) for key in _BALANCED]
    if is_external(before) and not is_external(spec):
        groups.append(("externalTrafficPolicy",))
    for keys in groups:
        if all(spec.get(key) == before.get(key) for key in keys):
            for key in keys:
                spec.pop(key, None)
    if was in _WITH_NODE_PORTS and kind not in _WITH_NODE_PORTS:
        _drop_node_ports(spec, before)


_BALANCED = ("allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort")


def _drop_node_ports(spec: Object, before: Object) -> None:
    known = {None, *(port.get("nodePort") for port in before.get("ports") or [])}
    ports = spec.get("ports") or []
    if all(port.get("nodePort") in known for port in ports):
        for port in ports:
            port.pop("nodePort", None)


def keep_given(spec: Object, before: Object) -> None:
    """Restore the addresses and the ports that the server gave, where a client left them out."""
    if "ExternalName" not in (spec["type"], before["type"]):
        if not spec.get("clusterIP") and before.get("clusterIP"):
            spec["clusterIP"] = before["clusterIP"]
        if not spec.get("clusterIPs") and spec.get("clusterIP") == before.get("clusterIP"):
            spec["clusterIPs"] = before.get("clusterIPs") or []
    if spec["type"] in _WITH_NODE_PORTS and before["type"] in _WITH_NODE_PORTS:
        known = {_port_key(port): port.get("nodePort") for port in before.get("ports") or []}
        for port in spec.get("ports") or []:
            if not port.get("nodePort") and known.get(_port_key(port)):
                port["nodePort"] = known[_port_key(port)]


def _port_key(port: Object) -> tuple[object, object]:
    return port.get("protocol"), port.get("port")
