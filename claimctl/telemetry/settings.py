"""The exporters that the OTEL_* variables select.

This module reads only the variables that the SDK does not read itself. The SDK reads sampler,
limits, batches, headers and timeouts. Without an endpoint and without a named exporter nothing is
sent: a controller must not log errors about a collector that does not exist.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

PROTOCOL = "http/protobuf"


class TelemetrySettingError(ValueError):
    """A variable has a value that claimctl does not support. The text is one line that names it."""


class Exporter(StrEnum):
    OTLP = "otlp"
    CONSOLE = "console"


class BindError(TelemetrySettingError):
    """The health server cannot listen on its address. The text is one line that names it."""


@dataclass(frozen=True, slots=True)
class TelemetrySettings:
    """The selected exporters. ``service_name`` is None if the environment names the service."""

    traces: tuple[Exporter, ...] = ()
    metrics: tuple[Exporter, ...] = ()
    service_name: str | None = "claimctl"


def from_environment(
    environment: Mapping[str, str] | None = None, *, trace_console: bool = False
) -> TelemetrySettings:
    """Settings from the variables. ``trace_console`` adds the console to the span exporters.

    Raises:
        TelemetrySettingError: an unknown exporter, an endpoint that is no URL, or OTLP by another
            protocol than http/protobuf.
    """
    env = os.environ if environment is None else environment
    traces, metrics = _exporters(env, "TRACES"), _exporters(env, "METRICS")
    if trace_console and Exporter.CONSOLE not in traces:
        traces += (Exporter.CONSOLE,)
    return TelemetrySettings(traces, metrics, None if _names_service(env) else "claimctl")


def _exporters(env: Mapping[str, str], signal: str) -> tuple[Exporter, ...]:
    variable = f"OTEL_{signal}_EXPORTER"
    names = [name.strip() for name in env.get(variable, "").split(",") if name.strip()]
    if not names and _endpoint(env, signal):
        names = [Exporter.OTLP]
    chosen = tuple(_exporter(variable, name) for name in names if name not in _OWN)
    if Exporter.OTLP in chosen:
        _check_protocol(env, signal)
        _check_endpoint(env, signal)
    return chosen


_OWN = ("none", "prometheus")
"""These values add no exporter: Prometheus can scrape the metrics in any case."""


def _exporter(variable: str, name: str) -> Exporter:
    try:
        return Exporter(name)
    except ValueError:
        raise TelemetrySettingError(
            f"{variable}: unknown exporter {name!r}; use otlp, console or none"
        ) from None


def _endpoint(env: Mapping[str, str], signal: str) -> str:
    return env.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or env.get(
        "OTEL_EXPORTER_OTLP_ENDPOINT", ""
    )


def _check_endpoint(env: Mapping[str, str], signal: str) -> None:
    """Raise TelemetrySettingError for an endpoint that is no http(s) URL."""
    for variable in (f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        endpoint = env.get(variable)
        if endpoint and not _is_url(endpoint):
            raise TelemetrySettingError(
                f"{variable}: {endpoint!r} is not a URL like http://collector:4318"
            )
        if endpoint:
            return


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _check_protocol(env: Mapping[str, str], signal: str) -> None:
    for variable in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = env.get(variable)
        if protocol and protocol != PROTOCOL:
            raise TelemetrySettingError(
                f"{variable}: {protocol!r} is not supported; use {PROTOCOL} (port 4318 by custom)"
            )
        if protocol:
            return


def _names_service(env: Mapping[str, str]) -> bool:
    return bool(env.get("OTEL_SERVICE_NAME")) or "service.name=" in env.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
