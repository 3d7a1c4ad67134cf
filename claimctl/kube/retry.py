"""Which requests may be sent again, and after which pause anything is tried again."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from random import Random

from claimctl.kube.errors import (
    ErrorKind,
    KubeError,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    Unreachable,
    kind_of,
)


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
    """Counts failures in a row, those of one kind together.

    After an outage, the first answers of a starting API server are often errors (403, 429, 503).
    A common count would give them the long pauses of the outage.

    Attributes:
        passing: the pauses after most error answers.
        away: the pauses after a request without an answer.
        refused: the pauses after a request that the server refuses; as ``passing`` if it is None.
    """

    passing: Backoff
    away: Backoff
    refused: Backoff | None = None
    _counts: Counter[ErrorKind] = field(default_factory=Counter)

    def delay(self, error: BaseException | None, rng: Random) -> float:
        """Count a failure and return the seconds to wait."""
        kind = kind_of(error)
        backoff = self.passing
        if kind is ErrorKind.AWAY:
            backoff = self.away
        elif kind is not ErrorKind.PASSING and self.refused is not None:
            backoff = self.refused
        else:
            kind = ErrorKind.PASSING
        self._counts[kind] += 1
        return backoff.delay(self._counts[kind], rng)

    def clear(self) -> None:
        """Reset all counts, after a success."""
        self._counts.clear()


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
