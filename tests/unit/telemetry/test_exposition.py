"""Exemplars lead from a bucket to a trace, and only where traces are exported."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id, format_trace_id
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from claimctl.telemetry.face import Metric
from claimctl.telemetry.otel import OtelTelemetry
from claimctl.telemetry.settings import TelemetrySettings

LABELS = {"controller": "claim", "outcome": "success"}


def samples(registry: CollectorRegistry) -> Iterator[Sample]:
    text = generate_latest(registry).decode()  # type: ignore[no-untyped-call] # it has no hints
    families = text_string_to_metric_families(text)  # type: ignore[no-untyped-call] # it has no hints
    for family in families:
        yield from family.samples


def buckets(telemetry: OtelTelemetry) -> dict[str, Sample]:
    return {
        sample.labels["le"]: sample
        for sample in samples(telemetry.registry)
        if sample.name == f"{Metric.RECONCILE_SECONDS}_bucket"
    }


@pytest.fixture
def exporter() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def telemetry(exporter: InMemorySpanExporter) -> Iterator[OtelTelemetry]:
    made = OtelTelemetry(TelemetrySettings(), processors=(SimpleSpanProcessor(exporter),))
    yield made
    assert made.shutdown()


def test_a_bucket_names_the_span_in_which_its_duration_was_measured(
    telemetry: OtelTelemetry, exporter: InMemorySpanExporter
) -> None:
    with telemetry.span("reconcile claim"):
        telemetry.observe(Metric.RECONCILE_SECONDS, 0.3, LABELS)
    [span] = exporter.get_finished_spans()
    assert span.context is not None
    exemplar = buckets(telemetry)["0.5"].exemplar
    assert exemplar is not None
    assert exemplar.value == 0.3
    assert exemplar.labels == {
        "trace_id": format_trace_id(span.context.trace_id),
        "span_id": format_span_id(span.context.span_id),
    }


def test_buckets_are_cumulative_and_only_the_one_that_was_hit_has_an_exemplar(
    telemetry: OtelTelemetry,
) -> None:
    with telemetry.span("reconcile claim"):
        telemetry.observe(Metric.RECONCILE_SECONDS, 0.3, LABELS)
        telemetry.observe(Metric.RECONCILE_SECONDS, 100.0, LABELS)
    found = buckets(telemetry)
    assert {name: each.value for name, each in found.items() if float(name) >= 0.25} == {
        "0.25": 0.0,
        **dict.fromkeys(("0.5", "1.0", "2.5", "5.0", "10.0", "30.0"), 1.0),
        "+Inf": 2.0,
    }
    assert {name for name, each in found.items() if each.exemplar} == {"0.5", "+Inf"}


def test_outside_of_a_span_there_is_no_exemplar(telemetry: OtelTelemetry) -> None:
    telemetry.observe(Metric.RECONCILE_SECONDS, 0.3, LABELS)
    assert not [each for each in buckets(telemetry).values() if each.exemplar]


def test_without_an_exporter_of_traces_there_is_no_exemplar() -> None:
    telemetry = OtelTelemetry(TelemetrySettings())
    with telemetry.span("reconcile claim"):
        telemetry.observe(Metric.RECONCILE_SECONDS, 0.3, LABELS)
    assert not [each for each in buckets(telemetry).values() if each.exemplar]
    assert telemetry.shutdown()


def test_the_process_and_its_garbage_collector_are_measured(telemetry: OtelTelemetry) -> None:
    found = {sample.name: sample.value for sample in samples(telemetry.registry)}
    assert found["process_cpu_seconds_total"] > 0
    assert found["process_resident_memory_bytes"] > 1_000_000
    assert found["process_start_time_seconds"] > 0
    assert "python_gc_collections_total" in found


def test_a_counter_ends_in_total(telemetry: OtelTelemetry) -> None:
    telemetry.add(Metric.REQUESTS, {"method": "GET", "code": "200"}, 2)
    [sample] = [each for each in samples(telemetry.registry) if each.name.startswith("rest_client")]
    assert (sample.name, sample.value, sample.labels) == (
        "rest_client_requests_total",
        2.0,
        {"method": "GET", "code": "200"},
    )
