"""The meaning of every metric, and its OpenTelemetry instrument.

Names, labels and units are those of Prometheus, because dashboards and alerts use them. No label
has a value per claim, pod or workload.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from opentelemetry.metrics import Counter, Histogram, Meter
from opentelemetry.metrics import _Gauge as Gauge

from claimctl.telemetry.face import Labels, Metric

BRIEF = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper bounds in seconds, for work that should take no time."""
LONG = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0)
"""Upper bounds in seconds, for work that waits for other components."""


class Sort(Enum):
    COUNTER = auto()
    GAUGE = auto()
    HISTOGRAM = auto()


@dataclass(frozen=True, slots=True)
class Meaning:
    """The meaning of a metric; ``buckets`` are upper bounds in seconds."""

    sort: Sort
    description: str
    labels: tuple[str, ...] = ()
    unit: str = ""
    buckets: tuple[float, ...] = ()


MEANINGS: dict[Metric, Meaning] = {
    Metric.CLAIMS: Meaning(Sort.GAUGE, "ResourceClaims by their state.", labels=("state",)),
    Metric.RESERVATIONS: Meaning(
        Sort.GAUGE, "ClaimReservations by the kind of their workload.", labels=("workload_kind",)
    ),
    Metric.CLAIMS_NEAR_LIMIT: Meaning(
        Sort.GAUGE,
        "Claims whose reservedFor is nearly full (from 240 of 256 entries on) or full.",
        labels=("state",),
    ),
    Metric.DANGLING_REFERENCES: Meaning(
        Sort.GAUGE, "References in reservedFor whose object is gone and that are still listed."
    ),
    Metric.ALLOCATION_TO_HOLD_SECONDS: Meaning(
        Sort.HISTOGRAM,
        "Time from a claim's allocation until its workload was listed: the window without a hold.",
        unit="s",
        buckets=LONG,
    ),
    Metric.RELEASES: Meaning(
        Sort.COUNTER, "Claims released, by reason and dialect.", labels=("reason", "dialect")
    ),
    Metric.RELEASE_WAIT_SECONDS: Meaning(
        Sort.HISTOGRAM,
        "Time from a release's fence until its deallocation, by reason: for schedulers to settle "
        "and to bind the pods that they work on.",
        labels=("reason",),
        unit="s",
        buckets=LONG,
    ),
    Metric.WRITE_CONFLICTS: Meaning(
        Sort.COUNTER,
        "Writes refused because somebody else wrote first, by resource.",
        labels=("resource",),
    ),
    Metric.RECONCILE_SECONDS: Meaning(
        Sort.HISTOGRAM,
        "Duration of reconciles, by controller and outcome.",
        labels=("controller", "outcome"),
        unit="s",
        buckets=BRIEF,
    ),
    Metric.WORKQUEUE_DEPTH: Meaning(
        Sort.GAUGE, "Keys that are due and wait for a worker.", labels=("controller",)
    ),
    Metric.WORKQUEUE_SECONDS: Meaning(
        Sort.HISTOGRAM,
        "How long keys that were due waited for a worker.",
        labels=("controller",),
        unit="s",
        buckets=BRIEF,
    ),
    Metric.LEADER: Meaning(Sort.GAUGE, "1 while this process leads, else 0."),
    Metric.WATCH_BROKEN: Meaning(
        Sort.GAUGE,
        "1 while what is known of a resource is not brought up to date, else 0.",
        labels=("resource",),
    ),
    Metric.UNREADABLE_OBJECTS: Meaning(
        Sort.GAUGE,
        "Objects that cannot be read now, by resource: nothing is decided about what they concern.",
        labels=("resource",),
    ),
    Metric.BUILD_INFO: Meaning(
        Sort.GAUGE, "Always 1, labelled with the versions at work.", labels=("version", "python")
    ),
}


class Instruments:
    """One instrument for each metric, on one meter."""

    def __init__(self, meter: Meter) -> None:
        self._counters: dict[Metric, Counter] = {}
        self._gauges: dict[Metric, Gauge] = {}
        self._histograms: dict[Metric, Histogram] = {}
        for metric, meaning in MEANINGS.items():
            self._create(meter, metric, meaning)

    def _create(self, meter: Meter, metric: Metric, meaning: Meaning) -> None:
        name, text, unit = metric.value, meaning.description, meaning.unit
        match meaning.sort:
            case Sort.COUNTER:
                self._counters[metric] = meter.create_counter(name, unit, text)
            case Sort.GAUGE:
                self._gauges[metric] = meter.create_gauge(name, unit, text)
            case Sort.HISTOGRAM:
                self._histograms[metric] = meter.create_histogram(
                    name, unit, text, explicit_bucket_boundaries_advisory=meaning.buckets
                )

    def add(self, metric: Metric, labels: Labels | None, amount: float) -> None:
        self._counters[metric].add(amount, _attributes(metric, labels))

    def observe(self, metric: Metric, labels: Labels | None, seconds: float) -> None:
        self._histograms[metric].record(seconds, _attributes(metric, labels))

    def set(self, metric: Metric, labels: Labels | None, value: float) -> None:
        self._gauges[metric].set(value, _attributes(metric, labels))


def _attributes(metric: Metric, labels: Labels | None) -> dict[str, str]:
    """The labels in the order of the table; raises ValueError for other labels."""
    given = labels or {}
    wanted = MEANINGS[metric].labels
    if given.keys() != set(wanted):
        raise ValueError(f"{metric} has the labels {wanted}, not {tuple(given)}")
    return {label: given[label] for label in wanted}
