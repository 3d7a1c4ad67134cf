"""The server's HTTP semantics without sockets: a transport that calls the core."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import msgspec

from kube_in_process.auth.authn import AccessControl
from kube_in_process.errors import StatusError, not_allowed, unknown_resource
from kube_in_process.http import answers, dispatch
from kube_in_process.http.documents.lookup import Documents, only_read, version_info
from kube_in_process.http.exchange import Exchange
from kube_in_process.http.metrics import METRICS_PATH, RequestMetrics, gates_of
from kube_in_process.http.protobuf import MEDIA_TYPE
from kube_in_process.http.routing import Route, route, true
from kube_in_process.http.tables.shapes import Tables
from kube_in_process.kinds.authorization import Attributes
from kube_in_process.kinds.kind import Kind
from kube_in_process.seams import HttpResponse, Query
from kube_in_process.storage.requests import MASTERS, Actor, Fault, FaultPoint
from kube_in_process.verbs.api import Api
from kube_in_process.webhook_calls import CallsWanted

ADMINISTRATOR = Actor("kubernetes-admin", (MASTERS, "system:authenticated"))
FaultHook = Callable[[FaultPoint], Fault | None]


@dataclass(slots=True)
class Handler:
    """Serves requests. ``actor`` is the user of requests without credentials.

    ``documents`` serves discovery and OpenAPI, ``guard`` authenticates and authorizes, ``views``
    makes tables, and ``fault`` is called once per resource request. A fault that breaks the
    connection raises ConnectionResetError in ``send`` or in the body.
    """

    api: Api
    guard: AccessControl
    documents: Documents
    views: Tables
    fault: FaultHook | None = None
    actor: Actor = ADMINISTRATOR
    metrics: RequestMetrics = field(default_factory=RequestMetrics)
    audit_ids: Random = field(default_factory=lambda: Random("audit"))
    """Numbers of its own, so that requests without effect change nothing of a run."""

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> HttpResponse:
        """Serve one request (the protocol ``seams.Transport``)."""
        return await self.send_as(self.actor, Request(method, path, query, headers, body))

    async def send_as(self, actor: Actor, request: Request) -> HttpResponse:
        """Serve one request; ``actor`` is its user if the headers do not name one."""
        matched = route(request.path, dict(reversed(list(request.query))))
        try:
            response = await self._serve(actor, request, matched)
        except StatusError as error:
            response = answers.refuse(self._worded(error, request))
        if matched is not None:
            self.metrics.note(request.method, matched, response.status)
        if _wants_pretty(request):
            response = await answers.pretty(response)
        audit_id = request.headers.get("audit-id") or _made_id(self.audit_ids.getrandbits(128))
        response.headers = {"audit-id": audit_id, **_UNCACHED, **response.headers}
        return response

    def transport(self, actor: Actor) -> TransportAs:
        return TransportAs(self, actor)

    async def _serve(self, default: Actor, request: Request, matched: Route | None) -> HttpResponse:
        actor = _managed(self.guard.identify(request.headers, default), request.headers)
        if matched is None or matched.version == "":
            return self._document(actor, request)
        self.guard.check(_attributes(actor, matched, request))
        kind = self.api.kinds.lookup(matched.group, matched.version, matched.plural)
        if kind is None:
            return self._unknown(matched)
        exchange = _exchange(request, matched, kind, actor)
        try:
            return await self._with_faults(exchange)
        except StatusError as error:
            return answers.refuse(self._worded(error, request), exchange.warnings)

    def _worded(self, error: StatusError, request: Request) -> StatusError:
        """An error with the text of the server's version. A client that asks for protobuf is not
        told that it is available, as a real server would tell it."""
        error.worded_for(self.api.features.version)
        if error.code == 406 and MEDIA_TYPE in request.headers.get("accept", ""):
            error.message = re.sub(rf", {re.escape(MEDIA_TYPE)}(;stream=watch)?", "", error.message)
        return error

    def _document(self, actor: Actor, request: Request) -> HttpResponse:
        self.guard.check(Attributes(actor, request.method.lower(), path=request.path))
        if request.path == METRICS_PATH:
            version = version_info(self.api.features.version)["gitVersion"]
            content_type, text = self.metrics.page(
                self.api.store, version, gates_of(self.api.features)
            )
            return answers.whole(200, content_type, text, {})
        accept = request.headers.get("accept", "")
        document = self.documents.get(request.path, request.query, accept)
        if document is None:
            return self._missing(request.path)
        if request.method != "GET" and only_read(request.path):
            raise not_allowed()
        return answers.whole(document.status, document.content_type, document.body, {})

    def _missing(self, path: str) -> HttpResponse:
        """A router knows the paths below a served group, and answers for them with a Status."""
        root, group = (*path.split("/")[1:3], "")[:2]
        if "//" in path and (
            root == "api" or (root == "apis" and group and group in self.api.kinds.groups())
        ):
            raise unknown_resource()
        return self._not_found()

    def _unknown(self, matched: Route) -> HttpResponse:
        """For an unknown group 'page not found'; for an unknown resource a Status."""
        if matched.group and matched.group not in self.api.kinds.groups():
            return self._not_found()
        raise unknown_resource()

    def _not_found(self) -> HttpResponse:
        """Plain text; from 1.38 on a Status (kubernetes/kubernetes#138219, by the changelog)."""
        if self.api.features.version >= (1, 38):
            return answers.refuse(unknown_resource())
        return answers.page_not_found()

    async def _with_faults(self, exchange: Exchange) -> HttpResponse:
        fault = self.fault(_point(exchange)) if self.fault is not None else None
        if fault is None:
            return await self._served(exchange)
        if fault.delay:
            await asyncio.sleep(fault.delay)
        if fault.status:
            raise _injected(fault)
        if fault.drop and not fault.after_write:
            raise ConnectionResetError("injected fault")
        response = await self._served(exchange)
        if fault.drop:
            raise ConnectionResetError("injected fault")
        if fault.hang:
            await asyncio.get_running_loop().create_future()
        if fault.cut_after is not None:
            response.body = _cut(response.body, fault.cut_after)
        return response

    async def _served(self, exchange: Exchange) -> HttpResponse:
        """The answer to a request. One that needs webhooks is served again with their answers."""
        while True:
            try:
                return dispatch.serve(self.api, self.views, exchange)
            except CallsWanted as wanted:
                exchange.warnings.clear()
                await exchange.replies.fetch(wanted)


class Request(msgspec.Struct, frozen=True):
    method: str
    path: str
    query: Query
    headers: Mapping[str, str]
    body: bytes | None


@dataclass(frozen=True, slots=True)
class TransportAs:
    """A transport for requests of one user."""

    handler: Handler
    actor: Actor

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> HttpResponse:
        """Serve one request as that user, unless its headers carry credentials."""
        return await self.handler.send_as(self.actor, Request(method, path, query, headers, body))


def _made_id(bits: int) -> str:
    """A random UUID; for each request, so without the class of that name, which is slower."""
    digits = f"{bits:032x}"
    parts = digits[:8], digits[8:12], f"4{digits[13:16]}", f"a{digits[17:20]}", digits[20:]
    return "-".join(parts)


_UNCACHED = {"cache-control": "no-cache, private"}
_BROWSERS = ("curl", "Wget", "Mozilla/5.0")


def _wants_pretty(request: Request) -> bool:
    """Whether people read the answer: as they say, or by the program that asks."""
    if request.query and (asked := dict(request.query).get("pretty")):
        return true(asked)
    return request.headers.get("user-agent", "").startswith(_BROWSERS)


def _managed(actor: Actor, headers: Mapping[str, str]) -> Actor:
    """The actor with its field manager: by default the first word of the User-Agent."""
    agent = headers.get("user-agent", "").partition("/")[0].strip()
    return Actor(actor.user, actor.groups, agent or actor.manager, actor.uid, actor.extra)


def _exchange(request: Request, matched: Route, kind: Kind, actor: Actor) -> Exchange:
    return Exchange(
        method=request.method,
        route=matched,
        kind=kind,
        actor=actor,
        query=dict(reversed(list(request.query))),
        headers=request.headers,
        body=request.body,
        warnings=[],
    )


def _attributes(actor: Actor, matched: Route, request: Request) -> Attributes:
    return Attributes(
        actor=actor,
        verb=matched.verb(request.method),
        group=matched.group,
        version=matched.version,
        plural=matched.plural,
        subresource=matched.subresource,
        namespace=matched.name if matched.plural == "namespaces" else matched.namespace,
        name=matched.name or _selected_name(request.query),
    )


def _selected_name(query: Query) -> str:
    """The name in a field selector: such a request counts as one for that object."""
    for term in dict(query).get("fieldSelector", "").split(","):
        key, _, value = term.partition("=")
        if key == "metadata.name":
            return value.removeprefix("=")
    return ""


def _point(exchange: Exchange) -> FaultPoint:
    matched = exchange.route
    return FaultPoint(
        verb=matched.verb(exchange.method),
        group=matched.group,
        plural=matched.plural,
        namespace=matched.namespace,
        name=matched.name,
        subresource=matched.subresource,
        user=exchange.actor.user,
    )


_REASONS = {429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable", 504: "Timeout"}


def _injected(fault: Fault) -> StatusError:
    reason = fault.reason or _REASONS.get(fault.status, "")
    if fault.retry_after is None:
        return StatusError(fault.status, reason, fault.message)
    details: dict[str, Any] = {"retryAfterSeconds": fault.retry_after}
    headers = {"retry-after": str(fault.retry_after)}
    return StatusError(fault.status, reason, fault.message, details, headers)


async def _cut(body: AsyncIterator[bytes], events: int) -> AsyncIterator[bytes]:
    left = events
    async for part in body:
        if left <= 0:
            raise ConnectionResetError("injected fault")
        yield part
        left -= 1
