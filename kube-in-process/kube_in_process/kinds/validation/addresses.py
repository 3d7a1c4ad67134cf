"""Validation of IP addresses and of CIDR values."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Collection

from kube_in_process import errors
from kube_in_process.errors import FieldError

_BAD_IP = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_BAD_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
_ZEROS = re.compile(r"\b0+(?=[0-9])")
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def address_of(value: str) -> Address | None:
    """An address, also with leading zeros; None if it is none."""
    try:
        return ipaddress.ip_address(_ZEROS.sub("", value) if ":" not in value else value)
    except ValueError:
        return None


def network_of(value: str) -> Network | None:
    """A network, also with bits beyond its prefix; None if it is none."""
    if not re.search(r"/[0-9]+\Z", value):
        return None
    try:
        return ipaddress.ip_network(_ZEROS.sub("", value), strict=False)
    except ValueError:
        return None


def ip_errors(value: str, path: str, before: Collection[str] = ()) -> list[FieldError]:
    """The errors of an address. What the field had ``before`` is right."""
    address = address_of(value)
    if value in before:
        return []
    if address is None:
        return [errors.invalid_value(path, value, _BAD_IP)]
    if ":" not in value and _ZEROS.search(value):
        return [errors.invalid_value(path, value, "must not have leading 0s")]
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return [errors.invalid_value(path, value, "must not be an IPv4-mapped IPv6 address")]
    return []


def canonical_ip(value: str) -> list[str]:
    """The problems of a name that must be an address in its canonical form."""
    return [error.message.split(": ", 2)[2] for error in canonical_ip_errors(value, "")]


def canonical_ip_errors(value: str, path: str) -> list[FieldError]:
    return ip_errors(value, path) or _not_canonical(value, str(address_of(value)), path)


def canonical_cidr_errors(value: str, path: str) -> list[FieldError]:
    return cidr_errors(value, path) or _not_canonical(value, str(network_of(value)), path)


def _not_canonical(value: str, right: str, path: str) -> list[FieldError]:
    if value == right:
        return []
    text = f"must be in canonical form ({errors.quoted(right)})"
    return [errors.invalid_value(path, value, text)]


def cidr_errors(value: str, path: str, before: Collection[str] = ()) -> list[FieldError]:
    """The errors of a network. What the field had ``before`` is right."""
    network = network_of(value)
    if value in before:
        return []
    if network is None:
        return [errors.invalid_value(path, value, _BAD_CIDR)]
    if ":" not in value and _ZEROS.search(value):
        text = "must not have leading 0s in IP or prefix length"
        return [errors.invalid_value(path, value, text)]
    if address_of(value.partition("/")[0]) != network.network_address:
        text = "must not have bits set beyond the prefix length"
        return [errors.invalid_value(path, value, text)]
    return []


def endpoint_errors(value: str, path: str) -> list[FieldError]:
    """The errors of an address to which traffic is sent."""
    address = address_of(value)
    if address is None:
        return [errors.invalid_value(path, value, "must be a valid IP address")]
    local = "224.0.0.0/24" if address.version == 4 else "ff02::/16"
    checks = (
        (address.is_unspecified, f"may not be unspecified ({value})"),
        (address.is_loopback, "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
        (address.is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
        (
            address in ipaddress.ip_network(local),
            "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)",
        ),
    )
    return [errors.invalid_value(path, value, text) for wrong, text in checks if wrong]


def is_v6(value: str) -> bool:
    return isinstance(address_of(value), ipaddress.IPv6Address)
