"""The addresses and ports that the server gives to Services, each to one Service at a time.

The rules are those of k8s.io/kubernetes/pkg/registry/core/service (storage/alloc.go). A Service
keeps what it has; what it asks for must be free, and within the range.
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, ip_address
from random import Random

from kube_in_process import errors
from kube_in_process.errors import FieldError, StatusError
from kube_in_process.objects import Object

ADDRESSES = IPv4Network("10.96.0.0/12")
"""The range of cluster IPs, that of kubeadm."""
PORTS = range(30000, 32768)
_STATIC_ADDRESSES = 256
_STATIC_PORTS = 86
"""The first ones of a range are given only to those who ask for them."""
_WITH_PORTS = ("LoadBalancer", "NodePort")


class Taken:
    """What other Services have: cluster IPs and node ports."""

    def __init__(self, others: Iterable[Object]) -> None:
        self.addresses: set[str] = set()
        self.ports: set[int] = set()
        for other in others:
            self.addresses |= addresses_of(other["spec"])
            self.ports |= ports_of(other["spec"])


def addresses_of(spec: Object) -> set[str]:
    return {address for address in spec.get("clusterIPs") or () if address != "None"}


def ports_of(spec: Object) -> set[int]:
    if spec.get("type") not in _WITH_PORTS:
        return set()
    ports = {port.get("nodePort") or 0 for port in spec.get("ports") or ()}
    return (ports | {spec.get("healthCheckNodePort") or 0}) - {0}


def allocate(spec: Object, before: Object, taken: Taken, rng: Random) -> list[FieldError]:
    """Give a valid spec what it lacks; ``before`` is the old one, {} for a new Service.

    Returns the error of what it asks for and cannot get.

    Raises:
        StatusError: 500, the port of the health check is taken.
    """
    keeps = before and before["type"] != "ExternalName"
    field_errors = [] if keeps else _give_address(spec, taken, rng)
    return field_errors or _Ports(spec, ports_of(before), taken, rng).give()


def _give_address(spec: Object, taken: Taken, rng: Random) -> list[FieldError]:
    if spec["type"] == "ExternalName" or spec.get("clusterIPs") == ["None"]:
        return []
    if not spec.get("clusterIPs"):
        spec["clusterIP"] = _free_address(taken, rng)
        spec["clusterIPs"] = [spec["clusterIP"]]
        return []
    for address in sorted(addresses_of(spec)):
        why = _against_address(address, taken)
        if why:
            text = f"failed to allocate IP {address}: {why}"
            return [errors.invalid_value("spec.clusterIPs", spec["clusterIPs"], text)]
    return []


def _against_address(address: str, taken: Taken) -> str:
    value = ip_address(address)
    if not isinstance(value, IPv4Address):
        return ""
    ends = (ADDRESSES.network_address, ADDRESSES.broadcast_address)
    if value not in ADDRESSES or value in ends:
        return "the provided network does not match the current range"
    return "provided IP is already allocated" if address in taken.addresses else ""


def _free_address(taken: Taken, rng: Random) -> str:
    while True:
        number = rng.randrange(_STATIC_ADDRESSES, ADDRESSES.num_addresses - 1)
        address = str(ADDRESSES[number])
        if address not in taken.addresses:
            return address


class _Ports:
    """The node ports of one Service."""

    def __init__(self, spec: Object, own: set[int], taken: Taken, rng: Random) -> None:
        self._spec = spec
        self._own = own
        self._taken = set(taken.ports)
        self._rng = rng

    def give(self) -> list[FieldError]:
        kind = self._spec["type"]
        if kind not in _WITH_PORTS:
            return []
        field_errors = self._give_to_ports(
            self._spec.get("allocateLoadBalancerNodePorts") is not False
        )
        local = kind == "LoadBalancer" and self._spec.get("externalTrafficPolicy") == "Local"
        if local and not field_errors:
            self._give_for_health()
        return field_errors

    def _give_to_ports(self, wants_all: bool) -> list[FieldError]:
        """Ports of one number, such as those for TCP and UDP, share a node port."""
        by_number: dict[int, int] = {}
        ports = self._spec.get("ports") or []
        for index, port in enumerate(ports):
            known, given = by_number.get(port.get("port", 0)), port.get("nodePort")
            if not given and not wants_all:
                continue
            wanted = given or known or _asked(port.get("port", 0), ports)
            if wanted and wanted != known:
                why = self._against(wanted)
                if why:
                    path = f"spec.ports[{index}].nodePort"
                    return [errors.invalid_value(path, wanted, why)]
                self._taken.add(wanted)
            port["nodePort"] = wanted or self._free()
            by_number.setdefault(port.get("port", 0), port["nodePort"])
        return []

    def _give_for_health(self) -> None:
        given = self._spec.get("healthCheckNodePort")
        if not given:
            self._spec["healthCheckNodePort"] = self._free()
            return
        why = self._against(given)
        if why:
            text = f"failed to allocate requested HealthCheck NodePort {given}: {why}"
            raise StatusError(500, "InternalError", f"Internal error occurred: {text}")

    def _against(self, number: int) -> str:
        if number in self._own:
            return ""
        if number not in PORTS:
            valid = f"{PORTS.start}-{PORTS.stop - 1}"
            return f"provided port is not in the valid range. The range of valid ports is {valid}"
        return "provided port is already allocated" if number in self._taken else ""

    def _free(self) -> int:
        while True:
            number = self._rng.randrange(PORTS.start + _STATIC_PORTS, PORTS.stop)
            if number not in self._taken and number not in self._own:
                self._taken.add(number)
                return number


def _asked(number: int, ports: list[Object]) -> int:
    """The node port that a later port of the same number asks for; 0 for none."""
    given = (port.get("nodePort") or 0 for port in ports if port.get("port", 0) == number)
    return next((address for address in given if address), 0)
