"""Telemetry with the OpenTelemetry SDK: spans, and metrics that Prometheus can scrape.

The providers are never the global ones. So a process can have several of them, as tests do, and
leaves no global state behind.
"""

from __future__ import annotations

import asyncio
import platform
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager

from opentelemetry import trace
from opentelemetry.sdk.metrics import (
    AlwaysOffExemplarFilter,
    MeterProvider,
    TraceBasedExemplarFilter,
)
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    InMemoryMetricReader,
    MetricExporter,
    MetricReader,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
)
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanContext, SpanKind, StatusCode
from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector

from claimctl import __version__
from claimctl.telemetry.exposition import Exposition
from claimctl.telemetry.face import UNSEEN, Labels, Metric, Span, Telemetry, Value
from claimctl.telemetry.metrics import Instruments
from claimctl.telemetry.settings import Exporter, TelemetrySettings

SCOPE = "claimctl"


class OtelTelemetry(Telemetry):
    """The production implementation of ``Telemetry``. Call ``shutdown`` at the end.

    Args:
        processors: get the finished spans, in addition to the exporters of ``settings``.
        now, ids: Unix time in nanoseconds, and ids, passed in where runs must repeat.
    """

    def __init__(
        self,
        settings: TelemetrySettings,
        processors: tuple[SpanProcessor, ...] = (),
        now: Callable[[], int] = time.time_ns,
        ids: IdGenerator | None = None,
    ) -> None:
        self._now = now
        scraped = InMemoryMetricReader()
        self.registry = CollectorRegistry(auto_describe=False)
        """The metrics for Prometheus."""
        self.registry.register(Exposition(scraped))
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        resource = _resource(settings)
        self._tracing = TracerProvider(resource=resource, shutdown_on_exit=False, id_generator=ids)
        sinks = (*map(_processor, settings.traces), *processors)
        for processor in sinks:
            self._tracing.add_span_processor(processor)
        self._metering = MeterProvider(
            metric_readers=[scraped, *map(_reader, settings.metrics)],
            resource=resource,
            exemplar_filter=TraceBasedExemplarFilter() if sinks else AlwaysOffExemplarFilter(),
            shutdown_on_exit=False,
        )
        # Where no exporter gets spans, there are none: an id in a log would lead nowhere.
        self._tracer = self._tracing.get_tracer(SCOPE, __version__) if sinks else None
        self._instruments = Instruments(self._metering.get_meter(SCOPE, __version__))
        self.gauge(
            Metric.BUILD_INFO, 1, {"version": __version__, "python": platform.python_version()}
        )

    def span(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, client: bool = False
    ) -> AbstractContextManager[Span]:
        """A child of the current span, if any. An exception that leaves the block fails it; a
        cancellation sets ``cancelled`` instead."""
        if self._tracer is None:
            return UNSEEN
        kind = SpanKind.CLIENT if client else SpanKind.INTERNAL
        return self._span(
            self._tracer.start_span(name, kind=kind, attributes=attributes, start_time=self._now())
        )

    @contextmanager
    def _span(self, raw: trace.Span) -> Iterator[Span]:
        span = OtelSpan(raw, self._now)
        try:
            with trace.use_span(raw, record_exception=False, set_status_on_exception=False):
                yield span
        except asyncio.CancelledError:
            span.set(cancelled=True)
            raise
        except BaseException as error:
            span.fail(error)
            raise
        finally:
            raw.end(self._now())

    def add(self, metric: Metric, labels: Labels | None = None, amount: float = 1) -> None:
        self._instruments.add(metric, labels, amount)

    def observe(self, metric: Metric, seconds: float, labels: Labels | None = None) -> None:
        self._instruments.observe(metric, labels, seconds)

    def gauge(self, metric: Metric, value: float, labels: Labels | None = None) -> None:
        self._instruments.set(metric, labels, value)

    def forget(self, metric: Metric, labels: Labels) -> None:
        self._instruments.forget(metric, labels)

    def shutdown(self, seconds: float = 5.0) -> bool:
        """Send the remaining data and stop; returns False if that took longer than ``seconds``.

        An exporter that cannot reach its collector retries for longer than a pod has to stop. So it
        runs in a daemon thread, which does not keep the process alive.
        """
        closer = threading.Thread(target=self._close, daemon=True, name="telemetry-shutdown")
        closer.start()
        closer.join(seconds)
        return not closer.is_alive()

    def _close(self) -> None:
        self._tracing.shutdown()
        self._metering.shutdown()


class OtelSpan(Span):
    """A span on top of one of OpenTelemetry."""

    def __init__(self, span: trace.Span, now: Callable[[], int]) -> None:
        self._span = span
        self._now = now

    def set(self, **attributes: Value) -> None:
        for name, value in attributes.items():
            self._span.set_attribute(name.replace("__", "."), value)

    def fail(self, error: BaseException) -> None:
        self._span.set_attribute("error.type", type(error).__qualname__)
        self._span.record_exception(error, timestamp=self._now())
        self._span.set_status(StatusCode.ERROR, str(error))

    @property
    def context(self) -> object:
        return self._span.get_span_context()

    def link(self, context: object) -> None:
        if isinstance(context, SpanContext):
            self._span.add_link(context)


def _resource(settings: TelemetrySettings) -> Resource:
    attributes = {"service.version": __version__}
    if settings.service_name is not None:
        attributes["service.name"] = settings.service_name
    return Resource.create(attributes)


def _processor(exporter: Exporter) -> SpanProcessor:
    if exporter is Exporter.CONSOLE:
        return SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr))
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return BatchSpanProcessor(OTLPSpanExporter())


def _reader(exporter: Exporter) -> MetricReader:
    sink: MetricExporter
    if exporter is Exporter.CONSOLE:
        sink = ConsoleMetricExporter(out=sys.stderr)
    else:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter

        sink = OTLPMetricExporter()
    return PeriodicExportingMetricReader(sink)
