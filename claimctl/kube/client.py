"""Typed requests: answers are decoded into structs, and patches carry a resourceVersion."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from copy import copy
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

import msgspec

from claimctl.kube.codec import Listing, WatchEvent, decode_page, watch_events
from claimctl.kube.errors import (
    AnswerTooLong,
    BadAnswer,
    BadRequest,
    Conflict,
    Gone,
    Invalid,
    NotFound,
    UnreadableObject,
)
from claimctl.kube.request import (
    APPLY_PATCH,
    JSON_PATCH,
    MERGE_PATCH,
    MOST_BYTES,
    Call,
    Sender,
    call_to,
    connection_lost,
)
from claimctl.telemetry.face import Telemetry
from claimctl.wire.access_reviews import OWN_ACCESS, Right
from claimctl.wire.base import Body, Object, Wire, decode, encode, encode_as_go, to_plain
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Clock, Query, Transport
from claimctl.wire.unreadable import Unreadable

T = TypeVar("T")
U = TypeVar("U")

PAGE = 500
"""The objects of the first page of a list. The next ones have as many as ``_PAGE_BYTES`` hold, by
the bytes of the page before."""
_PAGE_BYTES = 8_000_000
_LONGEST_PAGE_BYTES = 16_000_000
"""A page that is longer is given up, and asked for again with fewer objects. Users choose the sizes
and the order of objects, so the page before says little about the next one."""
_MOST_OBJECTS = 1_000
_LARGER, _SMALLER = 4, 8
"""The steps by which pages grow at most, and by which they shrink."""
_DOES_NOT_FIT = "the server rejected our request due to an error in our request"
"""What a server answers with 422 if a JSON patch does not fit the object, or its test fails."""


class Client:
    """A client of one API server.

    Every method raises the errors of ``claimctl.kube.errors``. A client and its copies share the
    versions of API groups that any of them has learned.

    Args:
        field_manager: the name under which the server records our writes.
        timeout_seconds: the deadline of each attempt, in seconds of the running loop.
        overall_seconds: the deadline of a request with all its attempts; None means no deadline.
        rng: the source of the jitter in pauses.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        telemetry: Telemetry | None = None,
        *,
        field_manager: str = "claimctl",
        timeout_seconds: float = 30.0,
        overall_seconds: float | None = None,
        rng: Random | None = None,
    ) -> None:
        self._sender = Sender(
            transport,
            clock,
            telemetry or Telemetry(),
            rng or Random(),
            timeout_seconds,
            overall=overall_seconds,
        )
        self._manager = field_manager
        self._versions: dict[str, str] = {}

    @property
    def telemetry(self) -> Telemetry:
        return self._sender.telemetry

    @property
    def clock(self) -> Clock:
        return self._sender.clock

    @property
    def rng(self) -> Random:
        return self._sender.rng

    def use_version(self, group: str, version: str) -> None:
        """Use this version of an API group for all later requests."""
        self._versions[group] = version

    def in_version(self, group: str, version: str) -> Client:
        """A copy of this client that uses this version of an API group."""
        other = copy(self)
        other._versions = {**self._versions, group: version}
        return other

    def served(self, resource: Resource[T]) -> Resource[T]:
        """The resource in the version that this client uses for its group."""
        version = self._versions.get(resource.group, resource.version)
        return resource if version == resource.version else replace(resource, version=version)

    def without_retries(self, timeout_seconds: float) -> Client:
        """A copy of this client that never retries, for callers that retry themselves."""
        return self._copy(retries=False, timeout=timeout_seconds)

    def within(self, overall_seconds: float | None) -> Client:
        """A copy of this client with another deadline of requests; None means no deadline."""
        return self._copy(overall=overall_seconds)

    def _copy(self, **sender: Any) -> Client:
        other = copy(self)
        other._sender = replace(self._sender, **sender)
        return other

    async def get(self, resource: Resource[T], name: str, namespace: str = "") -> T:
        """Read one object (quorum read).

        Raises:
            UnreadableObject: the object exists and cannot be decoded.
        """
        return await self._read(resource, self._call("GET", resource, namespace, name))

    async def _read(self, resource: Resource[T], call: Call) -> T:
        return self._decode(call, resource, await self._sender.send(call))

    async def find(self, resource: Resource[T], name: str, namespace: str = "") -> T | None:
        """Read one object; None if it is not there."""
        call = self._call("GET", resource, namespace, name)
        with suppress(NotFound):
            return await self._read(resource, replace(call, may_be_missing=True))
        return None

    async def get_raw(self, path: str) -> bytes:
        """Read the body of any path, such as ``/version``."""
        return bytes(await self._sender.send(Call("GET", path, path)))

    async def get_document(self, path: str, type_: type[T]) -> T:
        """Read the document at any path, such as ``/apis``, into ``type_``."""
        body = await self.get_raw(path)
        try:
            return decode(body, type_)
        except msgspec.MsgspecError as error:
            raise BadAnswer("GET", path, message=f"unexpected answer: {error}") from error

    async def list(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE,
        partial: bool = False,
    ) -> Listing[T]:
        """List objects page by page (quorum read).

        If a page token expires, everything is read again in one piece.

        Args:
            partial: return objects that cannot be decoded in ``unreadable``. The caller must look
                there.

        Raises:
            UnreadableObject: an object cannot be decoded, and ``partial`` is false.
        """
        selectors = {"label_selector": label_selector, "field_selector": field_selector}
        every = self.collect(resource, lambda item: item, namespace, limit=limit, **selectors)
        listing = await every
        for unread in () if partial else listing.unreadable:
            raise UnreadableObject("GET", self.served(resource).path(namespace), unread)
        return listing

    async def collect(
        self,
        resource: Resource[T],
        keep: Callable[[T], U | None],
        namespace: str = "",
        *,
        limit: int = PAGE,
        **selectors: str,
    ) -> Listing[U]:
        """List with ``partial``, and keep of each object what ``keep`` returns, unless it is None.

        So a list that is needed in part is never in memory as a whole.
        """
        items: list[U] = []
        unreadable: list[Unreadable] = []
        version = ""
        pages = self.pages(resource, namespace, limit=limit, **selectors)
        try:
            async with aclosing(pages) as read:
                async for page in read:
                    version = page.resource_version
                    items.extend(part for obj in page.items if (part := keep(obj)) is not None)
                    unreadable += page.unreadable
                    del page  # or else it would be in memory beside the next one
        except Gone:
            if limit == 0:
                raise
            return await self.collect(resource, keep, namespace, limit=0, **selectors)
        return Listing(tuple(items), version, unreadable=tuple(unreadable))

    async def pages(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE,
        version: str = "",
    ) -> AsyncGenerator[Listing[T], None]:
        """Yield the pages of one consistent quorum read, with ``unreadable`` objects.

        Args:
            version: if given, read the objects as they were at this version instead.
            limit: the number of objects of the first page; 0 means a single page, unless it is too
                long.

        Raises:
            Gone: a page token expired before the next page was requested; start over.
        """
        selectors = _selectors(label_selector, field_selector)
        exact = (("resourceVersion", version), ("resourceVersionMatch", "Exact"))
        where: Query = exact if version else ()
        while True:
            # limit=0 means 'no limit'; the server needs the limit again beside each token
            query = (*selectors, ("limit", str(limit)), *where)
            most = _LONGEST_PAGE_BYTES if limit > 1 else MOST_BYTES
            try:
                page, size = await self._page(resource, namespace, query, most)
            except AnswerTooLong:
                if limit == 1:
                    raise
                limit = max(limit // _SMALLER, 1) if limit else PAGE
                continue
            token, count = page.continue_token, len(page.items) + len(page.unreadable)
            yield page
            del page  # or else it would be in memory beside the next one
            if not token:
                return
            where = (("continue", token),)
            limit = _next_limit(limit, count, size)

    async def version_now(self, resource: Resource[Any], namespace: str = "") -> str:
        """The version of the collection now: a page of one object has it, too."""
        page, _ = await self._page(resource, namespace, (("limit", "1"),))
        return page.resource_version

    async def create(
        self,
        resource: Resource[T],
        body: Wire | Mapping[str, Any],
        namespace: str = "",
        *,
        name: str = "",
        subresource: str = "",
        dry_run: bool = False,
        strict: bool = False,
    ) -> T:
        """Create an object, or a subresource of the one of this name, and return what is stored.

        apiVersion and kind are filled in.

        Args:
            strict: whether fields that the server does not know are refused, and not dropped.
        """
        plain = {
            "apiVersion": self.served(resource).api_version,
            "kind": resource.kind,
            **{key: value for key, value in to_plain(body).items() if value != ""},
        }
        where, query = (namespace, name, subresource), self._write_query(dry_run)
        if strict:
            query = (*query, ("fieldValidation", "Strict"))
        call = self._call("POST", resource, *where, query=query, body=encode_as_go(plain))
        return self._decode(call, resource, await self._sender.send(call))

    async def merge_patch(
        self,
        resource: Resource[T],
        meta: ObjectMeta,
        patch: Mapping[str, Any],
        *,
        subresource: str = "",
    ) -> T:
        """Change the fields in ``patch`` if the object still has the version of ``meta``.

        Raises:
            Conflict: the object has another version; read it and decide again.
        """
        body, query = _under(meta, patch), self._write_query()
        return await self._patch(resource, meta, subresource, MERGE_PATCH, body, query)

    async def apply(self, resource: Resource[T], body: Object, *, dry_run: bool = False) -> T:
        """Apply a manifest on the server's side; fields of other managers become this client's."""
        given = body["metadata"]
        meta = ObjectMeta(name=given["name"], namespace=given.get("namespace") or "default")
        query = (*self._write_query(dry_run), ("force", "true"))
        return await self._patch(resource, meta, "", APPLY_PATCH, encode(body), query)

    async def json_patch(
        self,
        resource: Resource[T],
        meta: ObjectMeta,
        operations: Sequence[Mapping[str, Any]],
        *,
        subresource: str = "",
        any_version: bool = False,
    ) -> T:
        """Change an object by a JSON patch (RFC 6902) if it still has the version of ``meta``.

        Args:
            any_version: the object must have the UID of ``meta`` only, and pass the ``test``
                operations. The server compares and stores in one step. If the object changes
                meanwhile, the server applies the patch again by itself.

        Raises:
            Conflict: the object has another version, or does not fit the patch; read it and decide
                again.
        """
        required = {"op": "test", "path": "/metadata/uid", "value": meta.uid}
        if not any_version:
            # the server answers a failed test with 422, and another version here with 409
            path, version = "/metadata/resourceVersion", _version(meta)
            required = {"op": "replace", "path": path, "value": version}
        body, query = encode([required, *operations]), self._write_query()
        try:
            return await self._patch(resource, meta, subresource, JSON_PATCH, body, query)
        except Invalid as error:
            if error.message != _DOES_NOT_FIT:
                raise
            raise Conflict(
                error.method,
                error.path,
                status=error.status,
                reason=error.reason,
                message=error.message,
            ) from error

    async def delete(
        self,
        resource: Resource[Any],
        name: str,
        namespace: str = "",
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "Background",
    ) -> None:
        """Delete an object if it still has the given UID and version.

        Raises:
            Conflict: the object has another UID or version.
        """
        wanted = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in wanted.items() if value}
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        options["propagationPolicy"] = propagation
        if preconditions:
            options["preconditions"] = preconditions
        call = self._call("DELETE", resource, namespace, name, body=encode(options))
        await self._sender.send(call)

    async def delete_as_read(self, resource: Resource[Any], meta: ObjectMeta) -> None:
        """The same for an object that still has the UID and the version of ``meta``."""
        uid, version = meta.uid, meta.resource_version
        await self.delete(resource, meta.name, meta.namespace, uid=uid, resource_version=version)

    async def watch(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        resource_version: str,
        field_selector: str = "",
        timeout_seconds: int = 300,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[WatchEvent[T], None]:
        """Yield the events after ``resource_version``, until the stream ends or falls silent.

        The iterator ends without an error; continue with the version of the last event. A caller
        that stops early must close the iterator (``contextlib.aclosing``).

        Args:
            timeout_seconds: after this time, the server closes the stream.
            opened: called when the server has accepted the watch.

        Raises:
            Gone: the version is too old, by HTTP status or by an ERROR event.
            Unreachable: the connection broke.
        """
        query = (
            ("watch", "true"),
            ("allowWatchBookmarks", "true"),
            ("resourceVersion", resource_version),
            ("timeoutSeconds", str(timeout_seconds)),
            *_selectors("", field_selector),
        )
        call = self._call("GET", resource, namespace, query=query)
        response = await self._sender.open(call)
        try:
            if opened is not None:
                opened()
            stream = watch_events(call.method, call.path, resource, response.body, timeout_seconds)
            async with aclosing(stream) as events:
                async for event in events:
                    yield event
        except ConnectionError as error:
            raise connection_lost(call, error) from error
        finally:
            await response.close()

    async def allowed(self, right: Right, namespace: str = "") -> bool:
        """Ask by SelfSubjectAccessReview whether we have it; no namespace: cluster-wide."""
        spec = {"resourceAttributes": right.attributes(namespace)}
        return (await self.create(OWN_ACCESS, {"spec": spec})).status.allowed

    async def _page(
        self, resource: Resource[T], namespace: str, query: Query, most_bytes: int = MOST_BYTES
    ) -> tuple[Listing[T], int]:
        """One page of a list, and the bytes of its JSON."""
        call = replace(self._call("GET", resource, namespace, query=query), most_bytes=most_bytes)
        body = await self._sender.send(call)
        try:
            return decode_page(resource, body), len(body)
        except msgspec.MsgspecError as error:
            message = f"unexpected answer: {error}"
            raise BadAnswer(call.method, call.path, message=message) from error

    async def _patch(
        self,
        resource: Resource[T],
        meta: ObjectMeta,
        subresource: str,
        kind: str,
        body: bytes,
        query: Query,
    ) -> T:
        """``kind``: the content type of the patch."""
        where = (meta.namespace, meta.name, subresource)
        call = self._call("PATCH", resource, *where, query=query, body=body)
        call = replace(call, headers={"content-type": kind})
        return self._decode(call, resource, await self._sender.send(call))

    def _decode(self, call: Call, resource: Resource[T], body: Body) -> T:
        try:
            return decode(body, resource.type)
        except msgspec.MsgspecError as error:
            parts = Unreadable.of(resource, bytes(body), str(error))
            raise UnreadableObject(call.method, call.path, parts) from error

    def _call(self, method: str, resource: Resource[Any], *where: str, **more: Any) -> Call:
        return call_to(method, self.served(resource), *where, **more)

    def _write_query(self, dry_run: bool = False) -> Query:
        manager = ("fieldManager", self._manager)
        return (manager, ("dryRun", "All")) if dry_run else (manager,)


def _next_limit(limit: int, count: int, size: int) -> int:
    """The objects of the next page, after one of so many objects and bytes."""
    fitting = _PAGE_BYTES * max(count, 1) // max(size, 1)
    return max(1, min(fitting, limit * _LARGER, _MOST_OBJECTS))


def _under(meta: ObjectMeta, patch: Mapping[str, Any]) -> bytes:
    """A patch for an object of this version only."""
    metadata = {**patch.get("metadata", {}), "resourceVersion": _version(meta)}
    return encode({**patch, "metadata": metadata})


def _version(meta: ObjectMeta) -> str:
    if not meta.resource_version:
        raise BadRequest("PATCH", meta.name, message="a write needs a resourceVersion")
    return meta.resource_version


def _selectors(label_selector: str, field_selector: str) -> tuple[tuple[str, str], ...]:
    pairs = (("labelSelector", label_selector), ("fieldSelector", field_selector))
    return tuple(pair for pair in pairs if pair[1])
