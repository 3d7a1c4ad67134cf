"""A Transport that passes answers on, with bad values in some objects."""

from __future__ import annotations

import json
import re
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
    nested: dict[tuple[str, str], int] = field(default_factory=dict)
    """By resource and prefix of the name: how deep a further field of the spec is nested."""

    def spoil(self, plural: str, name: str, *path: str) -> None:
        self.bad[plural, name] = path or GENERATION

    def deepen(self, plural: str, name: str, levels: int) -> None:
        self.nested[plural, name] = levels

    def mend(self, plural: str, name: str) -> None:
        del self.bad[plural, name]

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        response = await self.inner.send(method, path, query, headers, body)
        plurals = {plural for plural, _ in (*self.bad, *self.nested)} & set(path.split("/"))
        if response.status >= 400 or (not plurals and "watch" not in dict(query)):
            return response
        stream = self._lines if "watch" in dict(query) else self._whole
        return HttpResponse.around(response, stream(path, response.body))

    async def _lines(self, path: str, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for line in lines(body):
            event = json.loads(line)
            self._look_at(path, event.get("object"))
            yield _encoded(event) + b"\n"

    async def _whole(self, path: str, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        answer = json.loads(b"".join([chunk async for chunk in body]))
        for item in answer["items"] or () if "items" in answer else (answer,):
            self._look_at(path, item)
        yield _encoded(answer)

    def _look_at(self, path: str, item: Any) -> None:
        name = item.get("metadata", {}).get("name", "")
        for (plural, beginning), field_ in self.bad.items():
            if plural in path.split("/") and name and name.startswith(beginning):
                _put(item, field_)
        for (plural, beginning), levels in self.nested.items():
            if plural in path.split("/") and name and name.startswith(beginning):
                item["spec"] = {**(item.get("spec") or {}), "nested": f"<{levels} levels>"}


def _encoded(answer: Any) -> bytes:
    """JSON, with brackets in the places of ``deepen``: Python's encoder cannot nest them."""
    return re.sub(
        rb'"<(\d+) levels>"',
        lambda found: b"[" * int(found[1]) + b"]" * int(found[1]),
        json.dumps(answer).encode(),
    )


def _put(item: dict[str, Any], path: tuple[str, ...]) -> None:
    *above, last = path
    for key in above:
        item = item.setdefault(key, {})
    item[last] = "many" if last in ("generation", "metadata") else 5
