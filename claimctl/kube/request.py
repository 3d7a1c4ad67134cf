"""One request to the API server: build it, send it, and raise an error answer.

A name that would address another object is refused. A request has a deadline, retries and spans.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar
from urllib.parse import quote

from tenacity import AsyncRetrying, RetryCallState

from claimctl import __version__
from claimctl.kube.errors import (
    AnswerTooLong,
    ApiError,
    BadAnswer,
    BadRequest,
    Conflict,
    KubeError,
    NotFound,
    RequestTimeout,
    Unreachable,
)
from claimctl.kube.errors import from_answer as error_of
from claimctl.kube.retry import Backoff, may_read_again, surely_not_applied
from claimctl.telemetry.face import LateLogger, Metric, Span, Telemetry, Value
from claimctl.wire.base import Body
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Clock, Query, Response, Transport

log = LateLogger(__name__)
T = TypeVar("T")

ATTEMPTS = 4
MOST_BYTES = 64_000_000
"""The most that is read of an answer, but for a watch. No server needs as much."""
_PAUSES = Backoff(first=0.25, cap=5.0)
_LONGEST_RETRY_AFTER = 60.0
APPLY_PATCH = "application/apply-patch+yaml"
MERGE_PATCH = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
NO_ANSWER = "<error>"
"""The code of a request without an answer, as in the metrics of Kubernetes' own clients."""
_HEADERS = {"accept": "application/json", "user-agent": f"claimctl/{__version__}"}


@dataclass(frozen=True, slots=True)
class Call:
    """One request before it is sent.

    Attributes:
        template: its path without names, for telemetry.
        most_bytes: of the body of the answer.
        may_be_missing: whether 'not found' is an answer as good as others: no failure in a trace.
    """

    method: str
    path: str
    template: str
    query: Query = ()
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    plural: str = ""
    namespace: str = ""
    most_bytes: int = MOST_BYTES
    may_be_missing: bool = False

    def may_be_repeated(self, error: KubeError) -> bool:
        """Whether it is worth another try after the error, and safe."""
        return may_read_again(error) if self.method == "GET" else surely_not_applied(error)


def call_to(
    method: str,
    resource: Resource[Any],
    namespace: str = "",
    name: str = "",
    subresource: str = "",
    *,
    query: Query = (),
    body: bytes | None = None,
) -> Call:
    _check_name(method, resource, namespace)
    needs_name = method in ("PATCH", "DELETE") or (method == "GET" and not query)
    _check_name(method, resource, name, required=needs_name)
    path = resource.path(quote(namespace, safe=":"), quote(name, safe=":"), subresource)
    template = resource.path("{namespace}" if namespace else "", "{name}" if name else "")
    return Call(
        method,
        path,
        f"{template}/{subresource}" if subresource else template,
        query,
        body,
        {} if body is None else {"content-type": "application/json"},
        resource.plural,
        namespace,
    )


def _check_name(method: str, resource: Resource[Any], name: str, *, required: bool = False) -> None:
    """Refuse a name that addresses another path: an empty name is the list, '..' the parent."""
    if name in (".", "..") or "/" in name or "%" in name or (required and not name):
        raise BadRequest(
            method, resource.path(), message=f"{name!r} is not a name of a {resource.kind}"
        )


