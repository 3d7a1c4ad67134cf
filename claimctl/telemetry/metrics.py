"""The meaning of every metric (``metrics.json``), and its OpenTelemetry instrument.

Names, labels and units are those of Prometheus, because dashboards and alerts use them. No label
has a value per claim, pod or workload.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from importlib.resources import files

import msgspec
from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation

from claimctl.telemetry.face import Labels, Metric

SCALES = {
    "brief": (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0),
    "long": (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0),
}
"""Upper bounds of buckets in seconds: for work that should take no time, and for work that waits
for other components."""


class Sort(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a metric. A histogram is in seconds; ``scale`` names its buckets."""

    sort: Sort
    description: str
    labels: tuple[str, ...] = ()
    scale: str = ""

    @property
    def buckets(self) -> tuple[float, ...]:
        return SCALES.get(self.scale, ())


MEANINGS = msgspec.json.decode(
    files(__package__).joinpath("metrics.json").read_bytes(), type=dict[Metric, Meaning]
)


class Instruments:
    """One instrument for each metric, on one meter.

    Counters and gauges change far more often than they are read, so their values are only kept,
    and the meter asks for them.
    """

    def __init__(self, meter: Meter) -> None:
        self._values: dict[Metric, dict[tuple[str, ...], float]] = {}
        self._histograms: dict[Metric, Histogram] = {}
        for metric, meaning in MEANINGS.items():
            name, text = metric.value, meaning.description
            if meaning.sort is Sort.HISTOGRAM:
                self._histograms[metric] = meter.create_histogram(
                    name, "s", text, explicit_bucket_boundaries_advisory=meaning.buckets
                )
                continue
            self._values[metric], observe = {}, partial(self._observe, metric)
            if meaning.sort is Sort.COUNTER:
                meter.create_observable_counter(name, [observe], "", text)
            else:
                meter.create_observable_gauge(name, [observe], "", text)

    def _observe(self, metric: Metric, options: CallbackOptions) -> Iterator[Observation]:
        # a copy: the meter asks in a thread of its own
        for values, value in self._values[metric].copy().items():
            yield Observation(value, _attributes(metric, values))

    def add(self, metric: Metric, labels: Labels | None, amount: float) -> None:
        values, known = _label_values(metric, labels), self._values[metric]
        known[values] = known.get(values, 0) + amount

    def observe(self, metric: Metric, labels: Labels | None, seconds: float) -> None:
        attributes = _attributes(metric, _label_values(metric, labels))
        self._histograms[metric].record(seconds, attributes)

    def set(self, metric: Metric, labels: Labels | None, value: float) -> None:
        self._values[metric][_label_values(metric, labels)] = value

    def forget(self, metric: Metric, labels: Labels) -> None:
        self._values[metric].pop(_label_values(metric, labels), None)


def _label_values(metric: Metric, labels: Labels | None) -> tuple[str, ...]:
    """The values of the labels in the order of the table; raises ValueError for other labels."""
    given, wanted = labels or {}, MEANINGS[metric].labels
    if given.keys() != frozenset(wanted):
        raise ValueError(f"{metric} has the labels {wanted}, not {tuple(given)}")
    return tuple([given[label] for label in wanted])


def _attributes(metric: Metric, values: tuple[str, ...]) -> dict[str, str]:
    return dict(zip(MEANINGS[metric].labels, values, strict=True))
