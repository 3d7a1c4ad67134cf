"""An API server without components, and clients that count what they ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kube_in_process.api_server import api_server
from kube_in_process.http.handler import Handler
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.runtime.local import ApiFor
from kube_in_process.storage.requests import MASTERS, Actor

from claimctl.kube.client import Client
from claimctl.kube.clock import LoopClock
from claimctl.wire.seams import Query, Response, Transport
from tests.support.builders import NAMESPACE, NOW


@dataclass
class CountingTransport:
    """Takes note of every request."""

    inner: Transport
    requests: list[str] = field(default_factory=list)

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        self.requests.append(f"{method} {path}")
        return await self.inner.send(method, path, query, headers, body)


@dataclass
class CountingServer:
    handler: Handler
    admin: ApiFor
    transport: CountingTransport
    client: Client

    @property
    def requests(self) -> list[str]:
        return self.transport.requests

    def create(self, plural: str, body: dict[str, Any]) -> dict[str, Any]:
        return self.admin.create(plural, body)


def server(dialect: Preset = Preset.RESERVED_FOR_ANY_POD, **options: Any) -> CountingServer:
    """A server with the namespace of the builders; only in a running event loop."""
    clock = LoopClock(NOW)
    handler = api_server(ClusterOptions(preset=dialect, **options), clock)
    admin = ApiFor(handler.api, Actor("admin", (MASTERS,), "kubectl"))
    for name in ("default", NAMESPACE):
        admin.create("namespaces", {"metadata": {"name": name}})
    transport = CountingTransport(handler)
    return CountingServer(handler, admin, transport, Client(transport, clock))


def pod_body(name: str, claim: str = "slice", node: str = "") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "containers": [{"name": "main", "image": "train"}],
            "resourceClaims": [{"name": "gpu", "resourceClaimName": claim}],
            **({"nodeName": node} if node else {}),
        },
    }
