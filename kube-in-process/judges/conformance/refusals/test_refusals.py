"""kube-in-process refuses what a real server refused, in its words, and takes the rest."""

from __future__ import annotations

import pytest
from kube_in_process_tests.servers import server

from judges.conformance.refusals.cases import RefusedRequest, recorded, requests, shown


@pytest.mark.parametrize("request_", requests(), ids=lambda request: request.case)
async def test_an_answer_is_that_of_a_real_server(request_: RefusedRequest) -> None:
    answer = await server().send(
        request_.method, request_.path, request_.body, dict(request_.headers)
    )
    assert shown(answer.status, answer.body) == recorded("1.36")[request_.case]


def test_each_answer_belongs_to_a_request() -> None:
    assert list(recorded("1.36")) == [request.case for request in requests()]
