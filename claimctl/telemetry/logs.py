"""Logs on stderr: JSON for machines, columns for people.

A message is constant; everything that varies is a key. Values that may be secret are hidden by
their key. Tracebacks do not show the values of variables.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TextIO

import structlog
from structlog.typing import ExcInfo, Processor

from claimctl.text import traceback_lines, visible

Event = MutableMapping[str, Any]

_SECRET = re.compile(r"token|password|secret|authorization|credential|private_key", re.IGNORECASE)
HIDDEN = "<hidden>"


class Format(StrEnum):
    JSON = "json"
    HUMAN = "human"
    AUTO = "auto"
    """Human on a terminal, else JSON."""


class Level(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        return logging.getLevelNamesMapping()[self.name]


def configure(
    form: Format = Format.AUTO,
    level: Level = Level.INFO,
    *,
    stream: TextIO | None = None,
    now: Callable[[], datetime] | None = None,
    final: bool = False,
) -> None:
    """Set up structlog for the process, also for the warnings of libraries.

    Args:
        now: returns the time of a line in UTC; the default is the wall clock.
        final: whether this is the only call in the process. Lines then cost less: a logger keeps
            what it found here when it was first used.
    """
    out = stream if stream is not None else sys.stderr
    human = form is Format.HUMAN or (form is Format.AUTO and out.isatty())
    shared = _shared_processors(now or (lambda: datetime.now(UTC)))
    structlog.configure(
        processors=[*shared, *_rendering(human=human, colors=out.isatty())],
        wrapper_class=structlog.make_filtering_bound_logger(level.number),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        # a test that replaces stderr must not leave loggers behind that write to it
        cache_logger_on_first_use=final and out is sys.__stderr__,
    )
    _adopt_libraries(out, [*shared, *_rendering(human=human, colors=out.isatty())])


def _shared_processors(now: Callable[[], datetime]) -> list[Processor]:
    def stamp(_logger: Any, _method: str, event: Event) -> Event:
        moment = now().astimezone(UTC)
        event["timestamp"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return event

    return [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        stamp,
        add_trace,
        hide_secrets,
    ]


def _rendering(*, human: bool, colors: bool) -> list[Processor]:
    if human:
        renderer = structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=_traceback)
        return [show_signs, renderer]
    frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
    return [
        structlog.processors.ExceptionRenderer(frames),
        structlog.processors.EventRenamer("message"),
        structlog.processors.JSONRenderer(),
    ]


def add_trace(_logger: Any, _method: str, event: Event) -> Event:
    """Add the ids of the current span, so that a line leads to its trace."""
    # a command that has not imported OpenTelemetry has no spans, and need not import it for this
    trace = sys.modules.get("opentelemetry.trace")
    if trace is None:
        return event
    context = trace.get_current_span().get_span_context()
    if context.is_valid:
        event["trace_id"] = trace.format_trace_id(context.trace_id)
        event["span_id"] = trace.format_span_id(context.span_id)
    return event


def hide_secrets(_logger: Any, _method: str, event: Event) -> Event:
    """Hide values whose key suggests a secret."""
    for key in event:
        if _SECRET.search(key):
            event[key] = HIDDEN
    return event


def show_signs(_logger: Any, _method: str, event: Event) -> Event:
    """Make texts visible before a terminal gets them; JSON escapes them itself."""
    for key, value in event.items():
        if isinstance(value, str):
            event[key] = visible(value)
    return event


def _traceback(out: TextIO, exc_info: ExcInfo) -> None:
    out.write("".join(f"\n{line}" for line in traceback_lines(exc_info[1])))


def _adopt_libraries(out: TextIO, processors: list[Processor]) -> None:
    """Format warnings of libraries (aiohttp, OpenTelemetry) as claimctl's own."""
    handler = logging.StreamHandler(out)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *processors]
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
