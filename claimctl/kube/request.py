"""Build requests, and refuse names that would address another object."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from claimctl.kube.errors import BadRequest
from claimctl.kube.retry import READS, WRITES, RetryPolicy
from claimctl.telemetry.face import Value
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Query

MERGE_PATCH = "application/merge-patch+json"


@dataclass(frozen=True, slots=True)
class Call:
    """One request before it is sent; ``template`` is its path without names, for telemetry."""

    method: str
    path: str
    template: str
    query: Query = ()
    body: bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    plural: str = ""
    namespace: str = ""

    @property
    def policy(self) -> RetryPolicy:
        return READS if self.method == "GET" else WRITES


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
    one = method in ("PATCH", "DELETE") or (method == "GET" and not query)
    _check_name(method, resource, name, required=one)
    path = resource.path(quote(namespace, safe=":"), quote(name, safe=":"), subresource)
    template = resource.path("{namespace}" if namespace else "", "{name}" if name else "")
    kind = MERGE_PATCH if method == "PATCH" else "application/json"
    return Call(
        method,
        path,
        f"{template}/{subresource}" if subresource else template,
        query,
        body,
        {} if body is None else {"content-type": kind},
        resource.plural,
        namespace,
    )


def _check_name(method: str, resource: Resource[Any], name: str, *, required: bool = False) -> None:
    """Refuse a name that addresses another path: an empty name is the list, '..' the parent."""
    if name in (".", "..") or "/" in name or "%" in name or (required and not name):
        raise BadRequest(
            method, resource.path(), message=f"{name!r} is not a name of a {resource.kind}"
        )


def attributes(call: Call, number: int) -> dict[str, Value]:
    """Span attributes by the OpenTelemetry conventions for HTTP clients."""
    found: dict[str, Value] = {
        "http.request.method": call.method,
        "url.template": call.template,
        "url.path": call.path,
    }
    if number:
        found["http.request.resend_count"] = number
    if call.namespace:
        found["k8s.namespace.name"] = call.namespace
    return found
