"""The rules of Services."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.defaults.network import is_external
from kube_in_process.kinds.metadata import validate_labels
from kube_in_process.kinds.validation.addresses import (
    address_of,
    cidr_errors,
    endpoint_errors,
    ip_errors,
    is_v6,
)
from kube_in_process.kinds.validation.amounts import port_number
from kube_in_process.kinds.validation.endpoints import PROTOCOLS, app_protocol
from kube_in_process.kinds.validation.port_names import port_name
from kube_in_process.objects import Object
from kube_in_process.text import names

TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
_AFFINITIES = ("ClientIP", "None")
_POLICIES = ("Cluster", "Local")
_FAMILIES = ("IPv4", "IPv6")
_FAMILY_POLICIES = ("PreferDualStack", "RequireDualStack", "SingleStack")
_DISTRIBUTIONS = ("PreferClose", "PreferSameZone", "PreferSameNode")
_IP_MODES = ("Proxy", "VIP")
_LONGEST_AFFINITY = 86400
_ONLY_BALANCERS = "may only be used when `type` is 'LoadBalancer'"
_SET_ONCE = "may not change once set"


def is_headless(spec: Object) -> bool:
    return spec.get("clusterIPs") == ["None"]


def needs_health_check(spec: Object) -> bool:
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def service_errors(spec: Object, before: Object) -> list[FieldError]:
    """The errors of a spec; ``before`` is the old one, {} for a new Service."""
    kind, field_errors = spec.get("type") or "", list[FieldError]()
    if not spec.get("ports") and not is_headless(spec) and kind != "ExternalName":
        field_errors.append(errors.required("spec.ports"))
    if kind in ("LoadBalancer", "NodePort") and is_headless(spec):
        text = f"may not be set to 'None' for {kind} services"
        field_errors.append(errors.invalid_value("spec.clusterIPs[0]", "None", text))
    if kind == "ExternalName":
        field_errors += _external_name(spec)
    field_errors += _ports(spec.get("ports") or [])
    field_errors += validate_labels(spec.get("selector") or {}, "spec.selector")
    field_errors += _affinity(spec)
    field_errors += _external_addresses(spec, before)
    field_errors += errors.invalid_choice("spec.type", kind, TYPES)
    field_errors += _repeated_ports(spec)
    field_errors += _balancer(spec, before)
    return [*field_errors, *_policies(spec)]


def _external_name(spec: Object) -> list[FieldError]:
    text = "may not be set for ExternalName services"
    given = [key for key in ("clusterIPs", "ipFamilies", "ipFamilyPolicy") if spec.get(key)]
    field_errors = [errors.forbidden_field(f"spec.{key}", text) for key in given]
    name = (spec.get("externalName") or "").removesuffix(".")
    if not name:
        return [*field_errors, errors.required("spec.externalName")]
    return [*field_errors, *errors.invalid_name("spec.externalName", name, names.subdomain)]


def _ports(ports: list[Object]) -> list[FieldError]:
    field_errors: list[FieldError] = []
    seen: set[str] = set()
    for index, port in enumerate(ports):
        path, name = f"spec.ports[{index}]", port.get("name") or ""
        if name:
            field_errors += errors.invalid_name(f"{path}.name", name, names.label)
        elif len(ports) > 1:
            field_errors.append(errors.required(f"{path}.name"))
        if name and name in seen:
            field_errors.append(errors.duplicate(f"{path}.name", name))
        seen.add(name)
        field_errors += port_number(port.get("port") or 0, f"{path}.port")
        field_errors += errors.invalid_choice(
            f"{path}.protocol", port.get("protocol") or "", PROTOCOLS
        )
        target, where = port.get("targetPort", 0), f"{path}.targetPort"
        if isinstance(target, str):
            field_errors += errors.invalid_name(where, target, port_name)
        else:
            field_errors += port_number(target, where)
        field_errors += app_protocol(port, path)
    return field_errors


def _affinity(spec: Object) -> list[FieldError]:
    kind, config = spec.get("sessionAffinity") or "", spec.get("sessionAffinityConfig")
    path = "spec.sessionAffinityConfig"
    field_errors = errors.invalid_choice("spec.sessionAffinity", kind, _AFFINITIES)
    if kind == "None" and config is not None:
        text = "must not be set when session affinity is None"
        field_errors.append(errors.forbidden_field(path, text))
    if kind == "ClientIP":
        seconds = ((config or {}).get("clientIP") or {}).get("timeoutSeconds") or 0
        if not 0 < seconds <= _LONGEST_AFFINITY:
            text = f"must be greater than 0 and less than {_LONGEST_AFFINITY}"
            field_errors.append(
                errors.invalid_value(f"{path}.clientIP.timeoutSeconds", seconds, text)
            )
    return field_errors


def address_errors(spec: Object, before: Object) -> list[FieldError]:
    """The errors of clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy, which belong together."""
    if spec.get("type") == "ExternalName":
        return []
    addresses, path = spec.get("clusterIPs") or [], "spec.clusterIPs"
    single = spec.get("clusterIP") or ""
    field_errors: list[FieldError] = []
    if single and not addresses:
        field_errors.append(errors.required(path))
    elif single and addresses[0] != single:
        field_errors.append(
            errors.invalid_value(path, addresses, "first value must match `clusterIP`")
        )
    elif addresses and not single:
        text = "must be empty when `clusterIP` is not specified"
        field_errors.append(errors.invalid_value(path, addresses, text))
    field_errors += _families(spec)
    wrong = _address_texts(addresses, before)
    field_errors += wrong
    if len(addresses) > 2:
        field_errors.append(errors.invalid_value(path, addresses, "may only hold up to 2 values"))
    if wrong:
        return field_errors
    if len(addresses) > 1 and len({is_v6(address) for address in addresses}) == 1:
        text = "may specify no more than one IP for each IP family"
        field_errors.append(errors.invalid_value(path, addresses, text))
    return field_errors if is_headless(spec) else [*field_errors, *_of_family(addresses, spec)]


def stack_errors(spec: Object) -> list[FieldError]:
    """The errors of families that the cluster has not: it has IPv4."""
    if spec.get("type") == "ExternalName":
        return []
    addresses, families = spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    policy, path = spec.get("ipFamilyPolicy"), "spec.ipFamilyPolicy"
    field_errors: list[FieldError] = []
    for given, what in ((addresses, "cluster IPs"), (families, "IP families")):
        if policy == "SingleStack" and len(given) == 2:
            text = f"must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are"
            field_errors.append(errors.invalid_value(path, policy, f"{text} specified"))
    field_errors += [
        errors.invalid_value(f"spec.clusterIPs[{index}]", addresses, f"IPv6 {_NOT_CONFIGURED}")
        for index, address in enumerate(addresses)
        if index >= len(families) and is_v6(address)
    ]
    if field_errors or (is_headless(spec) and not spec.get("selector")):
        return field_errors
    if policy == "RequireDualStack":
        text = "this cluster is not configured for dual-stack services"
        field_errors.append(errors.invalid_value(path, policy, text))
    field_errors += [
        errors.invalid_value(f"spec.ipFamilies[{index}]", family, "not configured on this cluster")
        for index, family in enumerate(families)
        if family != "IPv4"
    ]
    return field_errors


_NOT_CONFIGURED = "is not configured on this cluster"


def _families(spec: Object) -> list[FieldError]:
    field_errors: list[FieldError] = []
    families, policy = spec.get("ipFamilies") or [], spec.get("ipFamilyPolicy")
    for index, family in enumerate(families):
        path = f"spec.ipFamilies[{index}]"
        if family not in _FAMILIES:
            field_errors.append(errors.not_supported(path, family, _FAMILIES))
        if family in families[:index]:
            field_errors.append(errors.duplicate(path, family))
    if policy is not None and policy not in _FAMILY_POLICIES:
        field_errors.append(errors.not_supported("spec.ipFamilyPolicy", policy, _FAMILY_POLICIES))
    return field_errors


def _address_texts(addresses: list[str], before: Object) -> list[FieldError]:
    field_errors: list[FieldError] = []
    for index, address in enumerate(addresses):
        if index == 0 and address == "None":
            if len(addresses) > 1:
                text = "'None' must be the first and only value"
                field_errors.append(errors.invalid_value("spec.clusterIPs", addresses, text))
            continue
        field_errors += ip_errors(
            address, f"spec.clusterIPs[{index}]", before.get("clusterIPs") or ()
        )
    return field_errors


def _of_family(addresses: list[str], spec: Object) -> list[FieldError]:
    pairs = zip(addresses, spec.get("ipFamilies") or [], strict=False)
    return [
        errors.invalid_value(
            f"spec.clusterIPs[{index}]",
            address,
            f"expected an {family} value as indicated by `ipFamilies[{index}]`",
        )
        for index, (address, family) in enumerate(pairs)
        if family in _FAMILIES and is_v6(address) != (family == "IPv6")
    ]


def _external_addresses(spec: Object, before: Object) -> list[FieldError]:
    field_errors: list[FieldError] = []
    known = before.get("externalIPs") or ()
    for index, address in enumerate(spec.get("externalIPs") or []):
        path = f"spec.externalIPs[{index}]"
        field_errors += ip_errors(address, path, known) or endpoint_errors(address, path)
    return field_errors


def _repeated_ports(spec: Object) -> list[FieldError]:
    ports, field_errors = spec.get("ports") or [], list[FieldError]()
    if spec.get("type") == "ClusterIP":
        text = "may not be used when `type` is 'ClusterIP'"
        field_errors += [
            errors.forbidden_field(f"spec.ports[{index}].nodePort", text)
            for index, port in enumerate(ports)
            if port.get("nodePort")
        ]
    outside = [(port.get("protocol"), port.get("nodePort") or 0) for port in ports]
    field_errors += [
        errors.duplicate(f"spec.ports[{index}].nodePort", pair[1])
        for index, pair in enumerate(outside)
        if pair[1] and pair in outside[:index]
    ]
    inside = [(port.get("protocol"), port.get("port")) for port in ports]
    for index, (protocol, number) in enumerate(inside):
        if (protocol, number) in inside[:index]:
            shown = {"Name": "", "Protocol": protocol, "AppProtocol": None, "Port": number}
            path = f"spec.ports[{index}]"
            field_errors.append(errors.duplicate(path, {**shown, "TargetPort": 0, "NodePort": 0}))
    return field_errors


def _balancer(spec: Object, before: Object) -> list[FieldError]:
    """The errors of what only a LoadBalancer has."""
    balanced = spec.get("type") == "LoadBalancer"
    field_errors: list[FieldError] = []
    ranges, path = spec.get("loadBalancerSourceRanges") or [], "spec.LoadBalancerSourceRanges"
    if ranges and not balanced:
        field_errors.append(errors.forbidden_field(path, _ONLY_BALANCERS))
    known = [source_range.strip() for source_range in before.get("loadBalancerSourceRanges") or ()]
    for index, source_range in enumerate(ranges):
        field_errors += cidr_errors(source_range.strip(), f"{path}[{index}]", known)
    path = "spec.allocateLoadBalancerNodePorts"
    if spec.get("allocateLoadBalancerNodePorts") is not None and not balanced:
        field_errors.append(errors.forbidden_field(path, _ONLY_BALANCERS))
    return [*field_errors, *_balancer_class(spec)]


def _balancer_class(spec: Object) -> list[FieldError]:
    name, path = spec.get("loadBalancerClass"), "spec.loadBalancerClass"
    if name is None:
        return []
    if spec.get("type") != "LoadBalancer":
        return [errors.forbidden_field(path, _ONLY_BALANCERS)]
    return errors.invalid_name(path, name, names.qualified_name)


def _policies(spec: Object) -> list[FieldError]:
    """The errors of the policies of traffic, and of the port of the health check."""
    policy, path = spec.get("externalTrafficPolicy") or "", "spec.externalTrafficPolicy"
    field_errors: list[FieldError] = []
    if is_external(spec):
        field_errors += errors.invalid_choice(path, policy, _POLICIES)
    elif policy:
        text = "may only be set for externally-accessible services"
        field_errors.append(errors.invalid_value(path, policy, text))
    port, path = spec.get("healthCheckNodePort") or 0, "spec.healthCheckNodePort"
    if port and not needs_health_check(spec):
        text = (
            "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        )
        field_errors.append(errors.invalid_value(path, port, text))
    elif port:
        field_errors += port_number(port, path)
    internal = spec.get("internalTrafficPolicy")
    if internal is not None and internal not in _POLICIES:
        field_errors.append(errors.not_supported("spec.internalTrafficPolicy", internal, _POLICIES))
    distribution = spec.get("trafficDistribution")
    if distribution is not None and distribution not in _DISTRIBUTIONS:
        path = "spec.trafficDistribution"
        field_errors.append(errors.not_supported(path, distribution, _DISTRIBUTIONS))
    return field_errors


def service_changes(spec: Object, before: Object) -> list[FieldError]:
    """The errors of what may not change: addresses, families, class, port of the health check."""
    field_errors: list[FieldError] = []
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        if not (is_headless(spec) and is_headless(before)):
            field_errors += _primary(spec, before, "clusterIPs", "clusterIP")
        if not is_headless(spec) and not is_headless(before):
            field_errors += _primary(spec, before, "ipFamilies", "ipFamily")
    key = "loadBalancerClass"
    both = {spec.get("type"), before.get("type")} == {"LoadBalancer"}
    if both and spec.get(key) != before.get(key):
        field_errors.append(errors.invalid_value(f"spec.{key}", spec.get(key), _SET_ONCE))
    key = "healthCheckNodePort"
    both = needs_health_check(spec) and needs_health_check(before)
    if both and spec.get(key) != before.get(key):
        field_errors.append(errors.forbidden_field(f"spec.{key}", "field is immutable"))
    return field_errors


def _primary(spec: Object, before: Object, key: str, what: str) -> list[FieldError]:
    """The first value stays. A second one may come, and go with the policy SingleStack."""
    now, old = spec.get(key) or [], before.get(key) or []
    if len(now) == len(old):
        return [
            errors.invalid_value(f"spec.{key}[{index}]", now, _SET_ONCE)
            for index in range(len(now))
            if now[index] != old[index]
        ]
    field_errors: list[FieldError] = []
    if not now:
        text = f"primary {what} can not be unset"
        field_errors.append(errors.invalid_value(f"spec.{key}[0]", now or None, text))
    elif old and now[0] != old[0]:
        field_errors.append(errors.invalid_value(f"spec.{key}[0]", now, _SET_ONCE))
    policy = spec.get("ipFamilyPolicy")
    if len(old) > len(now) == 1 and policy != "SingleStack":
        text = f"must be set to 'SingleStack' when releasing the secondary {what}"
        field_errors.append(errors.invalid_value("spec.ipFamilyPolicy", policy, text))
    return field_errors


def service_status_errors(obj: Object, before: Object) -> list[FieldError]:
    """The errors of the addresses of a load balancer."""
    given = (obj["status"].get("loadBalancer") or {}).get("ingress") or []
    path = "status.loadBalancer.ingress"
    if given and obj["spec"].get("type") != "LoadBalancer":
        text = "may only be used when `spec.type` is 'LoadBalancer'"
        return [errors.forbidden_field(path, text)]
    old = (before["status"].get("loadBalancer") or {}).get("ingress") or []
    known = [ingress["ip"] for ingress in old if ingress.get("ip")]
    field_errors: list[FieldError] = []
    for index, ingress in enumerate(given):
        field_errors += _ingress(ingress, f"{path}[{index}]", known)
    return field_errors


def _ingress(ingress: Object, path: str, known: list[str]) -> list[FieldError]:
    ip, mode, host = ingress.get("ip") or "", ingress.get("ipMode"), ingress.get("hostname") or ""
    field_errors = ip_errors(ip, f"{path}.ip", known) if ip else []
    where = f"{path}.ipMode"
    if mode is None and ip:
        field_errors.append(errors.required(where, "must be specified when `ip` is set"))
    elif mode is not None and not ip:
        field_errors.append(
            errors.forbidden_field(where, "may not be specified when `ip` is not set")
        )
    elif mode is not None and mode not in _IP_MODES:
        field_errors.append(errors.not_supported(where, mode, _IP_MODES))
    if host:
        field_errors += errors.invalid_name(f"{path}.hostname", host, names.subdomain)
    if host and address_of(host) is not None:
        text = "must be a DNS name, not an IP address"
        field_errors.append(errors.invalid_value(f"{path}.hostname", host, text))
    return field_errors
