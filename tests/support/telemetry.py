"""Telemetry that records spans and metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from claimctl.telemetry.face import Labels, Metric, Span, Telemetry, Value


@dataclass
class RecordedSpan(Span):
    name: str
    attributes: dict[str, Value] = field(default_factory=dict)
    client: bool = False
    error: BaseException | None = None

    def set(self, **attributes: Value) -> None:
        self.attributes.update({key.replace("__", "."): v for key, v in attributes.items()})

    def fail(self, error: BaseException) -> None:
        self.error = error


@dataclass
class Recorder(Telemetry):
    """Records spans in the order of their start, and metrics as (name, labels, value)."""

    spans: list[RecordedSpan] = field(default_factory=list)
    metrics: list[tuple[Metric, dict[str, str], float]] = field(default_factory=list)

    @contextmanager
    def span(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, client: bool = False
    ) -> Iterator[Span]:
        span = RecordedSpan(name, dict(attributes or {}), client)
        self.spans.append(span)
        yield span

    def add(self, metric: Metric, labels: Labels | None = None, amount: float = 1) -> None:
        self.metrics.append((metric, dict(labels or {}), amount))

    def observe(self, metric: Metric, seconds: float, labels: Labels | None = None) -> None:
        self.metrics.append((metric, dict(labels or {}), seconds))

    def gauge(self, metric: Metric, value: float, labels: Labels | None = None) -> None:
        self.metrics.append((metric, dict(labels or {}), value))

    def of(self, metric: Metric) -> list[float]:
        return [value for name, _, value in self.metrics if name is metric]
