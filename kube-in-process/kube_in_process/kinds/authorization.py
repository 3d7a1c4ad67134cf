"""The question that every authorizer answers: may this user do this?"""

from __future__ import annotations

from typing import Protocol

import msgspec

from kube_in_process.storage.requests import Actor

AUTHENTICATED = "system:authenticated"


def account_groups(namespace: str) -> tuple[str, ...]:
    """The groups of every ServiceAccount of a namespace."""
    accounts = "system:serviceaccounts"
    return accounts, f"{accounts}:{namespace}", AUTHENTICATED


class Attributes(msgspec.Struct, frozen=True):
    """A request to authorize. For non-resource paths, only actor, verb and path are set."""

    actor: Actor
    verb: str
    group: str = ""
    version: str = ""
    plural: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


class Authorizer(Protocol):
    def allowed(self, attributes: Attributes) -> bool: ...

    def trouble(self, attributes: Attributes) -> str:
        """What kept the authorizer from reading all rules of the user; '' if nothing did."""
        ...


class AlwaysAllow:
    def allowed(self, attributes: Attributes) -> bool:
        return True

    def trouble(self, attributes: Attributes) -> str:
        return ""
