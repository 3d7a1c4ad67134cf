"""The variable ``authorizer`` of expressions: it asks the server's authorizer.

A check in the making is a map, as the CEL library knows no other objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from kube_in_process.admission.request import AdmissionRequest
from kube_in_process.kinds.authorization import Attributes, Authorizer, account_groups
from kube_in_process.objects import Object
from kube_in_process.storage.requests import Actor

_ASKING: ContextVar[tuple[Authorizer, AdmissionRequest]] = ContextVar("asking")


@contextmanager
def asking(authorizer: Authorizer, request: AdmissionRequest) -> Iterator[None]:
    """Evaluate expressions for a request, whose user ``authorizer`` stands for."""
    token = _ASKING.set((authorizer, request))
    try:
        yield
    finally:
        _ASKING.reset(token)


def root(request: AdmissionRequest) -> Object:
    resource = {
        "group": request.kind.group,
        "resource": request.kind.plural,
        "subresource": request.subresource,
        "namespace": request.namespace,
        "name": request.name,
    }
    return {"requestResource": resource}


def _actor(check: Object) -> Actor:
    account = check.get("serviceAccount")
    if account is None:
        return _ASKING.get()[1].actor
    namespace, name = account
    return Actor(f"system:serviceaccount:{namespace}:{name}", account_groups(namespace))


def _decide(check: Object, verb: str) -> Object:
    attributes = Attributes(
        actor=_actor(check),
        verb=verb,
        group=check.get("group", ""),
        plural=check.get("resource", ""),
        subresource=check.get("subresource", ""),
        namespace=check.get("namespace", ""),
        name=check.get("name", ""),
        path=check.get("path", ""),
    )
    authorizer = _ASKING.get()[0]
    return {
        "allowed": authorizer.allowed(attributes),
        "reason": authorizer.trouble(attributes),
    }


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "group": lambda check, group: {**check, "group": group},
    "resource": lambda check, plural: {**check, "resource": plural},
    "subresource": lambda check, name: {**check, "subresource": name},
    "namespace": lambda check, name: {**check, "namespace": name},
    "name": lambda check, name: {**check, "name": name},
    "path": lambda check, path: {**check, "path": path},
    "serviceAccount": lambda check, namespace, name: {**check, "serviceAccount": [namespace, name]},
    "check": _decide,
    "allowed": lambda decision: decision["allowed"],
    "reason": lambda decision: decision["reason"],
    "errored": lambda decision: False,
}
"""Functions by name. The receiver of a method call is the first argument."""
