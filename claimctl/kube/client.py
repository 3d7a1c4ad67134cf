"""Typed requests: reads are bytes to struct, writes carry the version they were decided on."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from copy import copy
from dataclasses import replace
from random import Random
from typing import Any, TypeVar

import msgspec

from claimctl.kube import watch
from claimctl.kube.codec import Listing, decode_page
from claimctl.kube.errors import BadAnswer, BadRequest, Gone, NotFound, UnreadableObject
from claimctl.kube.request import Call, call_to
from claimctl.kube.sender import Sender, lost
from claimctl.telemetry.face import Silent, Telemetry
from claimctl.wire.base import Wire, decode, encode, to_plain
from claimctl.wire.resources import Resource
from claimctl.wire.seams import Clock, Query, Transport
from claimctl.wire.unreadable import Unreadable

T = TypeVar("T")

PAGE = 500


class Client:
    """One API server, spoken to through ``transport``.

    Every method raises the errors of ``claimctl.kube.errors``. A request has a deadline of
    ``timeout_seconds`` per attempt, in the time of the running loop.

    Args:
        field_manager: the name under which the server records our writes.
        rng: where the jitter of pauses comes from.
    """

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        telemetry: Telemetry | None = None,
        *,
        field_manager: str = "claimctl",
        timeout_seconds: float = 30.0,
        rng: Random | None = None,
    ) -> None:
        told = telemetry if telemetry is not None else Silent()
        self._sender = Sender(transport, clock, told, rng or Random(), timeout_seconds)
        self._manager = field_manager
        self._versions: dict[str, str] = {}

    @property
    def telemetry(self) -> Telemetry:
        return self._sender.telemetry

    @property
    def rng(self) -> Random:
        return self._sender.rng

    def speak(self, group: str, version: str) -> None:
        """Use this version of an API group from now on, whatever version a resource has."""
        self._versions[group] = version

    def served(self, resource: Resource[T]) -> Resource[T]:
        """The resource in the version that is spoken of its group."""
        version = self._versions.get(resource.group, resource.version)
        return resource if version == resource.version else replace(resource, version=version)

    def without_retries(self, timeout_seconds: float) -> Client:
        """The same client for callers that keep a deadline themselves, as leases do."""
        other = copy(self)
        other._sender = replace(self._sender, retries=False, timeout=timeout_seconds)
        return other

    async def get(self, resource: Resource[T], name: str, namespace: str = "") -> T:
        """One object, as the quorum has it.

        Raises:
            UnreadableObject: it is there and cannot be decoded.
        """
        call = self._call("GET", resource, namespace, name)
        return self._decode(call, resource, await self._sender.send(call))

    async def get_raw(self, path: str, query: Query = ()) -> bytes:
        """The body of any path, such as ``/version``."""
        return await self._sender.send(Call("GET", path, path, query))

    async def get_document(self, path: str, type_: type[T]) -> T:
        """What is at any path, such as ``/apis``, as far as ``type_`` names it."""
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
        """All pages of a quorum read; starts over, in one piece, when a page token expires.

        Args:
            partial: leave what cannot be decoded in ``unreadable``: for whoever looks there.

        Raises:
            UnreadableObject: an object cannot be decoded, unless ``partial``.
        """
        selectors = _selectors(label_selector, field_selector)
        try:
            found = await self._gather(resource, namespace, selectors, limit)
        except Gone:
            found = await self._gather(resource, namespace, selectors, 0)
        return found if partial else self._whole(resource, namespace, found)

    async def list_if_served(
        self, resource: Resource[T], namespace: str = "", *, label_selector: str = ""
    ) -> Listing[T]:
        """The same, in part; nothing where the cluster does not know the resource."""
        try:
            return await self.list(resource, namespace, label_selector=label_selector, partial=True)
        except NotFound:
            return Listing((), "")

    async def pages(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        label_selector: str = "",
        field_selector: str = "",
        limit: int = PAGE,
        partial: bool = False,
    ) -> AsyncGenerator[Listing[T], None]:
        """The pages of one consistent quorum read, in turn; ``limit`` 0 asks for a single one.

        Args:
            partial: leave what cannot be decoded in ``unreadable``: for whoever looks there.

        Raises:
            UnreadableObject: an object cannot be decoded, unless ``partial``.
            Gone: a page token expired before its page was asked for; start over.
        """
        selectors = _selectors(label_selector, field_selector)
        token = ""
        while True:
            page = await self._page(resource, namespace, (*selectors, *_paging(limit, token)))
            yield page if partial else self._whole(resource, namespace, page)
            token = page.continue_token
            if not token:
                return

    async def create(
        self,
        resource: Resource[T],
        body: Wire | Mapping[str, Any],
        namespace: str = "",
        *,
        dry_run: bool = False,
    ) -> T:
        """Create an object; apiVersion and kind are filled in. The answer is what was stored."""
        plain = {
            "apiVersion": self.served(resource).api_version,
            "kind": resource.kind,
            **{key: value for key, value in to_plain(body).items() if value != ""},
        }
        call = self._call(
            "POST", resource, namespace, query=self._write_query(dry_run), body=encode(plain)
        )
        return self._decode(call, resource, await self._sender.send(call))

    async def merge_patch(
        self,
        resource: Resource[T],
        name: str,
        patch: Mapping[str, Any],
        namespace: str = "",
        *,
        resource_version: str,
        subresource: str = "",
        dry_run: bool = False,
    ) -> T:
        """Change the fields that ``patch`` names, if the object still is at ``resource_version``.

        Raises:
            Conflict: it is not; decide again on what it is now.
        """
        if not resource_version:
            raise BadRequest("PATCH", name, message="a write needs the version it was decided on")
        metadata = {**patch.get("metadata", {}), "resourceVersion": resource_version}
        call = self._call(
            "PATCH",
            resource,
            namespace,
            name,
            subresource,
            query=self._write_query(dry_run),
            body=encode({**patch, "metadata": metadata}),
        )
        return self._decode(call, resource, await self._sender.send(call))

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
        """Delete an object, if it still has the given UID and version.

        Raises:
            Conflict: it has another UID or version.
        """
        wanted = {"uid": uid, "resourceVersion": resource_version}
        preconditions = {key: value for key, value in wanted.items() if value}
        options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
        options["propagationPolicy"] = propagation
        if preconditions:
            options["preconditions"] = preconditions
        call = self._call("DELETE", resource, namespace, name, body=encode(options))
        await self._sender.send(call)

    async def watch(
        self,
        resource: Resource[T],
        namespace: str = "",
        *,
        resource_version: str,
        timeout_seconds: int = 300,
        opened: Callable[[], None] | None = None,
    ) -> AsyncGenerator[watch.WatchEvent[T], None]:
        """What happens after ``resource_version``, until the server closes or falls silent.

        The server is asked to close after ``timeout_seconds``. The iterator ends quietly
        then; go on from the last event's version. Whoever stops early must close it
        (``contextlib.aclosing``). ``opened`` is called once the server has accepted the watch.

        Raises:
            Gone: the version is too old, said by HTTP status or by an ERROR event.
            Unreachable: the connection broke.
        """
        limits = watch.Limits(timeout=timeout_seconds)
        call = self._call("GET", resource, namespace, query=limits.query(resource_version))
        response = await self._sender.open(call)
        try:
            if opened is not None:
                opened()
            stream = watch.events(call.method, call.path, resource, response.body, limits)
            async with aclosing(stream) as events:
                async for event in events:
                    yield event
        except ConnectionError as error:
            raise lost(call, error) from error
        finally:
            await response.close()

    async def allowed(
        self,
        verb: str,
        resource_group: str,
        resource_plural: str,
        *,
        subresource: str = "",
        namespace: str = "",
        name: str = "",
    ) -> bool:
        """Whether we may do this, by SelfSubjectAccessReview; no namespace means cluster-wide."""
        attributes = {
            "verb": verb,
            "group": resource_group,
            "resource": resource_plural,
            "subresource": subresource,
            "namespace": namespace,
            "name": name,
        }
        set_ones = {key: value for key, value in attributes.items() if value}
        review = await self.create(_ACCESS_REVIEWS, {"spec": {"resourceAttributes": set_ones}})
        return review.status.allowed

    async def _gather(
        self, resource: Resource[T], namespace: str, selectors: Query, limit: int
    ) -> Listing[T]:
        items: list[T] = []
        unreadable: list[Unreadable] = []
        token = ""
        while True:
            page = await self._page(resource, namespace, (*selectors, *_paging(limit, token)))
            items += page.items
            unreadable += page.unreadable
            token = page.continue_token
            if not token:
                return Listing(tuple(items), page.resource_version, unreadable=tuple(unreadable))

    async def _page(self, resource: Resource[T], namespace: str, query: Query) -> Listing[T]:
        call = self._call("GET", resource, namespace, query=query)
        body = await self._sender.send(call)
        try:
            return decode_page(resource, body)
        except msgspec.MsgspecError as error:
            message = f"unexpected answer: {error}"
            raise BadAnswer(call.method, call.path, message=message) from error

    def _whole(self, resource: Resource[T], namespace: str, found: Listing[T]) -> Listing[T]:
        for each in found.unreadable:
            raise UnreadableObject("GET", self.served(resource).path(namespace), each)
        return found

    def _decode(self, call: Call, resource: Resource[T], body: bytes) -> T:
        try:
            return decode(body, resource.type)
        except msgspec.MsgspecError as error:
            found = Unreadable.of(resource, body, str(error))
            raise UnreadableObject(call.method, call.path, found) from error

    def _call(self, method: str, resource: Resource[Any], *where: str, **more: Any) -> Call:
        return call_to(method, self.served(resource), *where, **more)

    def _write_query(self, dry_run: bool) -> Query:
        manager = ("fieldManager", self._manager)
        return (manager, ("dryRun", "All")) if dry_run else (manager,)


class _AccessReviewStatus(Wire, frozen=True, kw_only=True):
    allowed: bool = False


class _AccessReview(Wire, frozen=True, kw_only=True):
    status: _AccessReviewStatus = _AccessReviewStatus()


_ACCESS_REVIEWS = Resource(
    "authorization.k8s.io",
    "v1",
    "selfsubjectaccessreviews",
    "SelfSubjectAccessReview",
    _AccessReview,
    namespaced=False,
)


def _selectors(label_selector: str, field_selector: str) -> tuple[tuple[str, str], ...]:
    pairs = (("labelSelector", label_selector), ("fieldSelector", field_selector))
    return tuple(pair for pair in pairs if pair[1])


def _paging(limit: int, token: str) -> tuple[tuple[str, str], ...]:
    # the server takes limit=0 for 'no limit', and wants the limit again beside each token
    return (("limit", str(limit)), ("continue", token)) if token else (("limit", str(limit)),)
