"""CEL selectors of DeviceClasses and requests, over one device.

The scheduler evaluates them in Go, with more functions than here. Where the answer could differ,
it is ``None``: claimctl does not know. So it is for functions that are not here, for values that
the device lacks (the scheduler fails then), and where the CEL library is not installed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from claimctl.wire.base import EMPTY
from claimctl_reschedule.plan.requests import parse
from claimctl_reschedule.shapes.devices import PublishedDevice

Value = str | bool | int | float | list[Any]
Attributes = dict[str, tuple[str, Value]]
"""Type and value by fully qualified name."""

_DRIVER_ONLY = re.compile(r"""\s*device\.driver\s*==\s*(["'])([^"'\\]*)\1\s*""")
_REFERENCE = re.compile(
    r"""\bdevice\.(attributes|capacity)\s*\[\s*(["'])([^"'\\]+)\2\s*\]\s*"""
    r"""(?:\.\s*([A-Za-z_]\w*)|\[\s*(["'])([^"'\\]+)\5\s*\])"""
)
_LITERAL = re.compile(r"""(["'])[^"'\\]*\1""")
_ANY = re.compile(r"\bdevice\b(?!\s*\.\s*driver\b)")


@dataclass(frozen=True, slots=True)
class Described:
    """A device as selectors see it. Names are qualified: ``domain/name``."""

    driver: str
    attributes: Attributes
    capacity: dict[str, Value]


def describe(driver: str, device: PublishedDevice) -> Described:
    """The attributes and capacities of a device, in any version of the API. Raises
    msgspec.DecodeError, msgspec.ValidationError: they do not have the expected shape."""
    details = device.basic
    attributes = device.attributes if details is None else details.attributes
    capacity = device.capacity if details is None else details.capacity
    described = Described(driver, {}, {})
    for name, typed in _ATTRIBUTES.decode(attributes).items() if attributes is not EMPTY else ():
        for type_, value in typed.items():
            described.attributes[_qualify(driver, name)] = type_, value
    for name, entry in _CAPACITY.decode(capacity).items() if capacity is not EMPTY else ():
        # in v1beta1 of Kubernetes 1.32 on, each quantity has a field ``value``
        number = _number(entry.get("value", "") if isinstance(entry, dict) else entry)
        if number is not None:
            described.capacity[_qualify(driver, name)] = number
    return described


_ATTRIBUTES = msgspec.json.Decoder(dict[str, dict[str, Any]])
_CAPACITY = msgspec.json.Decoder(dict[str, Any])


def _qualify(driver: str, name: str) -> str:
    return name if "/" in name else f"{driver}/{name}"


def _number(quantity: str | int | float) -> int | float | None:
    """A quantity as CEL computes with it; None if it cannot be read."""
    try:
        value = parse(quantity)
    except ValueError:
        return None
    return int(value) if value.denominator == 1 else float(value)


def selects(expression: str, device: Described) -> bool | None:
    """Whether the selector selects the device; None if claimctl cannot tell."""
    plain = _DRIVER_ONLY.fullmatch(expression)
    if plain is not None:
        return device.driver == plain[2]
    references = _references(expression)
    if references is None:
        return None
    values = tuple(_value(device, *reference) for reference in references)
    return _evaluate(expression, device.driver, _hashable(values))


def _value(device: Described, kind: str, domain: str, name: str) -> Value | None:
    qualified = f"{domain}/{name}"
    if kind == "capacity":
        return device.capacity.get(qualified)
    type_, value = device.attributes.get(qualified, ("", None))
    return _version(str(value)) if type_ == "version" else value


def _hashable(values: tuple[Value | None, ...]) -> tuple[tuple[str, Any], ...]:
    """The values with their types: 1 and True are different values in CEL."""
    return tuple(
        (type(value).__name__, tuple(value) if isinstance(value, list) else value)
        for value in values
    )


@lru_cache(maxsize=4096)
def _references(expression: str) -> tuple[tuple[str, str, str], ...] | None:
    """What the expression reads of a device: kind, domain and name. None if it reads the device in
    another way, such as a name that it computes."""
    rest = _LITERAL.sub("", _REFERENCE.sub("", expression))
    if _ANY.search(rest):
        return None
    references = ((m[1], m[3], m[4] or m[6]) for m in _REFERENCE.finditer(expression))
    return tuple(sorted(set(references)))


@lru_cache(maxsize=65_536)
def _evaluate(expression: str, driver: str, values: tuple[tuple[str, Any], ...]) -> bool | None:
    """The verdict for all devices with this driver and these values of what is read."""
    program = _compile(expression)
    references = _references(expression)
    if program is None or references is None:
        return None
    maps: dict[str, dict[str, dict[str, Any]]] = {"attributes": {}, "capacity": {}}
    for (kind, domain, name), (_, value) in zip(references, values, strict=True):
        # an unknown domain is an empty map in Kubernetes
        of = maps[kind].setdefault(domain, {})
        if value is not None:
            of[name] = list(value) if isinstance(value, tuple) else value
    return program({"device": {"driver": driver, **maps}})


@lru_cache(maxsize=4096)
def _compile(expression: str) -> Callable[[Mapping[str, Any]], bool | None] | None:
    """The expression as a function; None if it cannot be compiled here."""
    try:
        # imported here: it takes 0.2 s, and the image of the controller does not have it
        import cel
    except ImportError:
        return None
    logging.getLogger("cel").disabled = True
    try:
        program = cel.compile(expression)
    except ValueError:
        return None
    context = cel.Context(functions=_FUNCTIONS)

    def run(names: Mapping[str, Any]) -> bool | None:
        context.update(dict(names))
        try:
            result = program.execute(context)
        except (ArithmeticError, LookupError, RuntimeError, TypeError, ValueError):
            return None
        return result if isinstance(result, bool) else None

    return run


_PLAIN_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def _version(text: str) -> list[Any]:
    """A semantic version. Other than in Kubernetes, one with a suffix equals only itself. A
    comparison of such a one fails, so that its verdict is unknown."""
    match = _PLAIN_VERSION.fullmatch(text)
    return ["version", *map(int, match.groups())] if match else ["version", text]


def _semver(text: str) -> list[Any]:
    if _PLAIN_VERSION.fullmatch(text) is None:
        raise ValueError(f"not a plain semantic version: {text}")
    return _version(text)


def _quantity(text: str) -> int | float:
    number = _number(text)
    if number is None:
        raise ValueError(f"not a quantity: {text}")
    return number


def _compare(left: Any, right: Any) -> int:
    """The sign of a comparison of two quantities or of two versions."""
    versions = [isinstance(value, list) for value in (left, right)]
    if any(versions) and not (all(versions) and len(left) == len(right) == 4):
        raise TypeError("cannot be compared")
    return int(left > right) - int(left < right)


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "quantity": _quantity,
    "semver": _semver,
    "compareTo": _compare,
    "isGreaterThan": lambda left, right: _compare(left, right) > 0,
    "isLessThan": lambda left, right: _compare(left, right) < 0,
    "lowerAscii": str.lower,
    "upperAscii": str.upper,
}
"""Functions by name. The receiver of a method call is the first argument."""
