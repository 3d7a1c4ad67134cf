"""A connection on which some requests are refused or lose their answers."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping

from kube_in_process.seams import HttpResponse, Query, Response, Transport
from kube_in_process.storage.requests import Fault

Hook = Callable[[str, str], Fault | None]
"""Called before every request with its method and path."""


class Faulty:
    """A transport with faults. ``fault`` may change at any time."""

    def __init__(self, inner: Transport, fault: Hook | None = None) -> None:
        self._inner = inner
        self.fault = fault

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        fault = self.fault(method, path) if self.fault is not None else None
        if fault is None:
            return await self._inner.send(method, path, query, headers, body)
        if fault.after_write:
            await self._inner.send(method, path, query, headers, body)
        if fault.drop:
            raise ConnectionResetError("the answer is lost")
        return _refusal(fault)


def _refusal(fault: Fault) -> Response:
    status = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": fault.message,
        "reason": fault.reason,
        "code": fault.status,
    }
    headers = {"content-type": "application/json"}
    return HttpResponse(fault.status, headers, _once(json.dumps(status).encode()))


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
