"""Traces arrive by OTLP at a receiver, with the spans and attributes of docs/monitoring.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from claimctl import __version__
from tests.monitoring.working import OPENMETRICS, receiving, working

PAGE = (Path(__file__).parents[2] / "docs" / "monitoring.md").read_text()
ROW = re.compile(r"^\| `(reconcile [a-z]+|METHOD PATH)` \| (.*?) \|", re.MULTILINE)
SOMETIMES = {"http.request.resend_count", "error.type", "k8s.namespace.name"}
"""Attributes that only some requests have."""


def documented() -> dict[str, set[str]]:
    """The attributes of each span, by the table of the page."""
    return {name: set(re.findall(r"`([^`]+)`", cell)) for name, cell in ROW.findall(PAGE)}


def attributes(span: Span) -> set[str]:
    return {each.key for each in span.attributes}


@pytest.mark.real_time(180)
async def test_spans_arrive_as_documented(tmp_path: Path) -> None:
    async with receiving() as receiver:
        variables = {"OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url, "OTEL_BSP_SCHEDULE_DELAY": "200"}
        async with working(tmp_path, **variables) as controller:
            scraped = await controller.scrape(OPENMETRICS)
            log = controller.log
    assert receiver.services == {"claimctl"}
    _check_start([line for line in log if line["message"] == "starting"])
    spans = {span.span_id: span for span in receiver.spans}
    _check_names_and_attributes(receiver.spans)
    claims = [span for span in receiver.spans if span.name == "reconcile claim"]
    written = [span for span in receiver.spans if span.name.startswith("PATCH ")]
    parents = [spans[span.parent_span_id].name for span in written if span.parent_span_id]
    assert "reconcile claim" in parents
    _check_exemplars(scraped, {span.trace_id.hex() for span in claims})
    traced = {line["span_id"] for line in log if line.get("controller") == "claim"}
    assert traced
    assert traced <= {span.span_id.hex() for span in receiver.spans}


def _check_start(lines: list[dict[str, object]]) -> None:
    """The log says what runs where, and which settings are not the defaults."""
    [line] = lines
    assert line["version"] == __version__
    assert str(line["server"]).startswith("https://127.0.0.1:")
    assert (line["settle_seconds"], line["binding_seconds"]) == (0.2, 1.0)
    assert "workers" not in line


def _check_names_and_attributes(spans: list[Span]) -> None:
    table = documented()
    requests = table.pop("METHOD PATH")
    for span in spans:
        if span.kind == Span.SPAN_KIND_CLIENT:
            assert re.fullmatch(r"(GET|POST|PATCH|DELETE) /[^?]*", span.name)
            assert requests - SOMETIMES <= attributes(span) <= requests | SOMETIMES
        else:
            assert attributes(span) <= table[span.name] | {"error.type", "cancelled"}
    seen = {name: set[str]() for name in table}
    for span in spans:
        if span.name in seen:
            seen[span.name] |= attributes(span)
    for name in ("reconcile claim", "reconcile workload"):
        assert {each for each in table[name] if "deployment" in each or "claim." in each} <= seen[
            name
        ]


def _check_exemplars(scraped: str, traces: set[str]) -> None:
    """The traces that exemplars of claims' reconciles name have arrived."""
    families = text_string_to_metric_families(scraped)  # type: ignore[no-untyped-call] # it has no hints
    named = {
        sample.exemplar.labels["trace_id"]
        for family in families
        for sample in family.samples
        if sample.exemplar and sample.labels.get("controller") == "claim"
    }
    assert named
    assert named <= traces
