"""The metrics of OpenTelemetry for Prometheus, with exemplars.

The SDK's own exporter for Prometheus drops exemplars. Names, labels and units are those of the
table in ``claimctl.telemetry.metrics``, so nothing has to be translated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from opentelemetry.sdk.metrics import Exemplar as Recorded
from opentelemetry.sdk.metrics.export import (
    Histogram,
    HistogramDataPoint,
    InMemoryMetricReader,
    NumberDataPoint,
    Sum,
)
from opentelemetry.sdk.metrics.export import Metric as Data
from opentelemetry.trace import format_span_id, format_trace_id
from prometheus_client.core import (
    CounterMetricFamily,
    Exemplar,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

Point = NumberDataPoint | HistogramDataPoint


class Exposition(Collector):
    """Collects what a reader of the SDK has at the moment of a scrape."""

    def __init__(self, reader: InMemoryMetricReader) -> None:
        self._reader = reader

    def collect(self) -> Iterator[Metric]:
        data = self._reader.get_metrics_data()
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                yield from map(_family, scope.metrics)


def _family(data: Data) -> Metric:
    if isinstance(data.data, Histogram):
        names = _names(data.data.data_points)
        histogram = HistogramMetricFamily(data.name, data.description or "", labels=names)
        for bars in data.data.data_points:
            histogram.add_metric(_values(bars, names), _buckets(bars), bars.sum)
        return histogram
    points = [point for point in data.data.data_points if isinstance(point, NumberDataPoint)]
    names = _names(points)
    kind = CounterMetricFamily if isinstance(data.data, Sum) else GaugeMetricFamily
    family = kind(data.name, data.description or "", labels=names)
    for point in points:
        family.add_metric(_values(point, names), float(point.value))
    return family


def _buckets(point: HistogramDataPoint) -> list[tuple[str, float] | tuple[str, float, Exemplar]]:
    """The buckets with cumulative counts; each with its newest exemplar, if it has one."""
    buckets: list[tuple[str, float] | tuple[str, float, Exemplar]] = []
    low = float("-inf")
    bounds = (*point.explicit_bounds, float("inf"))
    for high, count in zip(bounds, accumulate(point.bucket_counts), strict=True):
        inside = [exemplar for exemplar in point.exemplars or () if low < exemplar.value <= high]
        name, low = "+Inf" if high == float("inf") else str(float(high)), high
        newest = max(inside, key=lambda exemplar: exemplar.time_unix_nano, default=None)
        shown = _exemplar(newest) if newest is not None else None
        buckets.append((name, count, shown) if shown is not None else (name, count))
    return buckets


def _exemplar(recorded: Recorded) -> Exemplar | None:
    if recorded.trace_id is None or recorded.span_id is None:
        return None
    labels = {
        "trace_id": format_trace_id(recorded.trace_id),
        "span_id": format_span_id(recorded.span_id),
    }
    return Exemplar(labels, float(recorded.value), recorded.time_unix_nano / 1e9)


def _names(points: Iterable[Point]) -> list[str]:
    return sorted({name for point in points for name in point.attributes or {}})


def _values(point: Point, names: Iterable[str]) -> list[str]:
    attributes = point.attributes or {}
    return [str(attributes.get(name, "")) for name in names]
