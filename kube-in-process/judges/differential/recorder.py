"""Plays a sequence of requests on a real server and makes a transcript."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from judges.conformance.compare import compare, without_managed_fields
from judges.conformance.placeholders import Bindings
from judges.conformance.replay import timed
from judges.differential.placeholders import Encoder
from judges.differential.server import RealServer, RecordedAnswer
from judges.differential.templates import Known, Step

AGENT = "client/1.0"
WATCH_SECONDS = 4
_SETTLED_SECONDS = 0.05
_CACHE_SECONDS = 0.3
"""Seconds after which a real server's watch cache shows what was written before."""
_LATE_SECONDS = 1.0
"""Seconds that a watch must still last after the requests during it."""


class Spoiled(Exception):
    """The sequence has no result: the server was too slow, or the connection broke."""


@dataclass(frozen=True, slots=True)
class Sequence:
    """Steps of a transcript without answers, with references instead of placeholders. ``recorded``
    steps have the placeholders and answers of an old transcript."""

    name: str
    steps: tuple[Step, ...]
    recorded: bool = False
    managed_fields: bool = False


@dataclass
class Recorder:
    """One playing of one sequence."""

    server: RealServer
    sequence: Sequence
    known: Known = field(default_factory=Known)
    old: Bindings = field(default_factory=Bindings)
    encoder: Encoder = field(init=False)

    def __post_init__(self) -> None:
        self.encoder = Encoder(json.dumps([_asked(step) for step in self.sequence.steps]))

    async def run(self) -> list[Step]:
        """Play the sequence; returns requests and answers with placeholders.

        Raises:
            Spoiled: the sequence has no result.
        """
        try:
            return [await self._step(step) for step in self.sequence.steps]
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise Spoiled(str(error)) from error

    async def _step(self, step: Step) -> Step:
        request = self._request(step)
        encoded = self.encoder.request(request)
        step_made: Step = {"note": step.get("note", ""), "request": encoded}
        if "during" in step:
            return await self._watched(step, request, step_made)
        if _from_cache(request):
            await asyncio.sleep(_CACHE_SECONDS)
        answer = await self.server.send(*_sent(request))
        if answer.status in (429, 503) and "eviction" not in request["path"]:
            raise Spoiled("the server is busy")
        self._answered(step, request, step_made, answer.status, answer.headers, body_of(answer))
        await asyncio.sleep(step.get("pause", 0))
        return step_made

    def _request(self, step: Step) -> Step:
        if self.sequence.recorded:
            # A value of an earlier answer that is missing because its request was changed.
            return dict(timed(_known(self.old.fill(step["request"]))))
        return dict(self.known.resolved(step["request"]))

    def _answered(
        self,
        step: Step,
        request: Step,
        step_made: Step,
        status: int,
        headers: Mapping[str, Any],
        body: Any,
    ) -> None:
        if not self.sequence.managed_fields:
            body = without_managed_fields(body)
        if status < 300:
            self.known.learn(_object_path(request), body)
        if self.sequence.recorded and "response" in step:
            compare("body", step["response"]["body"], body, self.old)
        step_made["response"] = {
            "status": status,
            "headers": self.encoder.answer(dict(headers)),
            "body": self.encoder.answer(body),
        }

    async def _watched(self, step: Step, request: Step, step_made: Step) -> Step:
        begun = time.monotonic()
        async with self.server.opened(*_sent(request)) as answer:
            reader = asyncio.ensure_future(answer.read())
            await asyncio.sleep(_SETTLED_SECONDS)
            during = [await self._step(part) for part in step["during"]]
            late = time.monotonic() - begun > WATCH_SECONDS - _LATE_SECONDS
            if late and answer.status == 200:
                reader.cancel()
                raise Spoiled("the requests took longer than the watch")
            data = await reader
            if answer.status == 429:
                raise Spoiled("the server is busy")
            watched = RecordedAnswer(answer.status, _watch_headers(answer), data)
        asked = "sendInitialEvents=true" in request["path"]
        body = body_of(watched) if watched.status != 200 else _events(data, asked)
        self._answered(step, request, step_made, watched.status, watched.headers, body)
        step_made["during"] = during
        return step_made


_UNKNOWN = re.compile(r"<(?:uid|rv|continue|token|gen|hash):\d+>")


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {_known(key): _known(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_known(inner) for inner in value]
    return _UNKNOWN.sub("unknown", value) if isinstance(value, str) else value


def _asked(step: Step) -> list[Any]:
    return [step["request"], *(_asked(during) for during in step.get("during", ()))]


def _object_path(request: Step) -> str:
    return str(request["path"])


def _from_cache(request: Step) -> bool:
    """Whether a real server answers from its watch cache, which may be a moment late."""
    return request["method"] == "GET" and bool(
        re.search(r"[?&]resourceVersion=\d", request["path"])
    )


def _sent(request: Step) -> tuple[str, str, dict[str, str], bytes | None]:
    headers = {"user-agent": AGENT, **request.get("headers", {})}
    body = request.get("body")
    if body is None and "body" not in request:
        return request["method"], request["path"], headers, None
    headers.setdefault("content-type", "application/json")
    data = body.encode() if isinstance(body, str) else compact(body)
    return request["method"], request["path"], headers, data


def compact(body: Any) -> bytes:
    """JSON without spaces, as most clients send it; the server stores some fields as sent."""
    return json.dumps(body, separators=(",", ":")).encode()


def _watch_headers(answer: aiohttp.ClientResponse) -> dict[str, Any]:
    names = ("content-type", "warning", "retry-after", "allow", "location")
    return {name: answer.headers[name] for name in names if name in answer.headers}


def body_of(answer: RecordedAnswer) -> Any:
    text = answer.data.decode("utf-8", "replace")
    media = str(answer.headers.get("content-type", ""))
    if media.startswith(("application/json", "text/plain")):
        try:
            return json.loads(text)
        except ValueError:
            pass
    return text


def _hand_on_columns(events: list[Any]) -> None:
    """Move the columns of a stream of tables from a bookmark to the next event."""
    for event, following in itertools.pairwise(events):
        columns = event["object"].get("columnDefinitions")
        if event["type"] == "BOOKMARK" and columns:
            following["object"]["columnDefinitions"] = columns


_INITIAL_END = "k8s.io/initial-events-end"


def _events(data: bytes, initial: bool) -> dict[str, Any]:
    """The events of a watch without bookmarks, which come at any time. The one that ends requested
    initial events is kept."""
    events = [json.loads(line) for line in data.splitlines() if line.strip()]
    if not initial:
        _hand_on_columns(events)
    kept = [
        event
        for event in events
        if event["type"] != "BOOKMARK" or (initial and _INITIAL_END in json.dumps(event["object"]))
    ]
    return {"events": kept}
