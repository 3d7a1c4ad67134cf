"""Validation of names in resource.k8s.io: drivers, pools, attributes, requests."""

from __future__ import annotations

import re

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.options import Features
from kube_in_process.text import names

DRIVER_LIMIT = 63
_POOL_LIMIT = 253
_DOMAIN_LIMIT = 63
_IDENTIFIER_LIMIT = 32
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_IDENTIFIER_TEXT = (
    "a valid C identifier must start with alphabetic character or '_', followed by a string of "
    "alphanumeric characters or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName', regex used for "
    "validation is '[A-Za-z_][A-Za-z0-9_]*')"
)
UNKNOWN_REQUEST = (
    "must be the name of a request in the claim or the name of a request and a subrequest "
    "separated by '/'"
)


def driver_name(name: str, path: str, features: Features) -> list[FieldError]:
    """A DNS subdomain of at most 63 bytes, in upper or lower case.

    Until 1.34, an empty name has the errors of an invalid name, too.
    """
    field_errors: list[FieldError] = []
    if not name:
        field_errors.append(errors.required(path))
        if features.version >= (1, 35):
            return field_errors
    if len(name.encode()) > DRIVER_LIMIT:
        field_errors.append(errors.too_long(path, DRIVER_LIMIT))
    return [
        *field_errors,
        *(errors.invalid_value(path, name, text) for text in names.subdomain(name.lower())),
    ]


def driver_warnings(name: str, path: str, features: Features) -> list[str]:
    """From 1.35 on, a driver name with capital letters causes a warning."""
    if features.version < (1, 35) or name == name.lower():
        return []
    return [f'{path}: driver names should be lowercase; "{name}" contains uppercase characters']


def pool_name(name: str, path: str) -> list[FieldError]:
    """DNS subdomains with slashes between them."""
    if not name:
        return [errors.required(path)]
    field_errors = [errors.too_long(path, _POOL_LIMIT)] if len(name.encode()) > _POOL_LIMIT else []
    parts = name.split("/")
    return [
        *field_errors,
        *(errors.invalid_value(path, p, t) for p in parts for t in names.subdomain(p)),
    ]


def device_name(name: str, path: str) -> list[FieldError]:
    return errors.invalid_name(path, name, names.label)


def qualified_name(name: str, path: str) -> list[FieldError]:
    """``name`` or ``domain/name``; the name is a C identifier."""
    if not name:
        return [errors.required(path, "name required")]
    *domains, last = name.split("/")
    field_errors: list[FieldError] = []
    if len(domains) == 1:
        field_errors += _domain(domains[0], path)
    elif domains:
        return [errors.invalid_value(path, name, "must only have one slash")]
    return [*field_errors, *_identifier(last, path)]


def fully_qualified_name(name: str, path: str, features: Features) -> list[FieldError]:
    """``domain/name``."""
    field_errors = qualified_name(name, path)
    if name and "/" not in name:
        text = "a fully qualified name must be a domain and a name separated by a slash"
        if features.version < (1, 35):
            text = "must include a domain"
        field_errors.append(errors.invalid_value(path, name, text))
    return field_errors


def _domain(domain: str, path: str) -> list[FieldError]:
    if not domain:
        return [errors.required(path, "the domain must not be empty")]
    if len(domain) > _DOMAIN_LIMIT:
        return [errors.too_long(path, _DOMAIN_LIMIT)]
    return errors.invalid_name(path, domain, names.subdomain)


def _identifier(name: str, path: str) -> list[FieldError]:
    if not name:
        return [errors.required(path, "the name must not be empty")]
    field_errors = (
        [errors.too_long(path, _IDENTIFIER_LIMIT)] if len(name) > _IDENTIFIER_LIMIT else []
    )
    if not _IDENTIFIER.match(name):
        field_errors.append(errors.invalid_value(path, name, _IDENTIFIER_TEXT))
    return field_errors


def request_references(references: list[str], known: set[str], base: str) -> list[FieldError]:
    """Names of requests, or of requests and their subrequests, each at most once."""
    field_errors: list[FieldError] = []
    for index, name in enumerate(references):
        path = f"{base}[{index}]"
        field_errors += request_reference(name, known, path)
        if name in references[:index]:
            field_errors.append(errors.duplicate(path, name))
    return field_errors


def request_reference(name: str, known: set[str], path: str) -> list[FieldError]:
    field_errors = [
        errors.invalid_value(path, part, text)
        for part in name.split("/")
        for text in names.label(part)
    ]
    if name not in known:
        field_errors.append(errors.invalid_value(path, name, UNKNOWN_REQUEST))
    return field_errors
