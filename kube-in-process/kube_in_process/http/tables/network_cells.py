"""The cells of tables of Services, of networking, and of storage."""

from __future__ import annotations

from collections.abc import Sequence

from kube_in_process.http.tables.columns import NONE, Cell, Column, Row
from kube_in_process.objects import Object

_FEW = 3
"""As many items are shown of a long list."""
_UNSET = "<unset>"
_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _few(values: Sequence[str], count: int) -> str:
    shown = ",".join(values[:_FEW])
    if count > _FEW:
        return f"{shown} + {count - _FEW} more..."
    return shown or NONE


def _balancer(row: Row) -> list[str]:
    """The addresses of a load balancer, sorted."""
    given = row.items("status", "loadBalancer", "ingress")
    return sorted({ingress.get("ip") or ingress.get("hostname") or "" for ingress in given} - {""})


def service_ports(row: Row, column: Column) -> str:
    return ",".join(_port(port) for port in row.items("spec", "ports")) or NONE


def _port(port: Object) -> str:
    outside = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port['port']}{outside}/{port.get('protocol', 'TCP')}"


def external_address(row: Row, column: Column) -> str:
    kind = row.text("spec", "type")
    if kind == "ExternalName":
        return row.text("spec", "externalName", default="")
    balanced = _balancer(row) if kind == "LoadBalancer" else []
    shown = ",".join((*balanced, *row.items("spec", "externalIPs")))
    return shown or ("<pending>" if kind == "LoadBalancer" else NONE)


def endpoint_addresses(row: Row, column: Column) -> str:
    shown: list[str] = []
    for subset in row.items("subsets"):
        addresses = [address["ip"] for address in subset.get("addresses") or []]
        ports = subset.get("ports") or []
        shown += [_joined(ip, port["port"]) for port in ports for ip in addresses]
        shown += [] if ports else addresses
    return "" if row.items("subsets") and not shown else _few(shown, len(shown))


def _joined(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def slice_ports(row: Row, column: Column) -> str:
    ports = [str(port.get("port") or port.get("name", "*")) for port in row.items("ports")]
    return _few(ports, len(ports)) if any(ports) else _UNSET


def slice_addresses(row: Row, column: Column) -> str:
    addresses = [
        address for one in row.items("endpoints") for address in one.get("addresses") or []
    ]
    return _few(addresses, len(addresses)) if addresses else _UNSET


def ingress_hosts(row: Row, column: Column) -> str:
    rules = row.items("spec", "rules")
    hosts = [rule["host"] for rule in rules if rule.get("host")]
    if not hosts:
        return "*"
    return _few(hosts, len(rules)) if len(hosts) > _FEW else ",".join(hosts)


def ingress_address(row: Row, column: Column) -> str:
    return ",".join(_balancer(row))


def ingress_ports(row: Row, column: Column) -> str:
    return "80, 443" if row.items("spec", "tls") else "80"


def class_name(row: Row, column: Column) -> str:
    """The name of an IngressClass or a StorageClass, and whether it is the default."""
    annotations = row.get("metadata", "annotations") or {}
    default = annotations.get(column.default) == "true"
    return f"{row.text('metadata', 'name')} (default)" if default else row.text("metadata", "name")


def class_parameters(row: Row, column: Column) -> str:
    reference = row.get("spec", "parameters")
    if reference is None:
        return NONE
    group = f".{reference['apiGroup']}" if reference.get("apiGroup") is not None else ""
    return f"{reference['kind']}{group}/{reference['name']}"


def access_modes(row: Row, column: Column) -> str:
    given = row.items(*column.of)
    return ",".join(short for mode, short in _MODES.items() if mode in given)


def phase(row: Row, column: Column) -> str:
    ending = row.get("metadata", "deletionTimestamp")
    return "Terminating" if ending else row.text("status", "phase", default="")


def volume_claim(row: Row, column: Column) -> str:
    reference = row.get("spec", "claimRef")
    return f"{reference.get('namespace', '')}/{reference.get('name', '')}" if reference else ""


def claim_capacity(row: Row, column: Column) -> str:
    if not row.get("spec", "volumeName"):
        return ""
    return row.text("status", "capacity", "storage", default="0")


def claim_modes(row: Row, column: Column) -> str:
    return access_modes(row, column) if row.get("spec", "volumeName") else ""


def storage_class(row: Row, column: Column) -> str:
    annotations = row.get("metadata", "annotations") or {}
    beta = annotations.get("volume.beta.kubernetes.io/storage-class")
    return beta if beta is not None else row.text("spec", "storageClassName", default="")


def audiences(row: Row, column: Column) -> str:
    requests = row.get(*column.of)
    return (
        _UNSET
        if requests is None
        else ",".join(request.get("audience", "") for request in requests)
    )


def parent(row: Row, column: Column) -> str:
    reference = row.get("spec", "parentRef")
    if reference is None:
        return NONE
    group = f".{reference['group']}" if reference.get("group") else ""
    space = f"/{reference['namespace']}" if reference.get("namespace") else ""
    return (
        f"{reference.get('resource', '')}{group}".lower() + f"{space}/{reference.get('name', '')}"
    )


NETWORK_CELLS: dict[str, Cell] = {
    cell.__name__: cell
    for cell in (
        *(service_ports, external_address, endpoint_addresses, slice_ports, slice_addresses),
        *(ingress_hosts, ingress_address, ingress_ports, class_name, class_parameters),
        *(access_modes, phase, volume_claim, claim_capacity, claim_modes, storage_class),
        *(audiences, parent),
    )
}
"""Cells by their names in ``columns.json``."""
