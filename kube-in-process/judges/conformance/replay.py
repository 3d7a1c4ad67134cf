"""Plays the steps of a recording against a transport and notes what differs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from kube_in_process.seams import Response, Transport

from judges.conformance.compare import Difference, compare, without_managed_fields
from judges.conformance.placeholders import Bindings

Step = dict[str, Any]
DIRECTORY = Path(__file__).parent / "api"
POLL_SECONDS = 0.25
POLL_LIMIT = 400
_WITH_MANAGED_FIELDS = ("06-server-side-apply",)
"""Beside those that say so themselves (``managedFields``)."""
_ADMINISTRATOR = {"user-agent": "client/1.0"}
_OWN_WARNING = '"kube-in-process: nothing acts on '
"""What no real server says: it acts on every kind."""
_COMPARED_HEADERS = ("content-type", "warning", "retry-after", "allow", "location")


@dataclass(frozen=True, slots=True)
class ReplayStage:
    """What a recording is played against; ``forget`` compacts the history."""

    transport: Transport
    forget: Callable[[], None]


@dataclass(frozen=True, slots=True)
class StepResult:
    """``index`` is ``4`` or, for a step during a watch, ``4.1``."""

    index: str
    note: str
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    name: str
    server: str
    steps: tuple[Step, ...]
    managed_fields: bool = False
    """Whether metadata.managedFields is recorded and compared."""
    definitions: bool = False
    """Whether the server had claimctl's CustomResourceDefinitions."""


def load(path: Path) -> Recording:
    content = json.loads(path.read_text())
    name = content["name"]
    managed = content.get("managedFields", name in _WITH_MANAGED_FIELDS)
    defined = bool(content.get("definitions"))
    return Recording(name, content["server"], tuple(content["steps"]), managed, defined)


def recordings() -> list[Recording]:
    """Every recording, in the order of the file names."""
    return [load(path) for path in sorted(DIRECTORY.glob("*.json"))]


@dataclass
class AnsweredStep:
    """An answer in the form in which answers are recorded."""

    status: int
    headers: dict[str, Any]
    body: Any


@dataclass
class Replay:
    """One run of one recording; controllers have ``pause`` seconds after every step."""

    recording: Recording
    stage: ReplayStage
    pause: float = 0.0
    bindings: Bindings = field(default_factory=Bindings)
    results: list[StepResult] = field(default_factory=list)

    async def run(self) -> list[StepResult]:
        for index, step in enumerate(self.recording.steps):
            await self._step(str(index), step)
            if self.pause:
                await asyncio.sleep(self.pause)
        return self.results

    async def _step(self, index: str, step: Step) -> None:
        if step.get("action") == "forget":
            self.stage.forget()
            return
        if "response" not in step:
            return
        if step.get("poll"):
            differences = await self._poll(step)
        else:
            answered = await self._request(step, index)
            differences = self._compare(step, answered, self.bindings)
        self.results.append(StepResult(index, step.get("note", ""), tuple(differences)))

    async def _poll(self, step: Step) -> list[Difference]:
        differences: list[Difference] = []
        for _ in range(POLL_LIMIT):
            answered = await self._request(step, "")
            trial = Bindings(dict(self.bindings.values))
            differences = self._compare(step, answered, trial)
            if not differences:
                self.bindings.values = trial.values
                return []
            await asyncio.sleep(POLL_SECONDS)
        return self._compare(step, answered, self.bindings)

    async def _request(self, step: Step, index: str) -> AnsweredStep:
        request = timed(self.bindings.fill(step["request"]))
        parts = urlsplit(request["path"])
        query = parse_qsl(parts.query, keep_blank_values=True)
        body, headers = _sent(request)
        response = await self.stage.transport.send(
            request["method"], unquote(parts.path), query, headers, body
        )
        if _is_stream(step):
            return await self._stream(response, step, index)
        data = b"".join([part async for part in response.body])
        return _answered(response, data)

    async def _stream(self, response: Response, step: Step, index: str) -> AnsweredStep:
        """Steps that ran while the stream was open run once its first part was awaited."""
        reader = asyncio.ensure_future(_read(response))
        for number, during in enumerate(step.get("during", ())):
            await asyncio.sleep(0.01)
            await self._step(f"{index}.{number}", during)
        data = await reader
        if response.status != 200:
            return _answered(response, data)
        events = [json.loads(line) for line in data.splitlines() if line.strip()]
        return AnsweredStep(200, _headers(response), {"events": events})

    def _compare(self, step: Step, answered: AnsweredStep, bindings: Bindings) -> list[Difference]:
        recorded = step["response"]
        body, actual = recorded["body"], answered.body
        if not self.recording.managed_fields:
            actual = without_managed_fields(actual)
        if step.get("note", "").startswith("extract of the component schemas"):
            actual = _extract(body, actual)
        if _is_stream(step) and isinstance(body, dict) and "events" in body:
            body, actual = _streams(body), _streams(actual)
        return [
            *compare("status", recorded["status"], answered.status, bindings),
            *compare("headers", recorded["headers"], answered.headers, bindings),
            *compare("body", body, actual, bindings),
        ]


