"""Services: their defaults, and what the server keeps and gives at a write."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.defaults.network import default_service
from kube_in_process.kinds.service_addresses import Taken, allocate
from kube_in_process.kinds.strategy import Strategy, WriteContext
from kube_in_process.kinds.validation.addresses import is_v6
from kube_in_process.kinds.validation.service_rules import (
    is_external,
    is_headless,
    service_changes,
    service_errors,
    service_status_errors,
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
        set_families(spec)
        _allocate(obj, {}, context)

    def prepare_update(self, new: Object, old: Object, context: WriteContext) -> None:
        super().prepare_update(new, old, context)
        if context.subresource == "status":
            return
        spec, before = new["spec"], old["spec"]
        drop_what_the_type_lacks(spec, before)
        keep_given(spec, before)
        align_addresses(spec, before)
        set_families(spec)
        _allocate(new, before, context)

    def validate(self, obj: Object, context: WriteContext) -> list[FieldError]:
        found = service_errors(obj["spec"], {})
        name = obj["metadata"].get("name") or ""
        if context.features.version < RELAXED_NAMES and not names.label(name):
            found = [*errors.invalid_name("metadata.name", name, names.label_1035), *found]
        return found

    def validate_update(self, new: Object, old: Object, context: WriteContext) -> list[FieldError]:
        if context.subresource == "status":
            return service_status_errors(new, old)
        spec, before = new["spec"], old["spec"]
        return [*service_changes(spec, before), *service_errors(spec, before)]


def _allocate(obj: Object, before: Object, context: WriteContext) -> None:
    """Give addresses and ports, which the server does before it validates."""
    name, namespace = obj["metadata"].get("name", ""), obj["metadata"].get("namespace", "")
    others = [
        each
        for each in context.store.list("", "services")
        if (each["metadata"]["namespace"], each["metadata"]["name"]) != (namespace, name)
    ]
    found = allocate(obj["spec"], before, Taken(others), context.rng)
    if found:
        raise errors.invalid(errors.Subject("", "Service", name), found)


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


def set_families(spec: Object) -> None:
    """A cluster has addresses of IPv4. A headless Service without a selector has both families."""
    if spec["type"] == "ExternalName":
        return
    both = is_headless(spec) and not spec.get("selector")
    policy = spec.get("ipFamilyPolicy")
    if policy is None:
        many = len(spec.get("ipFamilies") or []) > 1 or len(spec.get("clusterIPs") or []) > 1
        policy = (
            "RequireDualStack" if many or (both and not spec.get("ipFamilies")) else "SingleStack"
        )
        spec["ipFamilyPolicy"] = policy
    if not spec.get("ipFamilies"):
        given = [each for each in spec.get("clusterIPs") or [] if each != "None"]
        found = ["IPv6" if is_v6(each) else "IPv4" for each in given] or ["IPv4"]
        spec["ipFamilies"] = list(dict.fromkeys(found))
    if both and policy != "SingleStack" and len(spec["ipFamilies"]) == 1:
        spec["ipFamilies"].append("IPv4" if spec["ipFamilies"] == ["IPv6"] else "IPv6")


def drop_what_the_type_lacks(spec: Object, before: Object) -> None:
    """Remove unchanged fields that another type does not have. A changed one is refused later."""
    kind, was = spec["type"], before["type"]
    groups: list[tuple[str, ...]] = []
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
