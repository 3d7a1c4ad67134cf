"""The real API server of a run: only etcd and kube-apiserver."""

from __future__ import annotations

import asyncio
import json
import ssl
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import aiohttp
from kube_in_process.real.servers.files import ADMIN_USER
from kube_in_process.real.servers.plane import ControlPlane, Wanted, running
from kube_in_process.real.servers.programs import API_SERVER, ETCD
from yarl import URL

from judges.definitions import definitions
from judges.differential.outcome import Run

_SECONDS = 60.0
_SERVED_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class RecordedAnswer:
    """An answer. ``headers`` have lower-case names; a repeated header is a list."""

    status: int
    headers: dict[str, Any]
    data: bytes


@dataclass(frozen=True, slots=True)
class RealServer:
    """Sends requests over one session, as administrator unless the headers have another user."""

    url: str
    token: str
    tls: ssl.SSLContext
    session: aiohttp.ClientSession

    async def send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> RecordedAnswer:
        async with self.opened(method, path, headers, body) as answer:
            return RecordedAnswer(answer.status, _headers(answer), await answer.read())

    @asynccontextmanager
    async def opened(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request; the caller reads the answer. ``path`` has the encoded query."""
        sent = {"authorization": f"Bearer {self.token}", "accept": "*/*", **headers}
        if sent["authorization"] == "":
            del sent["authorization"]
        async with self.session.request(
            method,
            URL(self.url + path, encoded=True),
            headers=sent,
            data=body,
            ssl=self.tls,
            allow_redirects=False,
            skip_auto_headers=("content-type", "accept-encoding"),
        ) as answer:
            yield answer


def _headers(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    headers: dict[str, Any] = {}
    for name in ("content-type", "warning", "retry-after", "allow", "location"):
        values = answer.headers.getall(name, [])
        if values:
            headers[name] = values[0] if len(values) == 1 else list(values)
    return headers


@contextmanager
def api_server_alone(run: Run) -> Iterator[ControlPlane]:
    """Start an API server without controllers and scheduler, so that only the server writes.

    Raises:
        CannotStart: a server does not start; none is left running.
    """
    programs = replace(run.programs, names=(ETCD, API_SERVER))
    with tempfile.TemporaryDirectory(prefix="differential-") as directory:
        wanted = Wanted(pod_groups=run.pod_groups)
        with running(ControlPlane(programs, Path(directory), wanted)) as plane:
            yield plane


@asynccontextmanager
async def connected(plane: ControlPlane) -> AsyncIterator[RealServer]:
    tls = ssl.create_default_context(cadata=plane.files.certificate)
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        yield RealServer(plane.files.url, plane.files.tokens[ADMIN_USER], tls, session)


async def define(server: RealServer) -> None:
    """Create claimctl's CustomResourceDefinitions, and wait until they are served."""
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    headers = {"content-type": "application/json"}
    for body in definitions():
        await server.send("POST", path, headers, json.dumps(body).encode())
    await asyncio.sleep(_SERVED_SECONDS)
