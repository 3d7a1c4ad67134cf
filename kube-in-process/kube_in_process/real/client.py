"""Requests with plain documents (dicts), like those of kubectl, for any kind that is served."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube_in_process.seams import HttpResponse, Query, Response, Transport

MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"
STRATEGIC = "application/strategic-merge-patch+json"
_DRY_RUN: Query = (("dryRun", "All"),)
Document = dict[str, Any]
Version = tuple[str, str]
"""apiVersion and kind."""


class RequestFailed(Exception):
    """The base of all errors of one request.

    Attributes:
        method, path: the request, without its query.
        status: the HTTP status; 0 if there was no answer.
        reason: the reason of the Status object, such as NotFound.
        message: the server's text, or ours.
    """

    def __init__(
        self, method: str, path: str, message: str, *, status: int = 0, reason: str = ""
    ) -> None:
        self.method, self.path = method, path
        self.status, self.reason, self.message = status, reason, message
        outcome = " ".join(str(part) for part in (status, reason) if part)
        parts = (f"{method} {path}", outcome, message)
        super().__init__(": ".join(part for part in parts if part))


class NoAnswer(RequestFailed):
    """There was no complete answer, or none that can be read."""


class Refused(RequestFailed):
    """An answer with status 400 or above."""


class KindNotServed(RequestFailed):
    """The server does not serve a kind."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__("GET", f"/apis/{api_version}", f"{api_version} {kind} is not served")


async def sent(
    transport: Transport,
    method: str,
    path: str,
    query: Query = (),
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
) -> Response:
    """Send a request.

    Raises:
        NoAnswer: there is no answer, or its body ends too early (raised while it is read).
    """
    try:
        answer = await transport.send(method, path, query, headers or {}, body)
    except Exception as error:  # each transport has errors of its own
        raise NoAnswer(method, path, str(error)) from error
    return HttpResponse.around(answer, _whole(method, path, answer))


async def _whole(method: str, path: str, answer: Response) -> AsyncIterator[bytes]:
    try:
        async for part in answer.body:
            yield part
    except Exception as error:  # as above
        raise NoAnswer(method, path, str(error)) from error


async def read(answer: Response) -> bytes:
    """The body of an answer."""
    try:
        return b"".join([part async for part in answer.body])
    finally:
        await answer.close()


