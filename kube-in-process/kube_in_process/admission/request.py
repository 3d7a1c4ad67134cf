"""What admission is asked about: one write, as an AdmissionRequest shows it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random
from typing import Protocol

from kube_in_process import errors
from kube_in_process.errors import Subject
from kube_in_process.kinds.authorization import Authorizer
from kube_in_process.kinds.decoding import Decoder
from kube_in_process.kinds.kind import Kind, Kinds
from kube_in_process.kinds.strategy import Strategies
from kube_in_process.objects import Object
from kube_in_process.schema.registry import Schemas
from kube_in_process.storage.requests import Actor
from kube_in_process.storage.store import Address, Store, decode, encode

GROUP = "admissionregistration.k8s.io"
CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"


class AdmissionServer(Protocol):
    """What admission needs of the server."""

    store: Store
    rng: Random
    kinds: Kinds
    strategies: Strategies
    schemas: Schemas
    decoder: Decoder
    authorizer: Authorizer


@dataclass(frozen=True, slots=True)
class GroupVersionKind:
    group: str
    version: str
    kind: str


@dataclass(frozen=True, slots=True)
class AdmissionRequest:
    """A write. ``shape`` is the kind of its object, which differs from that of the resource in
    subresources such as ``scale``. The objects are shown in ``version``, which may differ from that
    of the path, ``asked``. ``obj`` is None in a deletion, and ``old`` in a creation. ``options`` is
    a CreateOptions, UpdateOptions or DeleteOptions."""

    kind: Kind
    version: str
    asked: str
    subresource: str
    shape: GroupVersionKind
    namespace: str
    name: str
    operation: str
    actor: Actor
    options: Object
    dry_run: bool
    obj: Object | None
    old: Object | None

    @property
    def resource(self) -> str:
        """The resource as rules name it: ``pods`` or ``pods/status``."""
        return f"{self.kind.plural}/{self.subresource}" if self.subresource else self.kind.plural

    @property
    def subject(self) -> Subject:
        """The subject of refusals. An object that has no name yet shows the start of its name."""
        meta = (self.obj or {}).get("metadata") or {}
        name = self.name or meta.get("name") or meta.get("generateName") or "Unknown"
        return Subject(self.kind.group, self.kind.plural, name)

    def with_object(self, obj: Object) -> AdmissionRequest:
        return replace(self, obj=obj)

    def document(self) -> Object:
        """The AdmissionRequest without uid and objects."""
        shape, kind = self.shape, self.kind
        shown = {"group": shape.group, "version": shape.version, "kind": shape.kind}
        resource = {"group": kind.group, "version": self.version, "resource": kind.plural}
        own = (shape.group, shape.kind) == (kind.group, kind.kind)
        fields: Object = {
            "kind": shown,
            "resource": resource,
            "subResource": self.subresource,
            "requestKind": {**shown, "version": self.asked} if own else shown,
            "requestResource": {**resource, "version": self.asked},
            "requestSubResource": self.subresource,
            "name": self.name,
            "namespace": self.namespace,
        }
        fields = {key: value for key, value in fields.items() if value != ""}
        return {
            **fields,
            "operation": self.operation,
            "userInfo": user_info(self.actor),
            "dryRun": self.dry_run,
            "options": self.options,
        }


def user_info(actor: Actor) -> Object:
    """A UserInfo as reviews show it."""
    info: Object = {"username": actor.user}
    if actor.uid:
        info["uid"] = actor.uid
    info["groups"] = list(actor.groups)
    if actor.extra:
        info["extra"] = {name: list(values) for name, values in actor.extra}
    return info


def in_version(
    server: AdmissionServer, request: AdmissionRequest, version: str
) -> AdmissionRequest:
    """The request with its objects in another version of their kind."""
    if version == request.version or request.shape.kind != request.kind.kind:
        return request
    return replace(
        request,
        version=version,
        shape=replace(request.shape, version=version),
        obj=_converted(server, request, request.obj, version),
        old=_converted(server, request, request.old, version),
    )


def _converted(
    server: AdmissionServer, request: AdmissionRequest, obj: Object | None, version: str
) -> Object | None:
    if obj is None:
        return None
    strategy = server.strategies.of(request.kind)
    stored = strategy.inward(decode(encode(obj)), request.kind, request.version)
    return strategy.outward(stored, request.kind, version)


def namespace_of(server: AdmissionServer, request: AdmissionRequest) -> Object | None:
    """The namespace of the object; None for objects of the cluster."""
    if not request.kind.namespaced or not request.namespace:
        return None
    return server.store.get(Address("", "namespaces", "", request.namespace))


def internal_error(text: str) -> errors.StatusError:
    """A 500 with the server's words around a text."""
    details = {"causes": [{"message": text}]}
    message = f"Internal error occurred: {text}"
    return errors.StatusError(500, "InternalError", message, details)
