"""An API server for tests: requests as one call, and answers as objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from kube_in_process.api_server import api_server
from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.http.handler import Handler
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.runtime.local import ApiFor
from kube_in_process.seams import Response
from kube_in_process.storage.requests import Actor
from kube_in_process.verbs.api import Api

Object = dict[str, Any]
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaims"
ALLOCATION: Object = {
    "devices": {"results": [{"request": "d", "driver": "x", "pool": "p", "device": "dev-0"}]}
}


@dataclass(frozen=True)
class Answered:
    status: int
    headers: Mapping[str, str]
    body: Any


@dataclass
class Server:
    """An API server alone, with the namespace ``ns``."""

    handler: Handler
    headers: dict[str, str] = field(default_factory=lambda: {"user-agent": "test/1"})

    @property
    def api(self) -> Api:
        return self.handler.api

    def local(self, user: str = "tester") -> ApiFor:
        return ApiFor(self.api, Actor(user, manager=user))

    async def open(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Response:
        parts = urlsplit(path)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await self.handler.send(
            method,
            parts.path,
            parse_qsl(parts.query, keep_blank_values=True),
            {**self.headers, "content-type": "application/json", **(headers or {})},
            None if body is None else data,
        )

    async def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answered:
        response = await self.open(method, path, body, headers)
        data = b"".join([part async for part in response.body])
        return Answered(response.status, response.headers, json.loads(data))

    async def merge_patch(self, path: str, body: Any) -> Answered:
        return await self.send(
            "PATCH", path, body, {"content-type": "application/merge-patch+json"}
        )

    async def events(self, path: str) -> list[tuple[str, str]]:
        """A whole stream, as (type, name)."""
        response = await self.open("GET", path)
        lines = b"".join([part async for part in response.body]).splitlines()
        lines_read = [json.loads(line) for line in lines]
        return [(line["type"], line["object"]["metadata"].get("name", "")) for line in lines_read]


def server(dialect: Preset = Preset.PLAIN, **options: Any) -> Server:
    handler = api_server(ClusterOptions(preset=dialect, **options), LoopClock(EPOCH))
    asked = Server(handler)
    asked.local().create("namespaces", {"metadata": {"name": "ns"}})
    return asked


def claim(name: str = "c", **spec: Any) -> Object:
    request = {"name": "d", "exactly": {"deviceClassName": "gpu"}}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": [request]}, **spec}}


def config_map(name: str, **data: str) -> Object:
    return {"metadata": {"name": name}, "data": data}


def pod(name: str = "p", **spec: Any) -> Object:
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c", "image": "x"}], **spec},
    }


def reference(number: int) -> Object:
    return {"resource": "pods", "name": f"p{number}", "uid": f"u{number}"}
