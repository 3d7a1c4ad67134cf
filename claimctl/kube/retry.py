"""Retry policies: which requests are sent again, and after which pause."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import structlog
from tenacity import AsyncRetrying, RetryCallState

from claimctl.kube.errors import (
    ApiError,
    KubeError,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from claimctl.wire.seams import Clock

log = structlog.get_logger(__name__)
T = TypeVar("T")

_LONGEST_RETRY_AFTER = 60.0


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential backoff in seconds, with jitter: between 50 and 100 per cent of the pause."""

    first: float
    cap: float

    def delay(self, failures: int, rng: Random) -> float:
        """Seconds to wait after ``failures`` failures in a row; the first failure is 1."""
        # the limit of the exponent prevents an overflow, long after the cap is reached
        whole = min(self.cap, self.first * 2.0 ** min(failures - 1, 64))
        return whole * rng.uniform(0.5, 1.0)


@dataclass(slots=True)
class Failures:
    """Counts failures in a row. Error answers and missing answers are counted separately.

    After an outage, the first answers of a starting API server are often errors (403, 429, 503).
    A common count would give them the long pauses of the outage.

    Attributes:
        answered: the pauses after an error answer.
        away: the pauses after a request without an answer.
    """

    answered: Backoff
    away: Backoff
    _answers: int = 0
    _silences: int = 0

    def delay(self, error: BaseException | None, rng: Random) -> float:
        """Count a failure and return the seconds to wait."""
        if isinstance(error, Unreachable):
            self._silences += 1
            return self.away.delay(self._silences, rng)
        self._answers += 1
        return self.answered.delay(self._answers, rng)

    def clear(self) -> None:
        """Reset both counts, after a success."""
        self._answers = self._silences = 0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a call is tried, with which pauses, and after which errors."""

    attempts: int
    backoff: Backoff
    retryable: Callable[[KubeError], bool]


def may_read_again(error: KubeError) -> bool:
    """Whether a read is worth another try. A read changes nothing, so repeating it is safe."""
    return isinstance(error, (Unreachable, RequestTimeout, TooManyRequests, ServerError))


def surely_not_applied(error: KubeError) -> bool:
    """Whether the server cannot have applied a write, so that repeating it is safe.

    With 429, or 503 with Retry-After, the server has not begun the request. After any other 5xx, a
    reset connection or a deadline, the write may have been applied.
    """
    if isinstance(error, Unreachable):
        return not error.delivered
    if isinstance(error, TooManyRequests):
        # a disruption budget refuses an eviction with 429 without Retry-After: do not repeat
        return error.retry_after is not None
    return isinstance(error, ServerError) and error.status == 503 and error.retry_after is not None


READS = RetryPolicy(4, Backoff(first=0.25, cap=5.0), may_read_again)
WRITES = RetryPolicy(4, Backoff(first=0.25, cap=5.0), surely_not_applied)
ONCE = RetryPolicy(1, Backoff(first=0.0, cap=0.0), lambda error: False)


async def with_retries(
    policy: RetryPolicy, clock: Clock, rng: Random, attempt: Callable[[int], Awaitable[T]]
) -> T:
    """Call ``attempt`` with the number of the attempt, from 0, until it succeeds.

    Raises:
        KubeError: the error of the last attempt, or the first error that the policy does not retry.
    """

    def again(state: RetryCallState) -> bool:
        error = _error(state)
        left = state.attempt_number < policy.attempts
        return isinstance(error, KubeError) and left and policy.retryable(error)

    def pause(state: RetryCallState) -> float:
        error = _error(state)
        asked = error.retry_after if isinstance(error, ApiError) else None
        delay = policy.backoff.delay(state.attempt_number, rng)
        if asked is None:
            return delay
        # all clients got the same number; the jitter keeps them from coming back at the same time
        return min(asked, _LONGEST_RETRY_AFTER) + delay

    retrying = AsyncRetrying(
        retry=again, wait=pause, sleep=clock.sleep, before_sleep=_log, reraise=True
    )
    async for attempted in retrying:
        with attempted:
            return await attempt(attempted.retry_state.attempt_number - 1)
    raise AssertionError("the last attempt returns or raises")


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None


def _log(state: RetryCallState) -> None:
    after = round(state.upcoming_sleep, 3)
    log.debug("request is repeated", error=str(_error(state)), after_seconds=after)
