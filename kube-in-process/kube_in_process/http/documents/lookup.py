"""Documents of the server by path: discovery, OpenAPI, health, version."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kube_in_process.http.documents import health
from kube_in_process.http.documents.discovery import Discovery
from kube_in_process.http.documents.openapi import OpenApi
from kube_in_process.kinds.kind import Kinds
from kube_in_process.options import Features
from kube_in_process.schema.registry import Schemas
from kube_in_process.seams import Query
from kube_in_process.storage.store import encode
from kube_in_process.text.json_text import indented

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
_PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
_EMPTY_V2 = b"\x0a\x032.0"
"""The OpenAPI v2 document without definitions (field 1 is the version of Swagger). kubectl asks for
it about kinds that OpenAPI v3 lacks, and then reports that they are unknown."""


@dataclass(frozen=True, slots=True)
class Document:
    status: int
    content_type: str
    body: bytes


class Documents:
    """Answers GET requests of paths without a resource."""

    def __init__(self, kinds: Kinds, schemas: Schemas, features: Callable[[], Features]) -> None:
        self.discovery = Discovery(kinds)
        self.openapi = OpenApi(kinds, schemas)
        self._features = features

    def get(self, path: str, query: Query, accept: str) -> Document | None:
        """The document at ``path``; None if there is none.

        Raises:
            StatusError: 406 where nothing in ``accept`` can be answered; 404 for an unknown
                version of a group that is served.
        """
        if path.startswith(health.PATHS):
            text = health.health(path, query)
            return None if text is None else Document(200, TEXT, text.encode())
        if "//" in path:
            return None
        path = path.removesuffix("/") or "/"
        if path == "/version":
            return Document(200, JSON, indented(encode(version_info(self._features().version))))
        if path == "/" or path.startswith("/openapi/"):
            return self._about(path)
        document = self.discovery.get(path, accept)
        return None if document is None else _serialized(document.body, document.content_type)

    def _about(self, path: str) -> Document | None:
        if path == "/":
            return _json({"paths": self._paths()})
        if path == "/openapi/v3":
            return _json(self.openapi.index(), TEXT)
        if path == "/openapi/v2":
            return Document(200, _PROTOBUF_V2, _EMPTY_V2)
        if path.startswith("/openapi/v3/"):
            encoded = self.openapi.document(path.removeprefix("/openapi/v3/"))
            return Document(404, "", b"") if encoded is None else Document(200, JSON, encoded)
        return None

    def _paths(self) -> list[str]:
        return sorted(
            {
                *health.PATHS,
                "/apis/",
                "/metrics",
                "/version",
                "/openapi/v3",
                "/openapi/v3/",
                *(f"/{path}" for path in self.discovery.paths()),
            }
        )


def version_info(version: tuple[int, int]) -> dict[str, str]:
    """The document ``/version`` for a minor version."""
    major, minor = version
    return {
        "major": str(major),
        "minor": str(minor),
        "emulationMajor": str(major),
        "emulationMinor": str(minor),
        "minCompatibilityMajor": str(major),
        "minCompatibilityMinor": str(minor - 1),
        "gitVersion": f"v{major}.{minor}.{_PATCHES.get(version, 0)}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "linux/amd64",
    }


_PATCHES = {(1, 36): 2, (1, 34): 9}
"""The emulated patch releases."""


def only_read(path: str) -> bool:
    """Whether a path answers GET alone; the others, which are older, answer every method."""
    return not path.startswith((*health.PATHS, "/metrics", "/openapi/"))


def _serialized(body: Mapping[str, Any], content_type: str) -> Document:
    """A document that is an object of the API: its JSON ends with a line break."""
    return Document(200, content_type, encode(body) + b"\n")


def _json(body: Mapping[str, Any], content_type: str = JSON) -> Document:
    return Document(200, content_type, encode(body))
