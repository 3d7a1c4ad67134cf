"""Telemetry that records metrics, spans and failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from claimctl.telemetry.face import Labels, Metric, Span, Telemetry, Value

Series = tuple[str, tuple[tuple[str, str], ...]]


def series(metric: Metric, labels: Labels | None) -> Series:
    return metric.value, tuple(sorted((labels or {}).items()))


@dataclass
class Recording(Telemetry):
    gauges: dict[Series, float] = field(default_factory=dict)
    counts: Counter[Series] = field(default_factory=Counter)
    observed: dict[Series, list[float]] = field(default_factory=dict)
    attributes: dict[str, Value] = field(default_factory=dict)
    failures: list[BaseException] = field(default_factory=list)
    links: list[object] = field(default_factory=list)
    """The contexts that spans were linked to."""

    def add(self, metric: Metric, labels: Labels | None = None, amount: float = 1) -> None:
        self.counts[series(metric, labels)] += int(amount)

    def observe(self, metric: Metric, seconds: float, labels: Labels | None = None) -> None:
        self.observed.setdefault(series(metric, labels), []).append(seconds)

    def gauge(self, metric: Metric, value: float, labels: Labels | None = None) -> None:
        self.gauges[series(metric, labels)] = value

    def forget(self, metric: Metric, labels: Labels) -> None:
        self.gauges.pop(series(metric, labels), None)

    @contextmanager
    def span(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, client: bool = False
    ) -> Iterator[Span]:
        yield _Span(self)

    def nonzero(self, metric: Metric) -> dict[str, float]:
        """The gauges of a metric that are not 0, by the value of their only label."""
        return {
            labels[0][1] if labels else "": value
            for (name, labels), value in self.gauges.items()
            if name == metric.value and value
        }


@dataclass
class _Span(Span):
    recording: Recording

    def set(self, **attributes: Value) -> None:
        self.recording.attributes.update(attributes)

    def fail(self, error: BaseException) -> None:
        self.recording.failures.append(error)

    @property
    def context(self) -> object:
        return id(self)

    def link(self, context: object) -> None:
        self.recording.links.append(context)
