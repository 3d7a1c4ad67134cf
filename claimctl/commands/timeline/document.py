"""A timeline as a JSON document for programs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from claimctl.commands.timeline.model import Mark, Span, Timeline


def document(timeline: Timeline) -> dict[str, Any]:
    """The stable form of a timeline."""
    return {
        "apiVersion": "cli.claimctl.io/v1alpha1",
        "kind": "ClaimTimeline",
        "namespace": timeline.namespace,
        "claim": timeline.claim,
        "begin": timeline.begin.isoformat(),
        "end": timeline.end.isoformat(),
        "source": str(timeline.source),
        "notes": list(timeline.notes),
        "spans": [_span(each) for each in timeline.spans],
        "marks": [_mark(each) for each in timeline.marks],
    }


def _span(span: Span) -> dict[str, Any]:
    return {
        "lane": str(span.lane),
        "name": span.name,
        "state": span.state,
        "start": span.start.isoformat(),
        "end": _time(span.end),
        "startedBefore": span.started_before,
    }


def _mark(mark: Mark) -> dict[str, Any]:
    return {
        "at": mark.at.isoformat(),
        "object": mark.about,
        "reason": mark.reason,
        "message": mark.message,
        "warning": mark.warning,
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
