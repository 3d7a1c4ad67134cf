"""The rules for names. Each function returns the server's error texts for a value."""

from __future__ import annotations

import ipaddress
import re

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_NAME_PART = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_NAME_PART})?"
_LABEL_RE = re.compile(rf"{_LABEL}\Z")
_SUBDOMAIN_RE = re.compile(rf"{_SUBDOMAIN}\Z")
_LABEL_1035_RE = re.compile(rf"{_LABEL_1035}\Z")
_NAME_PART_RE = re.compile(rf"{_NAME_PART}\Z")
_VALUE_RE = re.compile(rf"{_VALUE}\Z")

LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex "
    f"used for validation is '{_LABEL}')"
)
SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    f"for validation is '{_SUBDOMAIN}')"
)
LABEL_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or "
    f"'abc-123', regex used for validation is '{_LABEL_1035}')"
)
NAME_PART_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_NAME_PART}')"
)
VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',"
    f"  or '12345', regex used for validation is '{_VALUE}')"
)


def _checked(
    value: str, limit: int, pattern: re.Pattern[str], text: str, unit: str = "characters"
) -> list[str]:
    wrong = [f"must be no more than {limit} {unit}"] if len(value) > limit else []
    return wrong if pattern.match(value) else [*wrong, text]


def label(value: str, unit: str = "characters") -> list[str]:
    """A DNS label. Valid subdomains with dots have an error text of their own."""
    dots = _SUBDOMAIN_RE.match(value) and not _LABEL_RE.match(value)
    return _checked(value, 63, _LABEL_RE, "must not contain dots" if dots else LABEL_TEXT, unit)


namespace_name = label


def label_1035(value: str) -> list[str]:
    return _checked(value, 63, _LABEL_1035_RE, LABEL_1035_TEXT)


def subdomain(value: str, unit: str = "characters") -> list[str]:
    return _checked(value, 253, _SUBDOMAIN_RE, SUBDOMAIN_TEXT, unit)


def short_name(value: str) -> list[str]:
    """Errors of a label, with the texts of declarative validation (k8s-short-name)."""
    return label(value, "bytes")


def long_name(value: str) -> list[str]:
    """Errors of a subdomain, with the texts of declarative validation (k8s-long-name)."""
    return subdomain(value, "bytes")


def path_segment(value: str) -> list[str]:
    """A path segment, as for RBAC names."""
    if value in (".", ".."):
        return [f"may not be '{value}'"]
    return [f"may not contain '{part}'" for part in ("/", "%") if part in value]


def label_value(value: str) -> list[str]:
    wrong = ["must be no more than 63 bytes"] if len(value.encode()) > 63 else []
    return wrong if _VALUE_RE.match(value) else [*wrong, VALUE_TEXT]


def qualified_name(value: str) -> list[str]:
    """``prefix/name`` or ``name``, as for label keys."""
    prefix, slash, name = value.rpartition("/")
    if "/" in prefix:
        detail = NAME_PART_TEXT.replace("must consist", "a valid label key must consist", 1)
        return [
            f"{detail} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    wrong: list[str] = []
    if slash and not prefix:
        wrong.append("prefix part must be non-empty")
    elif slash:
        wrong += [f"prefix part {text}" for text in subdomain(prefix)]
    if not name:
        wrong.append("name part must be non-empty")
    elif len(name) > 63:
        wrong.append("name part must be no more than 63 bytes")
    if not _NAME_PART_RE.match(name):
        wrong.append(f"name part {NAME_PART_TEXT}")
    return wrong


def address(value: str) -> list[str]:
    """An IP address of either family."""
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return ["must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"]
    return []


_CONFIG_KEY_RE = re.compile(r"[-._a-zA-Z0-9]+\Z")
_CONFIG_KEY_TEXT = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)


def config_key(value: str) -> list[str]:
    """A key in the data of a ConfigMap or Secret."""
    wrong = ["must be no more than 253 characters"] if len(value) > 253 else []
    if not _CONFIG_KEY_RE.match(value):
        wrong.append(_CONFIG_KEY_TEXT)
    if value in (".", ".."):
        wrong.append(f"must not be '{value}'")
    elif value.startswith(".."):
        wrong.append("must not start with '..'")
    return wrong
