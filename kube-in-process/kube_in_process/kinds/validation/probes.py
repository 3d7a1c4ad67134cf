"""Validation of probes and lifecycle hooks of containers."""

from __future__ import annotations

from typing import Any

from kube_in_process import errors
from kube_in_process.errors import FieldError
from kube_in_process.kinds.validation.amounts import not_negative, port_number
from kube_in_process.kinds.validation.port_names import port_name
from kube_in_process.objects import Object

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc", "sleep")
_NUMBERS = (
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
)
_SCHEMES = ("HTTP", "HTTPS")


def hooks_and_probes(container: Object, path: str) -> list[FieldError]:
    """The errors of the hooks, then of each probe."""
    field_errors: list[FieldError] = []
    lifecycle = container.get("lifecycle") or {}
    for hook in ("postStart", "preStop"):
        if lifecycle.get(hook) is not None:
            field_errors += _handler(lifecycle[hook], f"{path}.lifecycle.{hook}")
    for name in _PROBES:
        if container.get(name) is not None:
            field_errors += _probe(container[name], f"{path}.{name}", name)
    return field_errors


def forbidden_in_init_containers(container: Object, path: str) -> list[FieldError]:
    """Only an init container that restarts always may have hooks and probes."""
    text = "may not be set for init containers without restartPolicy=Always"
    given = (name for name in ("lifecycle", *_PROBES) if container.get(name) is not None)
    return [errors.forbidden_field(f"{path}.{name}", text) for name in given]


def _probe(probe: Object, path: str, name: str) -> list[FieldError]:
    field_errors = [*_handler(probe, path), *not_negative(probe, _NUMBERS, path)]
    seconds = probe.get("terminationGracePeriodSeconds")
    where = f"{path}.terminationGracePeriodSeconds"
    if seconds is not None and seconds <= 0:
        field_errors.append(errors.invalid_value(where, seconds, "must be greater than 0"))
    successes = probe.get("successThreshold")
    if name != "readinessProbe" and successes != 1:
        field_errors.append(
            errors.invalid_value(f"{path}.successThreshold", successes, "must be 1")
        )
    if name == "readinessProbe" and seconds is not None:
        text = "must not be set for readinessProbes"
        field_errors.append(errors.invalid_value(where, seconds, text))
    return field_errors


def _handler(handler: Object, path: str) -> list[FieldError]:
    """The errors of what a probe or a hook does: exactly one thing."""
    given = [name for name in _HANDLERS if handler.get(name) is not None]
    if not given:
        return [errors.required(path, "must specify a handler type")]
    first, *others = given
    action, place = handler[first], f"{path}.{first}"
    field_errors: list[FieldError] = []
    if first == "exec" and not action.get("command"):
        field_errors.append(errors.required(f"{place}.command"))
    if first == "httpGet" and not action.get("path"):
        field_errors.append(errors.required(f"{place}.path"))
    if first in ("httpGet", "tcpSocket", "grpc"):
        field_errors += _port(action.get("port", 0), f"{place}.port")
    if first == "httpGet":
        field_errors += errors.invalid_choice(
            f"{place}.scheme", action.get("scheme") or "", _SCHEMES
        )
    text = "may not specify more than 1 handler type"
    return [*field_errors, *(errors.forbidden_field(f"{path}.{name}", text) for name in others)]


def _port(port: Any, path: str) -> list[FieldError]:
    if isinstance(port, str):
        return [errors.invalid_value(path, port, text) for text in port_name(port)]
    return port_number(port, path)
