"""The server under random requests: made anew, furnished, asked, judged."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from unicodedata import category

from kube_in_process.api_server import api_server
from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.http.handler import ADMINISTRATOR, Handler
from kube_in_process.options import Authorization, ClusterOptions, Preset
from kube_in_process.runtime.local import ApiFor
from kube_in_process.seams import Response

from judges.fuzz.requests import NAMESPACE, FuzzRequest, examples

Object = dict[str, Any]

REAL_SERVER_ERRORS = (
    (500, r"resourceVersion should not be set on objects to be created"),
    (500, r'resourceVersion: Invalid value: ".*": strconv\.ParseUint: parsing .*: invalid syntax'),
    (500, r"strconv\.ParseUint: parsing .*: invalid syntax"),
    (500, r"failed to create typed patch object \(.*"),
    (500, r"list element types are not identical: .*"),
    (500, r"This pod has more than one PodDisruptionBudget, which .*"),
    (500, r"target\.name: Required value"),
    (504, r"Timeout: Too large resource version: \d+, current: \d+"),
)
"""The 5xx that recordings of real servers hold (02, 04, 05, 06, 09, 16)."""
WATCH_SECONDS = 3600.0
"""No stream is longer; the server's own limit is half of it."""


class Unsound(AssertionError):
    """The server did what no server may."""


@dataclass
class FuzzTally:
    """What was asked and how it was answered."""

    requests: int = 0
    watches: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    methods: Counter[str] = field(default_factory=Counter)


def furnished() -> Handler:
    """A server with RBAC and a namespace in which the recordings' objects find their like."""
    options = ClusterOptions(
        preset=Preset.POD_GROUPS, kubernetes_version=(1, 36), authorization=Authorization.RBAC
    )
    handler = api_server(options, LoopClock(EPOCH))
    admin = ApiFor(handler.api, ADMINISTRATOR)
    admin.create("namespaces", {"metadata": {"name": NAMESPACE}})
    for plural, body in (*_recorded(), *_FURNITURE):
        namespace = {"namespace": NAMESPACE} if handler.api.kinds.named(plural).namespaced else {}
        admin.create(plural, {**body, "metadata": {**body["metadata"], **namespace}})
    return handler


