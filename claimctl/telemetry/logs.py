"""Logs on stderr: JSON for machines, columns for people.

A message is constant; everything that varies is a key. Values that may be secret are hidden by
their key. Tracebacks do not show the values of variables.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, TextIO

import structlog
from cachetools import LRUCache
from structlog.contextvars import merge_contextvars
from structlog.typing import ExcInfo, Processor

from claimctl.text import traceback_lines, visible

Event = MutableMapping[str, Any]

_SECRET = re.compile(r"token|password|secret|authorization|credential|private_key", re.IGNORECASE)
HIDDEN = "<hidden>"

_MINUTE = timedelta(minutes=1)
_REMEMBERED = 1_000
"""The different lines that are remembered so that equal ones are left out."""


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
    colors = out.isatty()
    human = form is Format.HUMAN or (form is Format.AUTO and colors)
    clock = now or (lambda: datetime.now(UTC))
    repeated, shared = Repeated(clock), _shared_processors(clock)
    structlog.configure(
        # what is bound, such as the claim, tells lines apart
        processors=[merge_contextvars, repeated, *shared, *_rendering(human=human, colors=colors)],
        wrapper_class=structlog.make_filtering_bound_logger(level.number),
        logger_factory=structlog.WriteLoggerFactory(file=out),
        # a test that replaces stderr must not leave loggers behind that write to it
        cache_logger_on_first_use=final and out is sys.__stderr__,
    )
    _adopt_libraries(
        out, repeated, [merge_contextvars, *shared, *_rendering(human=human, colors=colors)]
    )


def _shared_processors(now: Callable[[], datetime]) -> list[Processor]:
    def stamp(_logger: Any, _method: str, event: Event) -> Event:
        moment = now().astimezone(UTC)
        event["timestamp"] = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return event

    return [
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


class Repeated:
    """Lets one of equal warnings and errors pass a minute, and says later how many did not.

    A loop that fails would else fill the disk of its node: with no file left, asyncio logs the same
    traceback a hundred times a second. Lines are equal if all their values are, also the text of
    their exception, so that no object, claim or reason goes unnamed. What is decided and done is
    logged at the level info, and is never left out.
    """

    def __init__(self, now: Callable[[], datetime]) -> None:
        self._now = now
        self._seen: LRUCache[int, tuple[datetime, int]] = LRUCache(_REMEMBERED)
        """By hash of a line: when it passed, and how many have not since then."""

    def __call__(self, _logger: Any, method: str, event: Event) -> Event:
        """A processor of structlog."""
        if method in _SEVERE:
            error = sys.exc_info()[1] if event.get("exc_info") is True else None
            left_out = self.left_out((*event.items(), repr(error)))
            if left_out is None:
                raise structlog.DropEvent
            if left_out:
                event["equal_lines_left_out"] = left_out
        return event

    def filter(self, record: logging.LogRecord) -> bool:
        """A filter of a logging handler."""
        error = record.exc_info[1] if record.exc_info else None
        left_out = self.left_out((record.name, record.getMessage(), repr(error)))
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out} equal lines left out)", ()
        return left_out is not None

    def left_out(self, line: tuple[object, ...]) -> int | None:
        """How many equal lines were left out before this one; None if this one is to be."""
        key, now = hash(str(line)), self._now()
        since, count = self._seen.get(key, (None, 0))
        if since is not None and timedelta() <= now - since < _MINUTE:
            self._seen[key] = since, count + 1
            return None
        self._seen[key] = now, 0
        return count


_SEVERE = frozenset({"warning", "error", "exception", "critical"})


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


def _adopt_libraries(out: TextIO, repeated: Repeated, processors: list[Processor]) -> None:
    """Format warnings of libraries (aiohttp, OpenTelemetry) as claimctl's own."""
    handler = logging.StreamHandler(out)
    handler.addFilter(repeated.filter)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *processors]
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
