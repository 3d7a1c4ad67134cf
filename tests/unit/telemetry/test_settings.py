"""The OTEL_* variables that decide which exporters there are."""

from __future__ import annotations

import pytest

from claimctl.telemetry.settings import (
    Exporter,
    TelemetrySettingError,
    TelemetrySettings,
    from_environment,
)

OTLP, CONSOLE = (Exporter.OTLP,), (Exporter.CONSOLE,)


@pytest.mark.parametrize(
    ("environment", "settings"),
    [
        pytest.param({}, TelemetrySettings(), id="nothing is sent where nobody asked"),
        pytest.param(
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"},
            TelemetrySettings(traces=OTLP, metrics=OTLP),
            id="an endpoint is enough",
        ),
        pytest.param(
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"},
            TelemetrySettings(traces=OTLP),
            id="an endpoint for traces is for traces only",
        ),
        pytest.param(
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_METRICS_EXPORTER": "none"},
            TelemetrySettings(traces=OTLP),
            id="none switches a signal off",
        ),
        pytest.param(
            {"OTEL_TRACES_EXPORTER": "otlp, console", "OTEL_METRICS_EXPORTER": "prometheus"},
            TelemetrySettings(traces=OTLP + CONSOLE),
            id="named exporters, Prometheus being there anyway",
        ),
        pytest.param(
            {"OTEL_SERVICE_NAME": "other"},
            TelemetrySettings(service_name=None),
            id="a name of its own",
        ),
        pytest.param(
            {"OTEL_RESOURCE_ATTRIBUTES": "a=b,service.name=other"},
            TelemetrySettings(service_name=None),
            id="a name among the resource attributes",
        ),
        pytest.param(
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317",
                "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
                "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
                "OTEL_METRICS_EXPORTER": "none",
            },
            TelemetrySettings(traces=OTLP),
            id="the signal's protocol wins",
        ),
    ],
)
def test_variables_choose_exporters(
    environment: dict[str, str], settings: TelemetrySettings
) -> None:
    assert from_environment(environment) == settings


def test_the_console_flag_adds_the_console_once() -> None:
    assert from_environment({}, trace_console=True).traces == CONSOLE
    asked = {"OTEL_TRACES_EXPORTER": "console"}
    assert from_environment(asked, trace_console=True).traces == CONSOLE


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {"OTEL_TRACES_EXPORTER": "zipkin"},
            "OTEL_TRACES_EXPORTER: unknown exporter 'zipkin'; use otlp, console or none",
        ),
        (
            {"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            "OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' is not supported; "
            "use http/protobuf (port 4318 by custom)",
        ),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "nonsense"},
            "OTEL_EXPORTER_OTLP_ENDPOINT: 'nonsense' is not a URL like http://collector:4318",
        ),
        (
            {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "collector:4318"},
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'collector:4318' is not a URL like "
            "http://collector:4318",
        ),
        (
            {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://"},
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://' is not a URL like http://collector:4318",
        ),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(
    environment: dict[str, str], message: str
) -> None:
    with pytest.raises(TelemetrySettingError) as caught:
        from_environment(environment)
    assert str(caught.value) == message
