"""Which requests are sent again, and after which pause."""

from __future__ import annotations

from random import Random

import pytest

from claimctl.kube.errors import (
    ApiError,
    Conflict,
    Forbidden,
    KubeError,
    RequestTimeout,
    ServerError,
    TooManyRequests,
    Unreachable,
)
from claimctl.kube.retry import Backoff, Failures, may_read_again, surely_not_applied


def answered(kind: type[ApiError], status: int, retry_after: float | None = None) -> ApiError:
    error = kind("PATCH", "/api", status=status, message="no")
    error.retry_after = retry_after
    return error


@pytest.mark.parametrize(
    ("error", "read", "write"),
    [
        pytest.param(Unreachable("GET", "/", "refused", delivered=False), True, True, id="refused"),
        pytest.param(Unreachable("GET", "/", "reset"), True, False, id="reset"),
        pytest.param(RequestTimeout("GET", "/", message="late"), True, False, id="deadline"),
        pytest.param(answered(TooManyRequests, 429, 1.0), True, True, id="429 Retry-After"),
        pytest.param(answered(TooManyRequests, 429), True, False, id="429 of a budget"),
        pytest.param(answered(ServerError, 503, 1.0), True, True, id="503 Retry-After"),
        pytest.param(answered(ServerError, 503), True, False, id="503"),
        pytest.param(answered(ServerError, 500, 1.0), True, False, id="500 Retry-After"),
        pytest.param(answered(Conflict, 409), False, False, id="409"),
        pytest.param(answered(Forbidden, 403), False, False, id="403"),
    ],
)
def test_a_request_is_sent_again(error: KubeError, read: bool, write: bool) -> None:
    assert (may_read_again(error), surely_not_applied(error)) == (read, write)


def test_silences_and_answers_are_counted_apart() -> None:
    rng = Random(0)
    silent, refused = Unreachable("GET", "/", "no"), answered(ServerError, 500)
    failures = Failures(passing=Backoff(first=1.0, cap=64.0), away=Backoff(first=1.0, cap=2.0))
    for _ in range(10):
        assert failures.delay(silent, rng) <= 2.0
    assert failures.delay(refused, rng) <= 1.0
    pauses = [failures.delay(refused, rng) for _ in range(4)]
    assert pauses == sorted(pauses)
    failures.clear()
    assert failures.delay(refused, rng) <= 1.0
