"""Spans as an exporter gets them."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import (
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.trace import SpanKind, StatusCode

from claimctl.telemetry.face import Telemetry
from claimctl.telemetry.otel import OtelTelemetry
from claimctl.telemetry.settings import Exporter, TelemetrySettings


class CountingIds(IdGenerator):
    """Ids 1, 2, 3, so that runs repeat."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def generate_span_id(self) -> int:
        return next(self._numbers)

    def generate_trace_id(self) -> int:
        return next(self._numbers)


@dataclass
class OtelStage:
    telemetry: OtelTelemetry
    exporter: InMemorySpanExporter

    @property
    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}


@pytest.fixture
def stage() -> Iterator[OtelStage]:
    exporter = InMemorySpanExporter()
    ticks = itertools.count(1000, 1000)
    telemetry = OtelTelemetry(
        TelemetrySettings(),
        (SimpleSpanProcessor(exporter),),
        lambda: next(ticks),
        CountingIds(),
    )
    yield OtelStage(telemetry, exporter)
    assert telemetry.shutdown()


def test_it_is_the_face_that_the_others_know(stage: OtelStage) -> None:
    telemetry: Telemetry = stage.telemetry
    with telemetry.span("reconcile"):
        pass
    assert list(stage.spans) == ["reconcile"]


def test_spans_nest_and_their_times_and_ids_are_the_ones_handed_in(stage: OtelStage) -> None:
    with stage.telemetry.span("outer", {"k8s.namespace.name": "ml"}) as span:
        span.set(claimctl__claim__verdict="keep")
        with stage.telemetry.span("PATCH", client=True):
            pass
    inner, outer = stage.spans["PATCH"], stage.spans["outer"]
    assert (outer.start_time, inner.start_time, inner.end_time, outer.end_time) == (
        1000,
        2000,
        3000,
        4000,
    )
    assert dict(outer.attributes or {}) == {
        "k8s.namespace.name": "ml",
        "claimctl.claim.verdict": "keep",
    }
    assert (outer.kind, inner.kind) == (SpanKind.INTERNAL, SpanKind.CLIENT)
    assert outer.context is not None
    assert inner.parent is not None
    assert inner.parent.span_id == outer.context.span_id
    assert {outer.context.trace_id, outer.context.span_id} == {1, 2}


def test_a_span_is_linked_to_another_one(stage: OtelStage) -> None:
    with stage.telemetry.span("first") as first:
        context = first.context
    with stage.telemetry.span("second") as second:
        second.link(context)
        second.link(None)
    assert [link.context for link in stage.spans["second"].links] == [context]


@pytest.mark.real_time(120)
async def test_tasks_have_spans_of_their_own(stage: OtelStage) -> None:
    async def work(name: str, first: asyncio.Event, second: asyncio.Event) -> None:
        with stage.telemetry.span(name):
            first.set()
            await second.wait()
            with stage.telemetry.span(f"{name} child"):
                pass

    a, b = asyncio.Event(), asyncio.Event()
    await asyncio.gather(work("one", a, b), work("two", b, a))
    for name in ("one", "two"):
        parent, context = stage.spans[f"{name} child"].parent, stage.spans[name].context
        assert parent is not None
        assert context is not None
        assert parent.span_id == context.span_id


def test_an_exception_marks_the_span_and_goes_on(stage: OtelStage) -> None:
    with pytest.raises(ValueError, match="no such claim"), stage.telemetry.span("reconcile"):
        raise ValueError("no such claim")
    span = stage.spans["reconcile"]
    assert (span.status.status_code, span.status.description) == (
        StatusCode.ERROR,
        "no such claim",
    )
    assert dict(span.attributes or {}) == {"error.type": "ValueError"}
    assert [(event.name, event.timestamp) for event in span.events] == [("exception", 2000)]


def test_being_cancelled_is_no_failure(stage: OtelStage) -> None:
    with pytest.raises(asyncio.CancelledError), stage.telemetry.span("reconcile"):
        raise asyncio.CancelledError
    span = stage.spans["reconcile"]
    assert span.status.status_code is StatusCode.UNSET
    assert dict(span.attributes or {}) == {"cancelled": True}


def test_the_service_is_named_unless_the_environment_names_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "gpu-holder")
    names = []
    for settings in (TelemetrySettings(), TelemetrySettings(service_name=None)):
        exporter = InMemorySpanExporter()
        telemetry = OtelTelemetry(settings, processors=(SimpleSpanProcessor(exporter),))
        with telemetry.span("x"):
            pass
        names.append(exporter.get_finished_spans()[0].resource.attributes["service.name"])
        telemetry.shutdown()
    assert names == ["claimctl", "gpu-holder"]


def test_nothing_is_traced_when_the_sdk_is_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    exporter = InMemorySpanExporter()
    telemetry = OtelTelemetry(TelemetrySettings(), processors=(SimpleSpanProcessor(exporter),))
    with telemetry.span("x") as span:
        span.set(a=1)
    assert telemetry.shutdown()
    assert exporter.get_finished_spans() == ()


def test_spans_on_the_console_go_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    telemetry = OtelTelemetry(TelemetrySettings(traces=(Exporter.CONSOLE,)))
    with telemetry.span("reconcile"):
        pass
    assert telemetry.shutdown()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err)["name"] == "reconcile"


class Stuck(SpanExporter):
    """An exporter whose collector does not answer until it is let go."""

    def __init__(self) -> None:
        self.let_go = threading.Event()

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.let_go.wait(30)


def test_a_collector_that_does_not_answer_cannot_hold_up_the_end() -> None:
    stuck = Stuck()
    telemetry = OtelTelemetry(TelemetrySettings(), processors=(SimpleSpanProcessor(stuck),))
    assert not telemetry.shutdown(seconds=0.01)
    stuck.let_go.set()
