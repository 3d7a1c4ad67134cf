"""When a request is sent again, and after how long: one policy per kind of call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random
from typing import TypeVar

import structlog
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, stop_after_attempt

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


@dataclass(frozen=True, slots=True)
class Backoff:
    """Exponential growth with jitter: between half of it and all of it. Seconds."""

    first: float
    cap: float
    factor: float = 2.0

    def delay(self, failures: int, rng: Random) -> float:
        """How long to wait after ``failures`` failures in a row, the first being 1."""
        # the exponent is bounded: a float overflows long after the cap is reached
        whole = min(self.cap, self.first * self.factor ** min(failures - 1, 64))
        return whole * rng.uniform(0.5, 1.0)


@dataclass(slots=True)
class Failures:
    """Failures in a row of one thing. Answers and their absence are counted apart.

    After an outage the first answers of an API server are often errors, too (403, 429, 503: it is
    still starting). They would get the long pauses that the outage has led to.

    Attributes:
        answered: the pauses after an answer.
        away: the pauses after a request that nobody answered.
    """

    answered: Backoff
    away: Backoff
    _answers: int = 0
    _silences: int = 0

    def delay(self, error: BaseException | None, rng: Random) -> float:
        """Count a failure; returns the seconds to wait."""
        if isinstance(error, Unreachable):
            self._silences += 1
            return self.away.delay(self._silences, rng)
        self._answers += 1
        return self.answered.delay(self._answers, rng)

    def clear(self) -> None:
        """It did well."""
        self._answers = self._silences = 0


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often a call is tried, with which pauses, and after which errors."""

    attempts: int
    backoff: Backoff
    retryable: Callable[[KubeError], bool]
    longest_retry_after: float = 60.0


def may_read_again(error: KubeError) -> bool:
    """A read changes nothing: whatever may be better next time is tried again."""
    return isinstance(error, (Unreachable, RequestTimeout, TooManyRequests, ServerError))


def surely_not_applied(error: KubeError) -> bool:
    """A write is repeated only when the server cannot have applied it.

    429 and a 503 with Retry-After are the server's own word for 'not begun'; any other 5xx, a
    reset and a deadline leave it open.
    """
    if isinstance(error, Unreachable):
        return not error.delivered
    if isinstance(error, TooManyRequests):
        # an eviction is refused by a disruption budget without Retry-After: that is an answer
        return error.retry_after is not None
    return isinstance(error, ServerError) and error.status == 503 and error.retry_after is not None


READS = RetryPolicy(4, Backoff(first=0.25, cap=5.0), may_read_again)
WRITES = RetryPolicy(4, Backoff(first=0.25, cap=5.0), surely_not_applied)
ONCE = RetryPolicy(1, Backoff(first=0.0, cap=0.0), lambda error: False)


async def with_retries(
    policy: RetryPolicy, clock: Clock, rng: Random, attempt: Callable[[int], Awaitable[T]]
) -> T:
    """What ``attempt`` returns; it is given the number of the attempt, from 0.

    Raises:
        KubeError: the last attempt's, or the first that the policy does not try again.
    """

    def pause(state: RetryCallState) -> float:
        return _pause(policy, rng, state.attempt_number, _error(state))

    retrying = AsyncRetrying(
        sleep=clock.sleep,
        stop=stop_after_attempt(policy.attempts),
        wait=pause,
        retry=retry_if_exception(lambda e: isinstance(e, KubeError) and policy.retryable(e)),
        before_sleep=_tell,
        reraise=True,
    )
    async for trial in retrying:
        number = trial.retry_state.attempt_number - 1
        with trial:
            return await attempt(number)
    raise AssertionError("tenacity ends with a result or an error")


def _pause(policy: RetryPolicy, rng: Random, failures: int, error: BaseException | None) -> float:
    asked = error.retry_after if isinstance(error, ApiError) else None
    delay = policy.backoff.delay(failures, rng)
    if asked is None:
        return delay
    # everybody was told the same number: the jitter on top keeps them from coming back as one
    return min(asked, policy.longest_retry_after) + delay


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None


def _tell(state: RetryCallState) -> None:
    seconds = round(state.upcoming_sleep, 3)
    log.debug("request is repeated", error=str(_error(state)), after_seconds=seconds)
