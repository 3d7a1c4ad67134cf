"""No request makes the server fail, hang, or tell what is no answer. ``make fuzz`` asks more."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from hypothesis import HealthCheck, given, settings
from kube_in_process.seams import HttpResponse
from kube_in_process.virtual import run

from judges.fuzz.requests import FuzzRequest, sequences
from judges.fuzz.server import FuzzTally, Unsound, asked, furnished, judge


@settings(
    max_examples=150,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(sequences())
def _try_many(requests: list[FuzzRequest]) -> None:
    run(asked(furnished(), requests, FuzzTally()), limit=40_000)


def test_no_sequence_of_requests_breaks_the_server() -> None:
    furnished()  # parsing CEL raises the limit of recursion, which hypothesis must not see
    _try_many()


async def _nothing() -> AsyncIterator[bytes]:
    yield b""


@pytest.mark.parametrize(
    ("status", "body", "text"),
    [
        (500, b'{"code":500,"message":"boom"}', "500 that no real server gives: boom"),
        (404, b'{"code":400}', "404 with a body of {'code': 400}"),
        (200, b'{"a":NaN}', "no JSON: b'{\"a\":NaN}'"),
    ],
)
def test_a_wrong_answer_is_noticed(status: int, body: bytes, text: str) -> None:
    headers = {"content-type": "application/json", "content-length": str(len(body))}
    with pytest.raises(Unsound) as raised:
        judge(HttpResponse(status, headers, _nothing()), body)
    assert str(raised.value) == text
