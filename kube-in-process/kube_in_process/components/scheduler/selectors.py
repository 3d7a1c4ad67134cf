"""CEL selectors of DRA over one device: ``device.driver``, ``.attributes`` and ``.capacity``."""

from __future__ import annotations

from typing import Any

from kube_in_process.objects import Object
from kube_in_process.text.cel import EvaluationError, compiled, quantity


def attribute(device: Object, driver: str, qualified: str) -> Any:
    """The value of ``domain/name``, or None. A name without a domain belongs to the driver."""
    attributes = device.get("attributes") or {}
    domain, _, plain = qualified.rpartition("/")
    value = attributes.get(qualified)
    if value is None and domain in ("", driver):
        value = attributes.get(plain)
    return None if value is None else next(iter(value.values()), None)


def selected(expression: str, driver: str, device: Object) -> bool:
    """Whether an expression is true. One that fails, or is no boolean, selects nothing."""
    try:
        return compiled(expression)({"device": _activation(driver, device)}) is True
    except (EvaluationError, ValueError):
        return False


def _activation(driver: str, device: Object) -> Object:
    attributes = {
        key: next(iter(value.values())) for key, value in (device.get("attributes") or {}).items()
    }
    capacity = {
        key: quantity(value["value"]) for key, value in (device.get("capacity") or {}).items()
    }
    return {
        "driver": driver,
        "attributes": _by_domain(driver, attributes),
        "capacity": _by_domain(driver, capacity),
    }


def _by_domain(driver: str, values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    domains: dict[str, dict[str, Any]] = {driver: {}}
    for qualified, value in values.items():
        domain, _, plain = qualified.rpartition("/")
        domains.setdefault(domain or driver, {})[plain] = value
    return domains
