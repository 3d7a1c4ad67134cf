"""A Transport that passes answers on, with bad values in some objects."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube_in_process.seams import HttpResponse

from claimctl.kube.codec import lines
from claimctl.wire.seams import Query, Response, Transport

NO_METADATA = ("metadata",)
GENERATION = ("metadata", "generation")
"""A field that every kind has and that does not say which claims the object concerns."""


@dataclass
class Spoiling:
    """Puts a value of the wrong type into objects that are read and into answers to writes."""

    inner: Transport
    bad: dict[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """The field to spoil, by resource and prefix of the name."""

    def spoil(self, plural: str, name: str, *path: str) -> None:
        self.bad[plural, name] = path or GENERATION

    def mend(self, plural: str, name: str) -> None:
        del self.bad[plural, name]

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        response = await self.inner.send(method, path, query, headers, body)
        plurals = {plural for plural, _ in self.bad} & set(path.split("/"))
        if not plurals and "watch" not in dict(query):
            return response
        stream = self._lines if "watch" in dict(query) else self._whole
        return HttpResponse.around(response, stream(path, response.body))

    async def _lines(self, path: str, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines(body):
            event = json.loads(line)
            self._look_at(path, event.get("object"))
            yield json.dumps(event).encode() + b"\n"

    async def _whole(self, path: str, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        answer = json.loads(b"".join([chunk async for chunk in body]))
        for item in answer["items"] or () if "items" in answer else (answer,):
            self._look_at(path, item)
        yield json.dumps(answer).encode()

    def _look_at(self, path: str, item: Any) -> None:
        name = item.get("metadata", {}).get("name", "")
        for (plural, beginning), field_ in self.bad.items():
            if plural in path.split("/") and name and name.startswith(beginning):
                _put(item, field_)


def _put(item: dict[str, Any], path: tuple[str, ...]) -> None:
    *above, last = path
    for key in above:
        item = item.setdefault(key, {})
    item[last] = "many" if last in ("generation", "metadata") else 5
