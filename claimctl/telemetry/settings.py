"""The exporters that the OTEL_* variables select.

This module reads which exporters are asked for, where they send, and the resource. The SDK itself
reads sampler, limits, batches, headers and timeouts. Without an endpoint and without a named
exporter nothing is sent: a controller must not log errors about a collector that does not exist.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

PROTOCOL = "http/protobuf"


class TelemetrySettingError(ValueError):
    """A setting of telemetry cannot be used: here an OTEL_* variable, and in ``health`` what the
    health server is given. The text is one line that names it."""


class Exporter(StrEnum):
    OTLP = "otlp"
    CONSOLE = "console"


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
    named = env.get("OTEL_SERVICE_NAME") or "service.name=" in env.get(
        "OTEL_RESOURCE_ATTRIBUTES", ""
    )
    return TelemetrySettings(traces, metrics, None if named else "claimctl")


def _exporters(env: Mapping[str, str], signal: str) -> tuple[Exporter, ...]:
    variable = f"OTEL_{signal}_EXPORTER"
    names = [name.strip() for name in env.get(variable, "").split(",") if name.strip()]
    (place, endpoint), (protocol, spoken) = (
        _of_signal(env, signal, name) for name in ("ENDPOINT", "PROTOCOL")
    )
    if not names and endpoint:
        names = [Exporter.OTLP]
    # Prometheus can scrape the metrics in any case
    chosen = tuple(name for name in names if name not in ("none", "prometheus"))
    for name in chosen:
        if name not in list(Exporter):
            text = f"{variable}: unknown exporter {name!r}; use otlp, console or none"
            raise TelemetrySettingError(text)
    if Exporter.OTLP in chosen:
        if spoken not in ("", PROTOCOL):
            text = f"{protocol}: {spoken!r} is not supported; use {PROTOCOL} (port 4318 by custom)"
            raise TelemetrySettingError(text)
        if endpoint and not _is_url(endpoint):
            text = f"{place}: {endpoint!r} is not a URL like http://collector:4318"
            raise TelemetrySettingError(text)
    return tuple(map(Exporter, chosen))


def _of_signal(env: Mapping[str, str], signal: str, name: str) -> tuple[str, str]:
    """The variable of OTLP that counts for the signal, and its value; '' if there is none."""
    known = (f"OTEL_EXPORTER_OTLP_{signal}_{name}", f"OTEL_EXPORTER_OTLP_{name}")
    return next(((variable, env[variable]) for variable in known if env.get(variable)), ("", ""))


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
