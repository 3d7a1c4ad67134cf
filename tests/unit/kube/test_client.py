"""What a client sends, what it makes of the answers, and when it asks again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any, TypeVar

import pytest
from kube_in_process.virtual import run

from claimctl.kube import errors
from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.kube.errors import Unreachable
from claimctl.telemetry.face import Metric
from claimctl.wire.access_reviews import Right
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.coordination import Lease, LeaseSpec
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.pods import Pod
from claimctl.wire.resources import LEASES, NODES, PODS, RESOURCECLAIMS
from tests.support.telemetry import Recorder
from tests.support.wire_server import (
    Reply,
    Wait,
    WireServer,
    failure,
    listing,
    ok,
    silence,
    thing,
    unreachable,
)

T = TypeVar("T")


def refused() -> Reply:
    return unreachable(Unreachable("GET", "/", "refused", delivered=False))


def reset() -> Reply:
    return unreachable(Unreachable("GET", "/", "reset"))


def ask(
    server: WireServer, use: Callable[[Client], Awaitable[T]], recorder: Recorder | None = None
) -> T:
    async def main() -> T:
        return await use(Client(server, LoopClock(), recorder or Recorder(), rng=Random(1)))

    return run(main())


def patch(client: Client) -> Awaitable[ResourceClaim]:
    change = {"metadata": {"labels": {"a": "b"}}, "status": {"allocation": None}}
    return client.merge_patch(
        RESOURCECLAIMS,
        ObjectMeta(name="c", namespace="ns", resource_version="7"),
        change,
        subresource="status",
    )


def test_a_get_asks_for_one_object_and_decodes_what_it_knows() -> None:
    server = WireServer(ok(thing("a", 5, spec={"nodeName": "n", "unknown": [1]})))
    pod = ask(server, lambda client: client.get(PODS, "a", "ns"))
    assert (pod.metadata.name, pod.spec.node_name) == ("a", "n")
    assert server.lines == ["GET /api/v1/namespaces/ns/pods/a"]
    assert server.requests[0].headers["accept"] == "application/json"


def test_a_list_gathers_all_pages_of_a_quorum_read() -> None:
    server = WireServer(listing(9, thing("a", 1), token="t1"), listing(9, thing("b", 2)))
    found = ask(server, lambda client: client.list(PODS, label_selector="x=y", limit=1))
    assert [pod.metadata.name for pod in found.items] == ["a", "b"]
    assert found.resource_version == "9"
    assert [request.query for request in server.requests] == [
        {"labelSelector": "x=y", "limit": "1"},
        {"labelSelector": "x=y", "limit": "4", "continue": "t1"},
    ]


def test_only_the_first_page_of_an_earlier_state_names_its_version() -> None:
    server = WireServer(listing(9, thing("a", 1), token="t1"), listing(9, thing("b", 2)))

    async def names(client: Client) -> list[str]:
        pages = client.pages(PODS, limit=1, version="9")
        return [pod.metadata.name async for page in pages for pod in page.items]

    assert ask(server, names) == ["a", "b"]
    assert [request.query for request in server.requests] == [
        {"limit": "1", "resourceVersion": "9", "resourceVersionMatch": "Exact"},
        {"limit": "4", "continue": "t1"},
    ]


def test_a_list_whose_page_token_expires_is_asked_for_in_one_piece() -> None:
    server = WireServer(
        listing(9, thing("a", 1), token="t1"),
        failure(410, "Expired"),
        listing(12, thing("a", 1), thing("b", 2)),
    )
    found = ask(server, lambda client: client.list(PODS))
    assert [pod.metadata.name for pod in found.items] == ["a", "b"]
    assert server.requests[-1].query == {"limit": "0"}


def fat(count: int, size: int, token: str = "") -> Reply:
    things = (thing(f"p{number}", 1, spec={"x": "x" * size}) for number in range(count))
    return listing(9, *things, token=token)


def limits(server: WireServer) -> list[str]:
    ask(server, lambda client: client.list(PODS, limit=50))
    return [request.query["limit"] for request in server.requests]


def test_pages_grow_until_they_have_eight_megabytes_or_a_thousand_objects() -> None:
    small = [fat(2, 100, f"t{number}") for number in range(3)]
    assert limits(WireServer(*small, fat(2, 100))) == ["50", "200", "800", "1000"]
    large = WireServer(fat(40, 200_000, "t1"), fat(40, 100_000, "t2"), fat(1, 1))
    assert limits(large) == ["50", "39", "79"]


def test_a_page_that_is_too_long_is_asked_for_again_with_fewer_objects() -> None:
    fitting = fat(2, 100, "t1"), fat(1, 9, "t2"), fat(1, 9)
    long = fat(20, 1_000_000), fat(20, 1_000_000)
    server = WireServer(fitting[0], *long, *fitting[1:])
    assert limits(server) == ["50", "200", "25", "3", "12"]
    assert [request.query.get("continue") for request in server.requests[1:4]] == ["t1"] * 3
    assert all(reply.closed for reply in long)


def test_a_list_in_one_piece_that_is_too_long_is_read_in_pages() -> None:
    pages = WireServer(listing(9, token="t"), failure(410, "Expired"), endless(), fat(1, 9))
    found = ask(pages, lambda client: client.list(PODS))
    assert len(found.items) == 1
    assert [request.query["limit"] for request in pages.requests] == ["500", "1000", "0", "500"]


def endless() -> Reply:
    """70 MB, and more would come."""
    return Reply(body=[b'{"items":[', *[b" " * 1_000_000] * 70, Wait()])


@pytest.mark.parametrize("status", [200, 500])
def test_an_answer_without_end_is_refused_in_one_line_that_names_the_request(status: int) -> None:
    server = WireServer(replace(endless(), status=status))
    with pytest.raises(errors.AnswerTooLong) as refused:
        ask(server, lambda client: client.get_raw("/version"))
    assert str(refused.value) == "GET /version: the answer has more than 64 MB"
    assert len(server.requests) == 1


def test_a_create_fills_in_the_kind_and_names_the_manager() -> None:
    server = WireServer(ok(thing("l", 1), 201))
    body = Lease(metadata=ObjectMeta(name="l"), spec=LeaseSpec(holder_identity="me"))
    ask(server, lambda client: client.create(LEASES, body, "ns", dry_run=True))
    sent = server.requests[0]
    assert sent.line == "POST /apis/coordination.k8s.io/v1/namespaces/ns/leases"
    assert sent.query == {"fieldManager": "claimctl", "dryRun": "All"}
    assert sent.body == {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l"},
        "spec": {"holderIdentity": "me"},
    }


def test_a_patch_carries_the_version_it_was_decided_on() -> None:
    server = WireServer(ok(thing("c", 8)))
    ask(server, patch)
    sent = server.requests[0]
    assert sent.line == "PATCH /apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status"
    assert sent.headers["content-type"] == "application/merge-patch+json"
    assert sent.body == {
        "metadata": {"labels": {"a": "b"}, "resourceVersion": "7"},
        "status": {"allocation": None},
    }


CLAIM = ObjectMeta(name="c", namespace="ns", uid="u", resource_version="7")
REMOVAL = {"op": "remove", "path": "/metadata/finalizers/0"}


@pytest.mark.parametrize(
    ("any_version", "required"),
    [
        (False, {"op": "replace", "path": "/metadata/resourceVersion", "value": "7"}),
        (True, {"op": "test", "path": "/metadata/uid", "value": "u"}),
    ],
)
def test_a_json_patch_begins_with_what_it_requires(
    any_version: bool, required: dict[str, str]
) -> None:
    server = WireServer(ok(thing("c", 8)))
    ask(server, lambda c: c.json_patch(RESOURCECLAIMS, CLAIM, [REMOVAL], any_version=any_version))
    sent = server.requests[0]
    assert sent.headers["content-type"] == "application/json-patch+json"
    assert sent.body == [required, REMOVAL]


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("the server rejected our request due to an error in our request", errors.Conflict),
        ("status.reservedFor: Too many: 257: must have at most 256 items", errors.Invalid),
    ],
)
def test_a_json_patch_that_does_not_fit_is_a_conflict_and_one_that_is_refused_is_not(
    message: str, expected: type[errors.ApiError]
) -> None:
    server = WireServer(failure(422, "Invalid", message=message))
    with pytest.raises(expected) as raised:
        ask(server, lambda c: c.json_patch(RESOURCECLAIMS, CLAIM, [REMOVAL]))
    assert type(raised.value) is expected


def test_a_patch_without_a_version_is_never_sent() -> None:
    server, node = WireServer(), ObjectMeta(name="n", resource_version="")
    for patched in (
        lambda c: c.merge_patch(NODES, node, {}),
        lambda c: c.json_patch(NODES, node, []),
    ):
        with pytest.raises(errors.BadRequest, match="needs a resourceVersion"):
            ask(server, patched)
    assert server.lines == []


def test_a_delete_carries_its_preconditions() -> None:
    server = WireServer(ok({"kind": "Status", "status": "Success"}))
    ask(server, lambda c: c.delete(PODS, "a", "ns", uid="u", resource_version="4"))
    assert server.requests[0].body == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "propagationPolicy": "Background",
        "preconditions": {"uid": "u", "resourceVersion": "4"},
    }


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%2fb"])
def test_a_name_that_would_address_something_else_is_refused_here(name: str) -> None:
    server = WireServer()
    with pytest.raises(errors.BadRequest, match="is not a name of a Pod"):
        ask(server, lambda client: client.get(PODS, name, "ns"))
    assert server.lines == []


def test_an_access_review_asks_for_exactly_what_was_named() -> None:
    server = WireServer(ok({"status": {"allowed": True}}, 201))
    allowed = ask(
        server,
        lambda c: c.allowed(Right("update", "resource.k8s.io", "resourceclaims", "binding")),
    )
    assert allowed is True
    assert server.requests[0].body["spec"] == {
        "resourceAttributes": {
            "verb": "update",
            "group": "resource.k8s.io",
            "resource": "resourceclaims",
            "subresource": "binding",
        }
    }


def test_a_read_is_asked_again_after_whatever_may_pass() -> None:
    server = WireServer(reset(), ok(thing("a", 1)))
    ask(server, lambda client: client.get(PODS, "a", "ns"))
    assert len(server.requests) == 2
    assert 0.125 <= server.times[1] <= 0.25


def test_a_read_gives_up_after_four_attempts_with_growing_pauses() -> None:
    server = WireServer(*(refused() for _ in range(9)))
    with pytest.raises(Unreachable):
        ask(server, lambda client: client.get(PODS, "a", "ns"))
    pauses = [b - a for a, b in pairwise(server.times)]
    assert len(pauses) == 3
    assert pauses[0] < pauses[1] < pauses[2] <= 1.0


def test_a_write_that_surely_was_not_applied_is_sent_again() -> None:
    server = WireServer(failure(503, "ServiceUnavailable", retry_after=2), ok(thing("c", 8)))
    ask(server, patch)
    assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (reset, Unreachable),
        (silence, errors.RequestTimeout),
        (lambda: failure(504, "Timeout", retry_after=1), errors.ServerError),
    ],
    ids=["reset", "silence", "504"],
)
def test_a_write_that_may_have_been_applied_is_left_to_the_caller(
    first: Callable[[], Reply], expected: type[Exception]
) -> None:
    server = WireServer(first(), ok(thing("c", 8)))
    with pytest.raises(expected):
        ask(server, patch)
    assert len(server.requests) == 1


def test_the_servers_wish_to_wait_is_honoured_and_jittered_but_bounded() -> None:
    server = WireServer(
        failure(429, "TooManyRequests", retry_after=7),
        failure(429, "TooManyRequests", retry_after=86400),
        ok(thing("a", 1)),
    )
    ask(server, lambda client: client.get(PODS, "a", "ns"))
    assert 7.0 < server.times[1] <= 7.25
    assert 60.0 < server.times[2] - server.times[1] <= 60.5


@pytest.mark.parametrize(
    "late",
    [silence(), Reply(body=[b'{"metadata"', Wait()])],
    ids=["no answer", "half an answer"],
)
def test_a_request_has_a_deadline_to_the_end_of_its_answer(late: Reply) -> None:
    with pytest.raises(errors.RequestTimeout, match="within 30 s"):
        ask(WireServer(late), patch)


@pytest.mark.parametrize("body", [b"<html>", b'{"metadata": 7}', b""])
def test_an_answer_of_another_shape_is_a_bad_answer(body: bytes) -> None:
    with pytest.raises(errors.BadAnswer, match="unexpected answer"):
        ask(WireServer(Reply(body=[body])), lambda client: client.get(PODS, "a", "ns"))


@pytest.mark.parametrize("status", [300, 302, 399])
def test_a_redirect_is_not_followed(status: int) -> None:
    reply = Reply(status, headers={"location": "https://login"})
    with pytest.raises(errors.BadAnswer, match="redirected to https://login"):
        ask(WireServer(reply), lambda client: client.get_raw("/version"))


def test_the_first_status_after_redirects_is_an_error_of_the_request() -> None:
    with pytest.raises(errors.BadRequest, match="no"):
        ask(WireServer(failure(400, "BadRequest")), lambda client: client.get_raw("/version"))


def test_write_conflicts_are_counted_by_resource() -> None:
    recorder = Recorder()
    with pytest.raises(errors.Conflict):
        ask(WireServer(failure(409, "Conflict")), patch, recorder)
    conflicts = [each for each in recorder.metrics if each[0] is Metric.WRITE_CONFLICTS]
    assert conflicts == [(Metric.WRITE_CONFLICTS, {"resource": "resourceclaims"}, 1)]


def test_requests_are_counted_by_method_and_code_and_those_without_an_answer_too() -> None:
    recorder = Recorder()
    with pytest.raises(errors.Conflict):
        ask(WireServer(failure(409, "Conflict")), patch, recorder)
    with pytest.raises(errors.RequestTimeout):
        ask(WireServer(), patch, recorder)
    counted = [labels for metric, labels, _ in recorder.metrics if metric is Metric.REQUESTS]
    assert counted[0] == {"method": "PATCH", "code": "409"}
    assert {"method": "PATCH", "code": "<error>"} in counted[1:]
    timed = [labels for metric, labels, _ in recorder.metrics if metric is Metric.REQUEST_SECONDS]
    assert timed == [{"verb": "PATCH"}] * len(counted)


def test_not_found_is_no_failure_of_a_span_where_it_is_an_answer() -> None:
    recorder = Recorder()
    missing = failure(404, "NotFound")
    found = ask(WireServer(missing), lambda client: client.find(PODS, "p", "ns"), recorder)
    with pytest.raises(errors.NotFound):
        ask(WireServer(missing), lambda client: client.get(PODS, "p", "ns"), recorder)
    assert found is None
    sought, wanted = recorder.spans
    assert (sought.error, "error.type" in sought.attributes) == (None, False)
    assert (wanted.error is None, wanted.attributes["error.type"]) == (False, "404")


def test_every_attempt_is_a_span_without_names_in_its_name() -> None:
    recorder = Recorder()
    server = WireServer(failure(503, "ServiceUnavailable", retry_after=1), ok(thing("c", 8)))
    ask(server, patch, recorder)
    template = "/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}/status"
    common: dict[str, Any] = {
        "http.request.method": "PATCH",
        "url.template": template,
        "url.path": "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims/c/status",
        "k8s.namespace.name": "ns",
    }
    assert [(span.name, span.client) for span in recorder.spans] == [
        (f"PATCH {template}", True)
    ] * 2
    assert recorder.spans[0].attributes == {
        **common,
        "http.response.status_code": 503,
        "error.type": "503",
    }
    assert recorder.spans[1].attributes == {
        **common,
        "http.response.status_code": 200,
        "http.request.resend_count": 1,
    }
    assert isinstance(recorder.spans[0].error, errors.ServerError)


def test_answers_are_closed_also_when_they_are_errors() -> None:
    replies = [failure(404, "NotFound"), ok(thing("a", 1))]
    server = WireServer(*replies)
    with pytest.raises(errors.NotFound):
        ask(server, lambda client: client.get(PODS, "a", "ns"))
    ask(server, lambda client: client.get(PODS, "a", "ns"))
    assert [reply.closed for reply in replies] == [True, True]


def test_a_client_without_retries_asks_once() -> None:
    async def use(client: Client) -> Pod:
        return await client.without_retries(3.0).get(PODS, "a", "ns")

    server = WireServer(refused(), ok(thing("a", 1)))
    with pytest.raises(Unreachable):
        ask(server, use)
    assert len(server.requests) == 1
