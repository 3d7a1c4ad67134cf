"""All that other packages know of telemetry: metrics, spans and lines of logs.

- ``Metric`` names every metric. A further one also needs its labels in ``telemetry.metrics``.
- ``Telemetry`` and ``Span`` drop everything. Where something reads it, ``telemetry.otel`` has the
  classes that override them. So this module imports no exporter and no SDK.
- ``LateLogger`` logs, and ``LateLogs`` waits for its first line. Only that line imports structlog.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from enum import StrEnum
from typing import Any

Value = str | bool | int | float
Labels = Mapping[str, str]


class Metric(StrEnum):
    """Every metric by its Prometheus name; ``claimctl.telemetry.metrics`` has their labels."""

    # an Enum's own hash is a function in Python, called for every lookup of a metric
    __hash__ = str.__hash__

    CLAIMS = "claimctl_claims"
    RESERVATIONS = "claimctl_reservations"
    CLAIMS_NEAR_LIMIT = "claimctl_claims_near_limit"
    RESERVATIONS_NOT_READY = "claimctl_reservations_not_ready"
    DANGLING_REFERENCES = "claimctl_dangling_references"
    UNKNOWN_WORKLOADS = "claimctl_unknown_workloads"
    ALLOCATION_TO_HOLD_SECONDS = "claimctl_allocation_to_hold_seconds"
    PODS_LISTED_AHEAD = "claimctl_pods_listed_ahead_total"
    RELEASES = "claimctl_releases_total"
    RELEASE_WAIT_SECONDS = "claimctl_release_wait_seconds"
    WRITE_CONFLICTS = "claimctl_write_conflicts_total"
    RECONCILE_SECONDS = "claimctl_reconcile_duration_seconds"
    WORKQUEUE_DEPTH = "claimctl_workqueue_depth"
    WORKQUEUE_SECONDS = "claimctl_workqueue_queue_duration_seconds"
    LEADER = "claimctl_leader"
    WATCH_BROKEN = "claimctl_watch_broken"
    UNREADABLE_OBJECTS = "claimctl_unreadable_objects"
    CACHE_BYTES = "claimctl_cache_bytes"
    RESCHEDULE_EVICTIONS = "claimctl_reschedule_evictions_total"
    RESCHEDULE_SKIPPED = "claimctl_reschedule_skipped_total"
    RESCHEDULE_MOVES = "claimctl_reschedule_moves_total"
    RESCHEDULE_TAINTS = "claimctl_reschedule_taints"
    RESCHEDULE_AVOIDANCES = "claimctl_reschedule_avoidances"
    RESCHEDULE_REFUSED = "claimctl_reschedule_refused_pods_total"
    RESCHEDULE_RUN_SECONDS = "claimctl_reschedule_run_duration_seconds"
    BUILD_INFO = "claimctl_build_info"
    REQUESTS = "rest_client_requests_total"
    """This name and the next are those of Kubernetes' own clients, so that dashboards fit."""
    REQUEST_SECONDS = "rest_client_request_duration_seconds"


class Span:
    """One piece of work in a trace. This class records nothing; ``OtelSpan`` does."""

    def set(self, **attributes: Value) -> None:
        """Add attributes. A double underscore in a name means a dot."""

    def fail(self, error: BaseException) -> None:
        """Mark the span as failed by ``error``."""

    @property
    def context(self) -> object:
        """What other spans can link to; None where nothing reads spans."""
        return None

    def link(self, context: object) -> None:
        """Link the span to another one, whose ``context`` this is: both belong to one story."""


UNSEEN: AbstractContextManager[Span] = nullcontext(Span())
"""A span where nothing reads spans. All blocks may share it, also at the same time."""


class Telemetry:
    """Drops all spans and metrics: for tests, simulation and one-shot commands. ``OtelTelemetry``
    exports them."""

    def span(
        self, name: str, attributes: Mapping[str, Value] | None = None, *, client: bool = False
    ) -> AbstractContextManager[Span]:
        """A span around a block; ``client`` marks a request to a server."""
        return UNSEEN

    def add(self, metric: Metric, labels: Labels | None = None, amount: float = 1) -> None:
        """Count something that happened."""

    def observe(self, metric: Metric, seconds: float, labels: Labels | None = None) -> None:
        """Record a duration in seconds."""

    def gauge(self, metric: Metric, value: float, labels: Labels | None = None) -> None:
        """Set a current value."""

    def forget(self, metric: Metric, labels: Labels) -> None:
        """Drop the value of a gauge: what it counted is gone."""


class LateLogger:
    """A logger of structlog. All modules of claimctl log by one.

    Most commands log nothing, and to import structlog takes longer than many of these modules. So
    the first line that is logged imports it, and lets ``LateLogs`` configure it.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._logger: Any = None

    def __getattr__(self, method: str) -> Any:
        for handler in logging.getLogger().handlers:
            if isinstance(handler, LateLogs):
                handler.configure()
        if self._logger is None:
            import structlog

            self._logger = structlog.get_logger(self._name)
        return getattr(self._logger, method)


class LateLogs(logging.Handler):
    """The logs of a command until there is a line for them, also of a library.

    Args:
        configure: sets up structlog, and puts another handler in this one's place.
    """

    def __init__(self, configure: Callable[[], None]) -> None:
        super().__init__()
        self.configure = configure

    def emit(self, record: logging.LogRecord) -> None:
        self.configure()
        logging.getLogger().handle(record)

    def begin(self) -> None:
        """Become the handler of all logs of the process, from warnings on."""
        root = logging.getLogger()
        root.handlers[:] = [self]
        root.setLevel(logging.WARNING)
