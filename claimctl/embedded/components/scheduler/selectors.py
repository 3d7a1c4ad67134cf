"""CEL selectors of DRA over one device: ``device.driver``, ``.attributes`` and ``.capacity``."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from claimctl.embedded.runtime.views import Object

_SUFFIXES = {
    "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip


def quantity(text: str | int | float) -> float:
    """A resource.Quantity as a number."""
    shown = str(text)
    for suffix in sorted(_SUFFIXES, key=len, reverse=True):
        if shown.endswith(suffix):
            return float(shown[: -len(suffix)]) * _SUFFIXES[suffix]
    return float(shown[:-1]) / 1000 if shown.endswith("m") else float(shown)


def attribute(device: Object, driver: str, qualified: str) -> Any:
    """The value of ``domain/name``, or None; a name without a domain is the driver's own."""
    attributes = device.get("attributes") or {}
    domain, _, plain = qualified.rpartition("/")
    found = attributes.get(qualified)
    if found is None and domain in ("", driver):
        found = attributes.get(plain)
    return None if found is None else next(iter(found.values()), None)


def selected(expression: str, driver: str, device: Object) -> bool:
    """Whether an expression holds; one that fails, or gives no boolean, selects nothing."""
    from celpy.celparser import CELParseError
    from celpy.evaluation import CELEvalError

    try:
        return bool(_program(expression).evaluate({"device": _activation(driver, device)}))
    except (CELEvalError, CELParseError, TypeError, ValueError):
        return False


@lru_cache(maxsize=256)
def _program(expression: str) -> Any:
    import celpy

    environment = celpy.Environment()
    return environment.program(environment.compile(expression.strip()), _functions())


def _functions() -> dict[str, Any]:
    from celpy import celtypes

    def as_number(text: Any) -> Any:
        return celtypes.DoubleType(quantity(text))

    def compared(left: Any, right: Any) -> Any:
        return celtypes.IntType((left > right) - (left < right))

    return {"quantity": as_number, "compareTo": compared, "semver": lambda text: text}


def _activation(driver: str, device: Object) -> Any:
    from celpy.adapter import json_to_cel

    attributes = {
        key: next(iter(value.values())) for key, value in (device.get("attributes") or {}).items()
    }
    capacity = {
        key: quantity(value["value"]) for key, value in (device.get("capacity") or {}).items()
    }
    return json_to_cel(
        {
            "driver": driver,
            "attributes": _by_domain(driver, attributes),
            "capacity": _by_domain(driver, capacity),
        }
    )


def _by_domain(driver: str, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    domains: dict[str, dict[str, Any]] = {driver: {}}
    for qualified, value in values.items():
        domain, _, plain = qualified.rpartition("/")
        domains.setdefault(domain or driver, {})[plain] = value
    return domains