def _recorded() -> list[tuple[str, Object]]:
    """The custom kind of the recordings."""
    where = ("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
    bodies = [example.body for example in examples() if (example.method, example.path) == where]
    body = next(body for body in bodies if _whole(body))
    return [("customresourcedefinitions", body)]


def _whole(definition: Object) -> bool:
    """Whether it is the one with rules, and not one of those that a server refuses."""
    text = json.dumps(definition)
    named = definition["metadata"]["name"].startswith("widgets.")
    return named and "-validations" in text and '"bad"' not in text


_DEVICES = {"requests": [{"name": "d", "exactly": {"deviceClassName": "gpu"}}]}
_POD = {"containers": [{"name": "c", "image": "x"}]}
_TEMPLATE = {"metadata": {"labels": {"app": "a"}}, "spec": _POD}
_APP = {"selector": {"matchLabels": {"app": "a"}}, "template": _TEMPLATE}
_FURNITURE: tuple[tuple[str, Object], ...] = (
    *(("resourceclaims", {"metadata": {"name": n}, "spec": {"devices": _DEVICES}}) for n in "abc"),
    ("configmaps", {"metadata": {"name": "a", "labels": {"app": "a"}}, "data": {"k": "v"}}),
    ("pods", {"metadata": {"name": "p", "labels": {"app": "a"}}, "spec": _POD}),
    ("pods", {"metadata": {"name": "a", "finalizers": ["example.com/f"]}, "spec": _POD}),
    ("deployments", {"metadata": {"name": "d"}, "spec": _APP}),
    ("statefulsets", {"metadata": {"name": "s"}, "spec": {**_APP, "serviceName": "s"}}),
    ("leases", {"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}}),
    ("serviceaccounts", {"metadata": {"name": "sa"}}),
    ("roles", {"metadata": {"name": "r"}, "rules": []}),
    (
        "poddisruptionbudgets",
        {"metadata": {"name": "b"}, "spec": {"selector": {"matchLabels": {"app": "a"}}}},
    ),
    ("widgets", {"metadata": {"name": "a"}, "spec": {"size": "small"}}),
    ("widgets", {"metadata": {"name": "w"}, "spec": {"size": "small", "replicas": 2}}),
)


async def asked(handler: Handler, requests: list[FuzzRequest], tally: FuzzTally) -> None:
    """Send the requests one after the other, and look at the server afterwards.

    Raises:
        Unsound: an answer that no server gives; whatever the server itself raises.
    """
    for request in requests:
        await _one(handler, request, tally)
    await _still_sound(handler)


async def _one(handler: Handler, request: FuzzRequest, tally: FuzzTally) -> Response:
    response = await handler.send(
        request.method, request.path, request.query, dict(request.headers), request.body
    )
    tally.requests += 1
    tally.methods[request.method] += 1
    tally.statuses[response.status] += 1
    if _streams(response):
        tally.watches += 1
        await _read_stream(handler, response)
    else:
        judge(response, b"".join([part async for part in response.body]))
    return response


def _streams(response: Response) -> bool:
    return response.status == 200 and "content-length" not in response.headers


async def _read_stream(handler: Handler, response: Response) -> None:
    """A stream ends by itself, and every line of it is an event."""
    try:
        async with asyncio.timeout(WATCH_SECONDS):
            data = b"".join([part async for part in response.body])
    except TimeoutError:
        raise Unsound("the watch hangs") from None
    for line in data.splitlines():
        event = _decoded(line)
        if set(event) != {"type", "object"} or not isinstance(event["object"], dict):
            raise Unsound(f"no event: {line!r}")


def judge(response: Response, data: bytes) -> None:
    """Raises Unsound for what no API server answers."""
    if response.headers.get("content-length") != str(len(data)):
        raise Unsound("the length of the body is not what the header says")
    for name, value in response.headers.items():
        if any(category(letter) == "Cc" for letter in value):
            raise Unsound(f"a header that cannot be sent: {name}: {value!r}")
    body = _decoded(data) if response.headers.get("content-type") == "application/json" else {}
    if response.status >= 500:
        _judge_server_error(response.status, body)
    if response.status >= 400 and body and body.get("code") != response.status:
        raise Unsound(f"{response.status} with a body of {body}")


def _judge_server_error(status: int, body: Object) -> None:
    message = str(body.get("message"))
    for known, pattern in REAL_SERVER_ERRORS:
        if known == status and re.fullmatch(pattern, message, re.DOTALL):
            return
    raise Unsound(f"{status} that no real server gives: {message}")


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data, parse_constant=_no_json)
    except ValueError:
        raise Unsound(f"no JSON: {data!r}") from None


def _no_json(text: str) -> None:
    raise ValueError(text)


_DOCUMENTS = ("/api", "/apis", "/openapi/v3")
_TABLE = (("accept", "application/json;as=Table;v=v1;g=meta.k8s.io"),)


async def _still_sound(handler: Handler) -> None:
    """Everything can still be listed, in every form, and discovery be read."""
    tally = FuzzTally()
    for path in _DOCUMENTS:
        await _must(handler, FuzzRequest("GET", path), tally)
    for kind in handler.api.kinds:
        if "list" not in kind.verbs or not handler.api.store.items(*kind.storage):
            continue
        root = f"/apis/{kind.group}" if kind.group else "/api"
        path = f"{root}/{kind.version}/{kind.plural}"
        await _must(handler, FuzzRequest("GET", path), tally)
        await _must(handler, FuzzRequest("GET", path, headers=_TABLE), tally)


async def _must(handler: Handler, request: FuzzRequest, tally: FuzzTally) -> None:
    response = await _one(handler, request, tally)
    if response.status != 200:
        raise Unsound(f"{request.path} is {response.status} afterwards")
