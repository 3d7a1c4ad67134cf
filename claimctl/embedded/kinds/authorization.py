"""Who may do what: the question that every authorizer answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from claimctl.embedded.storage.requests import Actor


@dataclass(frozen=True, slots=True)
class Attributes:
    """What an authorizer is asked. ``path`` is set, and the rest empty, for non-resource paths."""

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


class AlwaysAllow:
    def allowed(self, attributes: Attributes) -> bool:
        return True
