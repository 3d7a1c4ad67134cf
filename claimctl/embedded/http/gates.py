"""What stands before a request: who it is from, whether it may, and the shape of its answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from claimctl.embedded.kinds.hooks import Attributes
from claimctl.embedded.kinds.kind import Kind
from claimctl.embedded.storage.requests import Actor

Object = dict[str, Any]


class Guard(Protocol):
    def identify(self, headers: Mapping[str, str], default: Actor) -> Actor:
        """Who sends a request; ``default`` where the headers do not say.

        Raises:
            StatusError: 401; 403 for an impersonation that is not allowed.
        """
        ...

    def check(self, attributes: Attributes) -> None:
        """Raises StatusError 403 when the request is not allowed."""
        ...


class Document(Protocol):
    @property
    def status(self) -> int: ...
    @property
    def content_type(self) -> str: ...
    @property
    def body(self) -> bytes: ...


class DocumentSource(Protocol):
    def get(self, path: str, accept: str) -> Document | None:
        """What is published under a path that names no resource; None where nothing is.

        Raises:
            StatusError: 404, 406.
        """
        ...


class View(Protocol):
    """A shape for the objects of one answer (Table, PartialObjectMetadata).

    One is made for every request, so that a stream can tell its first event from the others.
    """

    def one(self, obj: Object) -> Object: ...

    def many(self, body: Object) -> Object: ...

    def event(self, obj: Object) -> Object: ...

    def bookmark(self, obj: Object) -> Object: ...


class Views(Protocol):
    def view(
        self, accept: str, kind: Kind, version: str, query: Mapping[str, str], *, many: bool
    ) -> View | None:
        """The view that an Accept header asks for; None for the objects as they are.

        Raises:
            StatusError: 406 where nothing in it can be answered.
        """
        ...
