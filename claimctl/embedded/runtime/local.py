"""The API for components that run in the same process: plural names, dicts, no HTTP."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from claimctl.embedded.errors import StatusError
from claimctl.embedded.kinds.kind import Kind
from claimctl.embedded.storage.requests import (
    Actor,
    DeleteOptions,
    Fault,
    FaultPoint,
    ListOptions,
    WriteOptions,
)
from claimctl.embedded.storage.store import Objects
from claimctl.embedded.verbs.api import Api
from claimctl.embedded.verbs.reading import Target, stored
from claimctl.wire.base import Object

T = TypeVar("T")
FaultHook = Callable[[FaultPoint], Fault | None]
_INTERNAL = WriteOptions(internal=True)


class ConnectionLost(Exception):
    """An injected fault broke the connection; whether the request was served is unknown."""


@dataclass(frozen=True, slots=True)
class _Call:
    verb: str
    kind: Kind
    namespace: str
    name: str = ""
    subresource: str = ""


class ApiFor:
    """The verbs for one actor. A plural that two groups share is given as ``plural.group``.

    ``fault`` is asked before every call; delays and hangs have no meaning here and count as a
    connection that is lost after the call was served.
    """

    def __init__(self, api: Api, actor: Actor, fault: FaultHook | None = None) -> None:
        self.api = api
        self.actor = actor
        self._fault = fault

    def get(self, plural: str, ns: str, name: str) -> Object:
        """Raises StatusError 404."""
        kind = self.api.kinds.named(plural)
        return self._call(
            _Call("get", kind, ns, name), lambda: stored(self.api, Target(kind, ns, name))
        )

    def find(self, plural: str, ns: str, name: str) -> Object | None:
        """Like ``get``, with None instead of a 404."""
        try:
            return self.get(plural, ns, name)
        except StatusError as error:
            if error.code == 404:
                return None
            raise

    def list(
        self, plural: str, ns: str = "", label_selector: str = "", field_selector: str = ""
    ) -> Objects:
        """Whole objects with kind and apiVersion, in the order of their names."""
        kind = self.api.kinds.named(plural)
        call = _Call("list", kind, ns)
        if not label_selector and not field_selector:
            return self._call(call, lambda: self.api.store.list(*kind.storage, ns))
        options = ListOptions(label_selector, field_selector)
        items: Objects = self._call(call, lambda: self.api.list(self.actor, kind, ns, options))[
            "items"
        ]
        return [{**obj, "kind": kind.kind, "apiVersion": kind.api_version()} for obj in items]

    def create(self, plural: str, obj: Object, ns: str = "") -> Object:
        """Raises StatusError 403, 404, 409, 422."""
        kind = self.api.kinds.named(plural)
        meta = obj.get("metadata") or {}
        space = ns or meta.get("namespace", "")
        return self._call(
            _Call("create", kind, space, meta.get("name", "")),
            lambda: self.api.create(self.actor, kind, space, obj, _INTERNAL),
        )

    def update(self, plural: str, obj: Object, subresource: str = "") -> Object:
        """PUT; the resourceVersion in the object is the precondition."""
        kind = self.api.kinds.named(plural)
        ns, name = obj["metadata"].get("namespace", ""), obj["metadata"]["name"]
        return self._call(
            _Call("update", kind, ns, name, subresource),
            lambda: self.api.update(self.actor, kind, ns, name, obj, subresource, _INTERNAL),
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
        """``kind`` is merge, strategic, json or apply."""
        found = self.api.kinds.named(plural)
        return self._call(
            _Call("patch", found, ns, name, subresource),
            lambda: self.api.patch(
                self.actor, found, ns, name, kind, patch, subresource, _INTERNAL
            ),
        )

    def delete(
        self, plural: str, ns: str, name: str, options: DeleteOptions | None = None
    ) -> Object:
        kind = self.api.kinds.named(plural)
        return self._call(
            _Call("delete", kind, ns, name),
            lambda: self.api.delete(self.actor, kind, ns, name, options),
        )

    def bind(self, ns: str, pod: str, node: str, uid: str = "") -> Object:
        """POST pods/NAME/binding."""
        kind = self.api.kinds.named("pods")
        meta = {"name": pod, "namespace": ns}
        body = {
            "metadata": {**meta, "uid": uid} if uid else meta,
            "target": {"kind": "Node", "name": node},
        }
        return self._call(
            _Call("create", kind, ns, pod, "binding"),
            lambda: self.api.post(self.actor, Target(kind, ns, pod, "binding"), body, _INTERNAL),
        )

    def _call(self, call: _Call, serve: Callable[[], T]) -> T:
        fault = None if self._fault is None else self._fault(self._point(call))
        if fault is None:
            return serve()
        if fault.status:
            headers = {} if fault.retry_after is None else {"retry-after": str(fault.retry_after)}
            raise StatusError(fault.status, fault.reason, fault.message, None, headers)
        if fault.drop and not fault.after_write:
            raise ConnectionLost(call.verb)
        answer = serve()
        if fault.drop or fault.hang:
            raise ConnectionLost(call.verb)
        return answer

    def _point(self, call: _Call) -> FaultPoint:
        return FaultPoint(
            verb=call.verb,
            group=call.kind.group,
            plural=call.kind.plural,
            namespace=call.namespace,
            name=call.name,
            subresource=call.subresource,
            user=self.actor.user,
        )
