"""Validation of numbers."""

from __future__ import annotations

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.objects import Object

AT_LEAST_ZERO = "must be greater than or equal to 0"
_PORT_RANGE = "must be between 1 and 65535, inclusive"
_LAST_PORT = 65535


def not_negative(holder: Object, keys: tuple[str, ...], path: str) -> list[FieldError]:
    """The errors of numbers that may not be negative, in the order of the keys."""
    return [
        errors.invalid_value(f"{path}.{key}", holder[key], AT_LEAST_ZERO)
        for key in keys
        if isinstance(holder.get(key), int) and holder[key] < 0
    ]


def port_number(port: int, path: str) -> list[FieldError]:
    """The error of a number that is no port."""
    return [] if 1 <= port <= _LAST_PORT else [errors.invalid_value(path, port, _PORT_RANGE)]
