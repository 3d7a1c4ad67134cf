"""The API client of components: plural names, dicts, no HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from kube_in_process.errors import NotFound, StatusError
from kube_in_process.objects import Object
from kube_in_process.storage.requests import (
    Actor,
    DeleteOptions,
    Fault,
    FaultPoint,
    ListOptions,
    WriteOptions,
)
from kube_in_process.storage.store import Objects
from kube_in_process.verbs.api import Api
from kube_in_process.verbs.reading import Target, stored
from kube_in_process.webhook_calls import CallsWanted, Replies

T = TypeVar("T")
FaultHook = Callable[[FaultPoint], Fault | None]


class ConnectionLost(Exception):
    """An injected fault broke the connection. It is unknown whether the request was served."""


class Waits(ConnectionLost):
    """The request waits for webhooks. It was not served, and goes on when it is made again after
    ``answered``."""

    def __init__(self, answered: asyncio.Task[None]) -> None:
        super().__init__("webhooks are asked")
        self.answered = answered


class ApiFor:
    """The verbs for one user. A plural that two groups share is given as ``plural.group``.

    ``fault`` is called before every request. A delay or a hang counts as a connection that is lost
    after the request was served. ``webhooks``: whether they are called. A request waits for them
    then (``Waits``).
    """

    def __init__(
        self, api: Api, actor: Actor, fault: FaultHook | None = None, *, webhooks: bool = True
    ) -> None:
        self.api = api
        self.actor = actor
        self._fault = fault
        self._replies = Replies(none_asked=not webhooks)
        self._options = WriteOptions(internal=True, replies=self._replies)

    def get(self, plural: str, ns: str, name: str) -> Object:
        """Raises StatusError 404."""
        target = Target(self.api.kinds.named(plural), ns, name)
        return self._call("get", target, lambda: stored(self.api, target))

    def find(self, plural: str, ns: str, name: str) -> Object | None:
        """Like ``get``, with None instead of a 404."""
        with suppress(NotFound):
            return self.get(plural, ns, name)
        return None

    def list(
        self, plural: str, ns: str = "", label_selector: str = "", field_selector: str = ""
    ) -> Objects:
        """Whole objects with kind and apiVersion, in the order of their names."""
        kind = self.api.kinds.named(plural)
        target = Target(kind, ns)
        if not label_selector and not field_selector:
            return self._call("list", target, lambda: self.api.store.list(*kind.storage, ns))
        options = ListOptions(label_selector, field_selector)
        listed = self._call("list", target, lambda: self.api.list(target, options))
        head = {"kind": kind.kind, "apiVersion": kind.api_version()}
        return [{**obj, **head} for obj in listed["items"]]

    def create(self, plural: str, obj: Object, ns: str = "") -> Object:
        """Raises StatusError 403, 404, 409, 422."""
        meta = obj.get("metadata") or {}
        space, name = ns or meta.get("namespace", ""), meta.get("name", "")
        target = Target(self.api.kinds.named(plural), space, name)
        return self._call(
            "create", target, lambda: self.api.create(self.actor, target, obj, self._options)
        )

    def update(self, plural: str, obj: Object, subresource: str = "") -> Object:
        """PUT. The object's resourceVersion is the precondition."""
        ns, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        target = Target(self.api.kinds.named(plural), ns, name, subresource)
        return self._call(
            "update", target, lambda: self.api.update(self.actor, target, obj, self._options)
        )

    def patch(
        self,
        plural: str,
        ns: str,
        name: str,
        patch: Any,
        subresource: str = "",
        kind: str = "merge",
    ) -> Object:
        """``kind`` is merge, strategic, json or apply. An apply takes fields from others."""
        target = Target(self.api.kinds.named(plural), ns, name, subresource)
        manager = self.actor.manager if kind == "apply" else ""
        options = replace(self._options, field_manager=manager, force=kind == "apply")
        return self._call(
            "patch", target, lambda: self.api.patch(self.actor, target, kind, patch, options)
        )

    def delete(
        self, plural: str, ns: str, name: str, options: DeleteOptions | None = None
    ) -> Object:
        target = Target(self.api.kinds.named(plural), ns, name)
        asked = replace(options or DeleteOptions(), replies=self._replies)
        return self._call("delete", target, lambda: self.api.delete(self.actor, target, asked))

    def bind(self, ns: str, pod: str, node: str, uid: str = "") -> Object:
        """POST pods/NAME/binding."""
        meta = {"name": pod, "namespace": ns}
        body = {
            "metadata": {**meta, "uid": uid} if uid else meta,
            "target": {"kind": "Node", "name": node},
        }
        target = Target(self.api.kinds.named("pods"), ns, pod, "binding")
        return self._call(
            "create", target, lambda: self.api.post(self.actor, target, body, self._options)
        )

    def token(self, ns: str, account: str, seconds: int) -> str:
        """POST serviceaccounts/NAME/token: a new token of a ServiceAccount."""
        target = Target(self.api.kinds.named("serviceaccounts"), ns, account, "token")
        body = {"spec": {"audiences": [], "expirationSeconds": seconds}}
        answer = self._call(
            "create", target, lambda: self.api.post(self.actor, target, body, self._options)
        )
        return str(answer["status"]["token"])

    def _call(self, verb: str, target: Target, serve: Callable[[], T]) -> T:
        fault = None if self._fault is None else self._fault(self._point(verb, target))
        if fault is None:
            return self._served(serve)
        if fault.status:
            headers = {} if fault.retry_after is None else {"retry-after": str(fault.retry_after)}
            raise StatusError(fault.status, fault.reason, fault.message, None, headers)
        if fault.drop and not fault.after_write:
            raise ConnectionLost(verb)
        answer = self._served(serve)
        if fault.drop or fault.hang:
            raise ConnectionLost(verb)
        return answer

    def _served(self, serve: Callable[[], T]) -> T:
        """Serve a request. One that needs webhooks fails until they have answered."""
        self._options.warnings.clear()
        try:
            answer = serve()
        except CallsWanted as wanted:
            raise Waits(asyncio.create_task(self._replies.fetch(wanted))) from None
        except StatusError:
            self._replies.forget()
            raise
        self._replies.forget()
        return answer

    def _point(self, verb: str, target: Target) -> FaultPoint:
        return FaultPoint(
            verb=verb,
            group=target.kind.group,
            plural=target.kind.plural,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
            user=self.actor.user,
        )