_SOME_TIME = "2026-01-01T00:00:00Z"


def timed(value: Any) -> Any:
    """A time that a server made, sent back: any time will do."""
    if isinstance(value, dict):
        return {key: timed(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [timed(inner) for inner in value]
    return _SOME_TIME if value == "<time>" else value


def _sent(request: Step) -> tuple[bytes | None, dict[str, str]]:
    headers = {**_ADMINISTRATOR, **request.get("headers", {})}
    body = request.get("body")
    if body is None and "body" not in request:
        return None, headers
    headers.setdefault("content-type", "application/json")
    if isinstance(body, str):
        return body.encode(), headers
    return json.dumps(body, separators=(",", ":")).encode(), headers


def _extract(recorded: Any, actual: Any) -> Any:
    """Of a document of which only some schemas were recorded, the same schemas."""
    schemas = actual["components"]["schemas"]
    chosen = {name: schemas[name] for name in recorded["components"]["schemas"] if name in schemas}
    return {"components": {"schemas": chosen}}


def _is_stream(step: Step) -> bool:
    body = step["response"]["body"]
    return isinstance(body, dict) and set(body) == {"events"}


async def _read(response: Response) -> bytes:
    return b"".join([part async for part in response.body])


def _headers(response: Response) -> dict[str, Any]:
    headers: dict[str, Any] = {
        key: response.headers[key] for key in _COMPARED_HEADERS if key in response.headers
    }
    first, *rest = headers.pop("warning", "").split(", 299 ")
    warnings = [first, *(f"299 {text}" for text in rest)]
    kept = [text for text in warnings if text and _OWN_WARNING not in text]
    if kept:
        headers["warning"] = kept[0] if len(kept) == 1 else kept
    return headers


def _answered(response: Response, data: bytes) -> AnsweredStep:
    headers = _headers(response)
    text = data.decode()
    if response.headers.get("content-type", "").startswith(("application/json", "text/plain")):
        try:
            return AnsweredStep(response.status, headers, json.loads(text))
        except ValueError:
            pass
    return AnsweredStep(response.status, headers, text)


def _streams(body: Mapping[str, Any]) -> dict[str, Any]:
    """A last bookmark before the end of a stream may or may not come."""
    events = list(body["events"]) if isinstance(body, dict) and "events" in body else body
    if not isinstance(events, list):
        return {"events": events}
    while events and events[-1]["type"] == "BOOKMARK" and not _initial_end(events[-1]):
        events.pop()
    return {"events": [_marked(event) for event in events]}


def _initial_end(event: Mapping[str, Any]) -> bool:
    annotations = event["object"].get("metadata", {}).get("annotations") or {}
    return "k8s.io/initial-events-end" in annotations


def _marked(event: dict[str, Any]) -> dict[str, Any]:
    if event["type"] != "BOOKMARK":
        return event
    # What else a bookmark holds are the zeroes of a Go struct.
    obj = {key: event["object"].get(key) for key in ("kind", "apiVersion", "columnDefinitions")}
    obj["metadata(bookmark)"] = event["object"].get("metadata", {})
    return {**event, "object": obj}


Play = Callable[[Recording], Awaitable[list[StepResult]]]
