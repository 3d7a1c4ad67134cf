"""What Prometheus scrapes: exactly the names, labels, units and buckets of the table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, NumberDataPoint
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from claimctl.telemetry.face import Metric
from claimctl.telemetry.metrics import MEANINGS, Instruments, Meaning, Sort
from claimctl.telemetry.otel import OtelTelemetry
from claimctl.telemetry.settings import TelemetrySettings


@pytest.fixture
def telemetry() -> Iterator[OtelTelemetry]:
    telemetry = OtelTelemetry(TelemetrySettings())
    yield telemetry
    assert telemetry.shutdown()


def record(telemetry: OtelTelemetry, metric: Metric, meaning: Meaning) -> None:
    labels = dict.fromkeys(meaning.labels, "x")
    match meaning.sort:
        case Sort.COUNTER:
            telemetry.add(metric, labels)
        case Sort.GAUGE:
            telemetry.gauge(metric, 3, labels)
        case Sort.HISTOGRAM:
            telemetry.observe(metric, 0.3, labels)


def scraped(telemetry: OtelTelemetry) -> str:
    return generate_latest(telemetry.registry).decode()


def samples(telemetry: OtelTelemetry) -> dict[str, set[str]]:
    """The names of all samples with the names of their labels."""
    return {
        sample.name: set(sample.labels)
        for family in text_string_to_metric_families(scraped(telemetry))
        for sample in family.samples
        if not family.name.startswith(("process_", "python_gc_"))
    }


def test_every_metric_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Metric)
    assert all(
        meaning.description.endswith(".") or ":" in meaning.description
        for meaning in MEANINGS.values()
    )


def test_the_scraped_names_and_labels_are_the_documented_ones_and_no_others(
    telemetry: OtelTelemetry,
) -> None:
    expected: dict[str, set[str]] = {}
    for metric, meaning in MEANINGS.items():
        record(telemetry, metric, meaning)
        labels = set(meaning.labels)
        if meaning.sort is Sort.HISTOGRAM:
            expected[f"{metric}_bucket"] = labels | {"le"}
            expected[f"{metric}_count"] = expected[f"{metric}_sum"] = labels
        else:
            expected[metric.value] = labels
    assert samples(telemetry) == expected


@pytest.mark.parametrize(
    ("metric", "labels"),
    [(metric, m.labels) for metric, m in MEANINGS.items() if m.sort is Sort.HISTOGRAM],
)
def test_durations_are_counted_in_buckets_of_seconds(
    telemetry: OtelTelemetry, metric: Metric, labels: tuple[str, ...]
) -> None:
    telemetry.observe(metric, 0.3, dict.fromkeys(labels, "x"))
    [family] = [
        family
        for family in text_string_to_metric_families(scraped(telemetry))
        if family.name == metric
    ]
    buckets = {
        sample.labels["le"]: sample.value
        for sample in family.samples
        if sample.name.endswith("_bucket")
    }
    bounds = MEANINGS[metric].buckets
    assert buckets == {str(bound): float(bound >= 0.3) for bound in bounds} | {"+Inf": 1.0}


def test_each_metric_comes_with_its_help_and_type(telemetry: OtelTelemetry) -> None:
    telemetry.add(Metric.RELEASES, {"reason": "Idle", "dialect": "hold"}, 2)
    lines = scraped(telemetry).splitlines()
    assert [line for line in lines if "releases" in line] == [
        "# HELP claimctl_releases_total Claims released, by reason and dialect.",
        "# TYPE claimctl_releases_total counter",
        'claimctl_releases_total{dialect="hold",reason="Idle"} 2.0',
    ]


def test_exporters_get_a_count_as_a_whole_number() -> None:
    reader = InMemoryMetricReader()
    meters = MeterProvider(metric_readers=[reader], shutdown_on_exit=False)
    Instruments(meters.get_meter("test")).add(Metric.PODS_LISTED_AHEAD, None, 2)
    data = reader.get_metrics_data()
    assert data is not None
    ((found,),) = (
        [scope.metrics for scope in each.scope_metrics] for each in data.resource_metrics
    )
    ((count,),) = (
        metric.data.data_points for metric in found if metric.name.endswith("ahead_total")
    )
    assert isinstance(count, NumberDataPoint)
    assert (count.value, type(count.value)) == (2, int)
    meters.shutdown()


def test_labels_that_are_not_in_the_table_are_refused(telemetry: OtelTelemetry) -> None:
    with pytest.raises(ValueError, match="claimctl_claims has the labels"):
        telemetry.gauge(Metric.CLAIMS, 1, {"claim": "ml/train"})


def test_two_telemetries_in_one_process_do_not_see_each_other() -> None:
    one, other = OtelTelemetry(TelemetrySettings()), OtelTelemetry(TelemetrySettings())
    one.gauge(Metric.LEADER, 1)
    assert "claimctl_leader 1.0" in scraped(one)
    assert "claimctl_leader" not in scraped(other)
    assert one.shutdown()
    assert other.shutdown()