@dataclass(frozen=True, slots=True)
class Sender:
    """Sends calls through a transport.

    Attributes:
        timeout: the deadline of each attempt, in seconds of the running loop.
        retries: whether to retry; False sends every call once.
        overall: the deadline of all attempts of a call together; None means no deadline.
        rng: the source of the jitter in pauses.
    """

    transport: Transport
    clock: Clock
    telemetry: Telemetry
    rng: Random
    timeout: float
    retries: bool = True
    overall: float | None = None

    async def send(self, call: Call) -> Body:
        """Send a call up to ``ATTEMPTS`` times, and return the body of the answer.

        Raises:
            KubeError: the error of the last attempt, or the first error that is not retried.
        """

        def again(state: RetryCallState) -> bool:
            error = _error(state)
            left = self.retries and state.attempt_number < ATTEMPTS
            return left and isinstance(error, KubeError) and call.may_be_repeated(error)

        retrying = AsyncRetrying(
            retry=again, wait=self._pause, sleep=self.clock.sleep, before_sleep=_log, reraise=True
        )
        try:
            async with asyncio.timeout(self.overall):
                async for attempted in retrying:
                    with attempted:
                        number = attempted.retry_state.attempt_number - 1
                        return await self._attempt(call, self._whole, number)
                raise AssertionError("the last attempt returns or raises")
        except TimeoutError as error:
            text = f"no answer within {self.overall:g} s"
            raise RequestTimeout(call.method, call.path, message=text) from error
        except Conflict:
            self.telemetry.add(Metric.WRITE_CONFLICTS, {"resource": call.plural})
            raise

    def _pause(self, state: RetryCallState) -> float:
        error = _error(state)
        asked = error.retry_after if isinstance(error, ApiError) else None
        # all clients got the same number; the jitter keeps them from coming back at the same time
        delay = _PAUSES.delay(state.attempt_number, self.rng)
        return min(asked or 0.0, _LONGEST_RETRY_AFTER) + delay

    async def open(self, call: Call) -> Response:
        """Send once and return the answer with an unread body; raise an error answer."""
        return await self._attempt(call, self._answer, 0)

    async def _whole(self, call: Call, span: Span) -> Body:
        """The whole body of the answer."""
        return await _read(call, await self._answer(call, span))

    async def _attempt(
        self, call: Call, use: Callable[[Call, Span], Awaitable[T]], number: int
    ) -> T:
        """The deadline and the span of one attempt. All its errors are raised as KubeError."""
        name = f"{call.method} {call.template}"
        with self.telemetry.span(name, _attributes(call, number), client=True) as span:
            try:
                async with asyncio.timeout(self.timeout):
                    return await use(call, span)
            except TimeoutError as error:
                text = f"no answer within {self.timeout:g} s"
                raise _fail(span, RequestTimeout(call.method, call.path, message=text)) from error
            except ConnectionError as error:
                raise _fail(span, connection_lost(call, error)) from error
            except KubeError as error:
                if not (call.may_be_missing and isinstance(error, NotFound)):
                    _fail(span, error)
                raise

    async def _answer(self, call: Call, span: Span) -> Response:
        response = await self._send_measured(call)
        span.set(http__response__status_code=response.status)
        if 200 <= response.status < 300:
            return response
        body = bytes(await _read(call, response))
        if response.status < 400:
            raise BadAnswer(
                call.method,
                call.path,
                status=response.status,
                message=f"redirected to {response.headers.get('location', '?')}: not an API server",
            )
        raise error_of(call.method, call.path, response.status, response.headers, body)

    async def _send_measured(self, call: Call) -> Response:
        """Send, and count the answer, or that there was none, with the time until it began."""
        headers = {**_HEADERS, **call.headers}
        began, code = self.clock.monotonic(), NO_ANSWER
        try:
            response = await self.transport.send(
                call.method, call.path, call.query, headers, call.body
            )
            code = str(response.status)
        finally:
            took = self.clock.monotonic() - began
            self.telemetry.add(Metric.REQUESTS, {"method": call.method, "code": code})
            self.telemetry.observe(Metric.REQUEST_SECONDS, took, {"verb": call.method})
        return response


async def _read(call: Call, response: Response) -> Body:
    """The whole body, and close the answer. Raises AnswerTooLong."""
    body: Body = b""
    try:
        async for chunk in response.body:
            if len(body) + len(chunk) > call.most_bytes:
                text = f"the answer has more than {call.most_bytes / 1e6:g} MB"
                raise AnswerTooLong(call.method, call.path, message=text)
            if not body:
                body = chunk
                continue
            # no join of chunks at the end: a page of a list would be in memory twice
            if isinstance(body, bytes):
                body = bytearray(body)
            body += chunk
        return body
    finally:
        await response.close()


def connection_lost(call: Call, error: ConnectionError) -> Unreachable:
    """The error for a broken connection of a transport without sockets (used in tests)."""
    delivered = not isinstance(error, ConnectionRefusedError)
    reason = str(error) or type(error).__name__
    return Unreachable(call.method, call.path, f"connection lost: {reason}", delivered=delivered)


def _error(state: RetryCallState) -> BaseException | None:
    return state.outcome.exception() if state.outcome is not None else None


def _log(state: RetryCallState) -> None:
    after = round(state.upcoming_sleep, 3)
    log.debug("request is repeated", error=str(_error(state)), after_seconds=after)


def _fail(span: Span, error: KubeError) -> KubeError:
    span.set(error__type=str(error.status) if error.status else type(error).__name__)
    span.fail(error)
    return error


def _attributes(call: Call, number: int) -> dict[str, Value]:
    """Span attributes by the OpenTelemetry conventions for HTTP clients."""
    attributes: dict[str, Value] = {
        "http.request.method": call.method,
        "url.template": call.template,
        "url.path": call.path,
    }
    if number:
        attributes["http.request.resend_count"] = number
    if call.namespace:
        attributes["k8s.namespace.name"] = call.namespace
    return attributes
