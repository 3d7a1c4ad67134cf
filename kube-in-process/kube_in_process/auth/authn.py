"""Who sends a request: bearer tokens, impersonation, anonymous users; the answers 401 and 403."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random

from msgspec.structs import replace

from kube_in_process.errors import StatusError
from kube_in_process.kinds.authorization import (
    AUTHENTICATED,
    Attributes,
    Authorizer,
    account_groups,
)
from kube_in_process.kinds.metadata import new_uid
from kube_in_process.objects import Object
from kube_in_process.storage.requests import Actor
from kube_in_process.storage.store import Address, Store

ANONYMOUS = Actor("system:anonymous", ("system:unauthenticated",))
ACCOUNT = "system:serviceaccount:"
CREDENTIAL = "authentication.kubernetes.io/credential-id"
_EXTRA = "impersonate-extra-"


@dataclass(frozen=True, slots=True)
class _Issued:
    """A token of a ServiceAccount. It is valid only while that account exists."""

    namespace: str
    name: str
    uid: str
    credential: str
    expires: datetime


@dataclass(slots=True)
class Tokens:
    """The valid bearer tokens: static ones of users, and issued ones of ServiceAccounts."""

    store: Store
    now: Callable[[], datetime]
    rng: Random
    static: dict[str, Actor] = field(default_factory=dict)
    _issued: dict[str, _Issued] = field(default_factory=dict)

    def add_static(self, actor: Actor) -> str:
        """Make a token for ``actor`` that is valid as long as the server runs."""
        token = secrets.token_urlsafe(32)
        self.static[token] = actor
        return token

    def issue(self, account: Object, seconds: int) -> tuple[str, datetime]:
        """Make a token for a ServiceAccount; return it with the time at which it expires."""
        meta = account["metadata"]
        expires = self.now() + timedelta(seconds=seconds)
        credential = new_uid(self.rng)
        token = f"embedded.{self.rng.getrandbits(256):064x}"
        issued = _Issued(meta["namespace"], meta["name"], meta["uid"], credential, expires)
        self._issued[token] = issued
        return token, expires

    def actor(self, token: str) -> Actor | None:
        """The owner of a token; None if the token is unknown or no longer valid."""
        static = self.static.get(token)
        if static is not None:
            return static
        issued = self._issued.get(token)
        if issued is None or issued.expires <= self.now():
            return None
        address = Address("", "serviceaccounts", issued.namespace, issued.name)
        account = self.store.get(address)
        if account is None or account["metadata"]["uid"] != issued.uid:
            return None
        return _account_actor(issued)


def _account_actor(issued: _Issued) -> Actor:
    user = f"{ACCOUNT}{issued.namespace}:{issued.name}"
    extra = ((CREDENTIAL, (f"JTI={issued.credential}",)),)
    return Actor(user, account_groups(issued.namespace), uid=issued.uid, extra=extra)


@dataclass(slots=True)
class AccessControl:
    """Authenticates and authorizes. If ``lenient``, an unknown token counts as the default user."""

    tokens: Tokens
    authorizer: Authorizer
    lenient: bool

    def identify(self, headers: Mapping[str, str], default: Actor) -> Actor:
        """The sender of a request; ``default`` if the headers do not name one.

        Raises:
            StatusError: 401; 403 for an impersonation that is not allowed.
        """
        actor = self._bearer(headers, default)
        return self._impersonated(headers, actor) if "impersonate-user" in headers else actor

    def _bearer(self, headers: Mapping[str, str], default: Actor) -> Actor:
        given = headers.get("authorization")
        if given is None:
            return default
        if not given and not self.lenient:
            return ANONYMOUS
        scheme, _, token = given.partition(" ")
        actor = self.tokens.actor(token.strip()) if scheme.lower() == "bearer" else None
        if actor is not None:
            return actor
        if self.lenient:
            return default
        raise StatusError(401, "Unauthorized", "Unauthorized")

    def _impersonated(self, headers: Mapping[str, str], actor: Actor) -> Actor:
        user = headers["impersonate-user"]
        groups = _list(headers.get("impersonate-group", ""))
        self._may_impersonate(actor, *_impersonated_kind(user))
        for group in groups:
            self._may_impersonate(actor, "groups", "", group)
        groups = all_groups(user, groups)
        extra = tuple(
            (name.removeprefix(_EXTRA), tuple(_list(value)))
            for name, value in headers.items()
            if name.startswith(_EXTRA)
        )
        uid = headers.get("impersonate-uid", "")
        return replace(actor, user=user, groups=tuple(groups), uid=uid, extra=extra)

    def _may_impersonate(self, actor: Actor, plural: str, namespace: str, name: str) -> None:
        self.check(Attributes(actor, "impersonate", "", "", plural, "", namespace, name))

    def check(self, attributes: Attributes) -> None:
        """Raise StatusError 403 if the request is not allowed."""
        if not self.authorizer.allowed(attributes):
            raise refusal(attributes, self.authorizer.trouble(attributes))


def all_groups(user: str, groups: Sequence[str]) -> list[str]:
    """The given groups of a user, and those that every such user has."""
    complete = list(groups)
    if user.startswith(ACCOUNT) and not complete:
        namespace = user.removeprefix(ACCOUNT).partition(":")[0]
        complete = list(account_groups(namespace))
    if AUTHENTICATED not in complete and user != ANONYMOUS.user:
        complete.append(AUTHENTICATED)
    return complete


def _impersonated_kind(user: str) -> tuple[str, str, str]:
    """The resource that a user name denotes: plural, namespace, name."""
    if user.startswith(ACCOUNT):
        namespace, _, name = user.removeprefix(ACCOUNT).partition(":")
        return "serviceaccounts", namespace, name
    return "users", "", user


def _list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def refusal(attributes: Attributes, trouble: str = "") -> StatusError:
    """The 403 with the server's text, and with what is wrong with the user's bindings."""
    user, end = attributes.actor.user, f": {trouble}" if trouble else ""
    if attributes.path:
        text = f'forbidden: User "{user}" cannot {attributes.verb} path "{attributes.path}"{end}'
        return StatusError(403, "Forbidden", text, {})
    group, plural, name = attributes.group, attributes.plural, attributes.name
    what = f"{plural}.{group}" if group else plural
    shown = f'{what} "{name}"' if name else what
    sub = f"/{attributes.subresource}" if attributes.subresource else ""
    scope = (
        f'in the namespace "{attributes.namespace}"'
        if attributes.namespace
        else "at the cluster scope"
    )
    text = (
        f'{shown} is forbidden: User "{user}" cannot {attributes.verb} resource "{plural}{sub}" '
        f'in API group "{group}" {scope}{end}'
    )
    details = {"name": name, "group": group, "kind": plural}
    return StatusError(403, "Forbidden", text, {k: v for k, v in details.items() if v})