async def lines(body: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield the non-empty lines of a stream. An incomplete last line is dropped."""
    pieces: list[bytes] = []
    async for chunk in body:
        *whole, rest = chunk.split(b"\n")
        for line in whole:
            joined = b"".join((*pieces, line))
            pieces.clear()
            if joined.strip():
                yield joined
        pieces.append(rest)


@dataclass(frozen=True, slots=True)
class PathOfKind:
    """The path of a kind on the server."""

    path: str
    plural: str
    namespaced: bool

    def at(self, namespace: str, name: str = "") -> str:
        parts = [self.path]
        if self.namespaced and namespace:
            parts += ["namespaces", namespace]
        return "/".join([*parts, self.plural, *([name] if name else [])])


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """The answer to a request, read to its end."""

    method: str
    path: str
    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class DocumentClient:
    """A small client like ``kubectl``. It asks once which kinds an API group serves.

    ``name`` is the user agent, and thereby also the field manager of its writes. All methods raise
    ``Refused`` if the server refuses the request, ``NoAnswer`` if there is no answer, and
    ``KindNotServed``. A subclass may raise errors of its own in ``ask``, ``document`` and
    ``served``.
    """

    transport: Transport
    name: str = "kube-in-process"
    _served: dict[str, dict[str, PathOfKind]] = field(default_factory=dict)

    async def create(self, body: Document, *, dry_run: bool = False) -> Document:
        """Create an object from a manifest, in the namespace of its metadata."""
        served = await self.served(body["apiVersion"], body["kind"])
        namespace = body["metadata"].get("namespace") or "default"
        query = _DRY_RUN if dry_run else ()
        return await self._send("POST", served.at(namespace), body, query=query)

    async def post(
        self, kind: Version, namespace: str, name: str, subresource: str, body: Document
    ) -> Document:
        """Create under a subresource of an object, such as ``eviction`` of a pod."""
        path = f"{(await self.served(*kind)).at(namespace, name)}/{subresource}"
        return await self._send("POST", path, body)

    async def get(self, kind: Version, namespace: str, name: str) -> Document:
        return await self._send("GET", (await self.served(*kind)).at(namespace, name))

    async def patch(self, kind: Version, namespace: str, name: str, patch: Document) -> Document:
        """Send a merge patch without a resourceVersion."""
        served = await self.served(*kind)
        return await self._send("PATCH", served.at(namespace, name), patch)

    async def patch_status(
        self,
        kind: Version,
        namespace: str,
        name: str,
        patch: Document,
        patch_type: str = MERGE,
    ) -> Document:
        """Patch the status. With ``STRATEGIC``, lists such as conditions merge by their keys."""
        served = await self.served(*kind)
        path = f"{served.at(namespace, name)}/status"
        return await self._send("PATCH", path, patch, patch_type)

    async def resize(self, namespace: str, name: str, patch: Document) -> Document:
        """Patch the sizes of a pod; containers merge by their names."""
        served = await self.served("v1", "Pod")
        return await self._send("PATCH", f"{served.at(namespace, name)}/resize", patch, STRATEGIC)

    async def apply(self, body: Document, manager: str, *, dry_run: bool = False) -> Document:
        """Apply a manifest on the server's side; fields of other managers become this manager's."""
        served = await self.served(body["apiVersion"], body["kind"])
        meta = body["metadata"]
        path = served.at(meta.get("namespace") or "default", meta["name"])
        query = (("fieldManager", manager), ("force", "true"), *(_DRY_RUN if dry_run else ()))
        return await self._send("PATCH", path, body, APPLY, query)

    async def list(self, kind: Version, namespace: str = "") -> list[Document]:
        """List all objects of a kind, and add the kind and apiVersion that a list omits."""
        served = await self.served(*kind)
        listing = await self._send("GET", served.at(namespace))
        api_version, name = kind
        return [
            {"apiVersion": api_version, "kind": name, **item} for item in listing.get("items") or ()
        ]

    async def delete(
        self, kind: Version, namespace: str, name: str, options: Document | None = None
    ) -> None:
        """Delete an object, by default in the background. An object that is gone is no error."""
        served = await self.served(*kind)
        wanted = {"propagationPolicy": "Background"} if options is None else options
        answer = await self.ask("DELETE", served.at(namespace, name), wanted)
        if answer.status != 404:
            self.document(answer)

    async def served(self, api_version: str, kind: str) -> PathOfKind:
        """The path of the kind; raises KindNotServed."""
        if kind not in self._served.get(api_version, {}):
            self._served[api_version] = await self._discover(api_version)
        try:
            return self._served[api_version][kind]
        except KeyError:
            raise KindNotServed(api_version, kind) from None

    async def _discover(self, api_version: str) -> dict[str, PathOfKind]:
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        answer = await self.ask("GET", path)
        listing = self.document(answer) if answer.status < 400 else {}
        return {
            resource["kind"]: PathOfKind(path, resource["name"], resource["namespaced"])
            for resource in filter(None, listing.get("resources") or ())
            if "/" not in resource["name"]
        }

    async def _send(
        self,
        method: str,
        path: str,
        body: Document | None = None,
        patch_type: str = MERGE,
        query: Query = (),
    ) -> Document:
        return self.document(await self.ask(method, path, body, patch_type, query))

    async def ask(
        self,
        method: str,
        path: str,
        body: Document | None = None,
        patch_type: str = MERGE,
        query: Query = (),
    ) -> WholeAnswer:
        """Send a request; the answer may be a refusal. Raises NoAnswer."""
        kind = patch_type if method == "PATCH" else "application/json"
        headers = {"content-type": kind, "accept": "application/json", "user-agent": self.name}
        data = json.dumps(body).encode() if body is not None else None
        response = await sent(self.transport, method, path, query, headers, data)
        return WholeAnswer(method, path, response.status, response.headers, await read(response))

    def document(self, answer: WholeAnswer) -> Document:
        """The document of an answer. Raises Refused, and NoAnswer if it cannot be read."""
        method, path = answer.method, answer.path
        try:
            document: Document = json.loads(answer.body)
        except ValueError as error:
            raise NoAnswer(method, path, f"unexpected answer: {error}") from error
        if answer.status >= 400:
            message, reason = document.get("message", ""), document.get("reason", "")
            raise Refused(method, path, message, status=answer.status, reason=reason)
        return document
