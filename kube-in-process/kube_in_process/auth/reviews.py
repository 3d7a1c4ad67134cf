"""Access reviews, and tokens for ServiceAccounts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from kube_in_process.admission.request import user_info
from kube_in_process.auth.authn import Tokens
from kube_in_process.auth.rbac import Grant
from kube_in_process.errors import FieldError, Subject, invalid, invalid_text, invalid_value
from kube_in_process.kinds.authorization import Attributes, Authorizer
from kube_in_process.objects import Object
from kube_in_process.storage.requests import Actor
from kube_in_process.text.times import timestamp
from kube_in_process.verbs.api import Api
from kube_in_process.verbs.reading import Target, stored
from kube_in_process.verbs.writing import Write

_AUTHORIZATION = "authorization.k8s.io"
_AUTHENTICATION = "authentication.k8s.io"
_AUDIENCE = "https://kubernetes.default.svc"
_SHORTEST_SECONDS = 600
_LONGEST_SECONDS = 2**32


class Reasoning(Authorizer, Protocol):
    """An authorizer that can give its reason, and list what a user may do."""

    def reason(self, attributes: Attributes) -> str | None: ...

    def missing_roles(self, actor: Actor, namespace: str) -> str: ...

    def grants(self, actor: Actor, namespace: str) -> Iterator[Grant]: ...


class Reviews:
    """Registers the kinds that are created and never stored."""

    def __init__(self, api: Api, authorizer: Reasoning, tokens: Tokens) -> None:
        self._authorizer = authorizer
        self._tokens = tokens
        api.virtual |= {
            (_AUTHORIZATION, "selfsubjectaccessreviews"): self._own_access,
            (_AUTHORIZATION, "subjectaccessreviews"): self._access,
            (_AUTHORIZATION, "localsubjectaccessreviews"): self._local_access,
            (_AUTHORIZATION, "selfsubjectrulesreviews"): self._rules,
            (_AUTHENTICATION, "selfsubjectreviews"): self._identity,
            (_AUTHENTICATION, "tokenreviews"): self._token_review,
        }
        api.posts["", "serviceaccounts", "token"] = self._token

    def _own_access(self, write: Write, body: Object) -> Object:
        return self._answered(write, body, write.actor)

    def _access(self, write: Write, body: Object) -> Object:
        spec = body.get("spec") or {}
        if not spec.get("user") and not spec.get("groups"):
            text = "at least one of user or group must be specified"
            field_errors = [invalid_value("spec.user", spec.get("user", ""), text)]
            raise invalid(Subject(_AUTHORIZATION, ""), [*_attributes_error(spec), *field_errors])
        actor = Actor(spec.get("user", ""), tuple(spec.get("groups") or ()))
        return self._answered(write, body, actor)

    def _local_access(self, write: Write, body: Object) -> Object:
        namespace = write.target.namespace
        attributes = (body.get("spec") or {}).get("resourceAttributes")
        given = namespace if attributes is None else attributes.get("namespace", "")
        if given != namespace:
            path, text = "spec.resourceAttributes.namespace", "must match metadata.namespace"
            raise invalid(Subject(_AUTHORIZATION, ""), [invalid_value(path, given, text)])
        return {**self._access(write, body), "metadata": {"namespace": namespace}}

    def _answered(self, write: Write, body: Object, actor: Actor) -> Object:
        spec = body.get("spec") or {}
        asked = _asked(spec, actor)
        reason = self._authorizer.reason(asked)
        for key in ("resourceAttributes", "nonResourceAttributes"):
            if isinstance(spec.get(key), dict):
                spec[key] = {name: value for name, value in spec[key].items() if value != ""}
        status: Object = {"allowed": reason is not None}
        told = self._authorizer.trouble(asked) if reason is None else reason
        if told:
            status["reason"] = told
        return _review(write, spec, status)

    def _rules(self, write: Write, body: Object) -> Object:
        namespace = (body.get("spec") or {}).get("namespace", "")
        rules = [grant.rule for grant in self._authorizer.grants(write.actor, namespace)]
        status = {
            "resourceRules": [rule for rule in rules if "resources" in rule],
            "nonResourceRules": [rule for rule in rules if "nonResourceURLs" in rule],
            "incomplete": False,
        }
        if missing := self._authorizer.missing_roles(write.actor, namespace):
            status["evaluationError"] = missing
        return _review(write, {}, status)

    def _identity(self, write: Write, body: Object) -> Object:
        moment = timestamp(write.state.clock.now())
        review = _review(write, None, {"userInfo": user_info(write.actor)})
        review["metadata"] = {"creationTimestamp": moment}
        return review

    def _token_review(self, write: Write, body: Object) -> Object:
        spec = body.get("spec") or {}
        actor = self._tokens.actor(spec.get("token", ""))
        if actor is None:
            return _review(write, spec, {"user": {}, "error": "invalid bearer token"})
        status = {"authenticated": True, "user": user_info(actor), "audiences": [_AUDIENCE]}
        return _review(write, spec, status)

    def _token(self, write: Write, body: Object) -> Object:
        """POST serviceaccounts/NAME/token. Raises StatusError 404, 422."""
        target = write.target
        account = stored(write.state, Target(target.kind, target.namespace, target.name))
        spec = body.get("spec") or {}
        given = spec.get("expirationSeconds")
        seconds = 3600 if given is None else given
        if not _SHORTEST_SECONDS <= seconds <= _LONGEST_SECONDS:
            text = "may not specify a duration less than 10 minutes"
            if seconds > _LONGEST_SECONDS:
                text = "may not specify a duration larger than 2^32 seconds"
            error = invalid_value("spec.expirationSeconds", seconds, text)
            raise invalid(Subject(_AUTHENTICATION, "TokenRequest"), [error])
        token, expires = self._tokens.issue(account, seconds)
        meta = account["metadata"]
        return {
            "kind": "TokenRequest",
            "apiVersion": f"{_AUTHENTICATION}/v1",
            "metadata": {
                "name": meta["name"],
                "namespace": meta["namespace"],
                "uid": meta["uid"],
                "creationTimestamp": timestamp(write.state.clock.now()),
                "managedFields": [_owner(write, spec)],
            },
            "spec": {
                "audiences": spec.get("audiences") or [_AUDIENCE],
                "expirationSeconds": seconds,
                "boundObjectRef": spec.get("boundObjectRef"),
            },
            "status": {"token": token, "expirationTimestamp": timestamp(expires)},
        }


def _owner(write: Write, spec: Object) -> Object:
    """The managedFields entry of the user who asked for a token."""
    asked: Object = {} if spec.get("audiences") is None else {"f:audiences": {}}
    asked.setdefault("f:expirationSeconds", {})
    return {
        "manager": write.manager,
        "operation": "Update",
        "apiVersion": f"{_AUTHENTICATION}/v1",
        "time": timestamp(write.state.clock.now()),
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": dict(sorted(asked.items()))},
        "subresource": "token",
    }


def _attributes_error(spec: Object) -> list[FieldError]:
    given = ("resourceAttributes", "nonResourceAttributes")
    if sum(spec.get(key) is not None for key in given) == 1:
        return []
    text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    return [invalid_text("spec.resourceAttributes", "null", text)]


def _asked(spec: Object, actor: Actor) -> Attributes:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if wrong := _attributes_error(spec):
        raise invalid(Subject(_AUTHORIZATION, ""), wrong)
    if path is not None:
        return Attributes(actor, path.get("verb", ""), path=path.get("path", ""))
    asked = resource or {}
    return Attributes(
        actor=actor,
        verb=asked.get("verb", ""),
        group=asked.get("group", ""),
        version=asked.get("version", ""),
        plural=asked.get("resource", ""),
        subresource=asked.get("subresource", ""),
        namespace=asked.get("namespace", ""),
        name=asked.get("name", ""),
    )


def _review(write: Write, spec: Object | None, status: Object) -> Object:
    kind = write.target.kind
    review: Object = {"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": {}}
    if spec is not None:
        review["spec"] = spec
    return {**review, "status": status}
