"""Workers: keys from a queue to a reconciler, with a span, a duration and a pause after errors."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import structlog
from structlog.contextvars import bound_contextvars

from claimctl.controller.reconcilers.result import After, Outcome
from claimctl.controller.worker_pool import Shift
from claimctl.kube.errors import ApiError, KubeError
from claimctl.kube.queue import QueueRunner
from claimctl.telemetry.face import Metric, Span, Telemetry
from claimctl.wire.seams import Clock

log = structlog.get_logger(__name__)
SHORTEST_WAIT = 0.01
"""Seconds; what rounding leaves of a wait is too little for a clock to have moved after it."""

K = TypeVar("K", bound="Named")


class Named(Protocol):
    """A key: a named tuple, whose fields say in log lines what is worked on."""

    def __hash__(self) -> int: ...

    def _asdict(self) -> dict[str, Any]: ...


C = TypeVar("C", bound=Named, contravariant=True)


class Reconciler(Protocol[C]):
    """Takes a key, reads the state again and returns one outcome; errors are raised."""

    @property
    def name(self) -> str: ...

    async def reconcile(self, key: C, span: Span) -> Outcome: ...


@dataclass(frozen=True, slots=True)
class Controller(Generic[K]):
    """A queue and who serves it."""

    queue: QueueRunner[K]
    reconciler: Reconciler[K]
    clock: Clock
    telemetry: Telemetry

    async def work(self, shift: Shift) -> None:
        """Serve the queue until the shift is over. One key's trouble does not stop the others."""
        while not shift.over:
            key = await self.queue.get()
            shift.busy = True
            try:
                await self._one(key)
            finally:
                shift.busy = False
                self.queue.done(key)

    async def _one(self, key: K) -> None:
        began = self.clock.monotonic()
        outcome = "error"
        with (
            self.telemetry.span(f"reconcile {self.reconciler.name}") as span,
            self._logged(key, span),
        ):
            try:
                _again(self.queue, key, await self.reconciler.reconcile(key, span))
                outcome = "success"
            except KubeError as error:
                span.fail(error)
                _retry(self.queue, key, error)
            except Exception as error:
                # a bug in one decision must not keep the other claims from being served
                span.fail(error)
                log.exception("reconcile failed")
                self.queue.retry(key)
        labels = {"controller": self.reconciler.name, "outcome": outcome}
        self.telemetry.observe(Metric.RECONCILE_SECONDS, self.clock.monotonic() - began, labels)

    def _logged(self, key: K, span: Span) -> AbstractContextManager[None]:
        """Say in every log line which controller works on what, and in which trace."""
        trace = {"trace_id": span.trace_id} if span.trace_id else {}
        return bound_contextvars(controller=self.reconciler.name, **key._asdict(), **trace)


def _again(queue: QueueRunner[K], key: K, outcome: Outcome) -> None:
    queue.forget(key)
    if isinstance(outcome, After):
        queue.add(key, max(outcome.seconds, SHORTEST_WAIT))


def _retry(queue: QueueRunner[K], key: K, error: KubeError) -> None:
    """Again after the pause the server asks for, and one that grows."""
    asked = error.retry_after if isinstance(error, ApiError) else None
    seconds = queue.retry(key, at_least=asked or 0.0, error=error)
    log.warning("requeued after an error", error=str(error), seconds=round(seconds, 3))
