"""Requests at random: those of the recordings with odd places, and others out of nothing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from hypothesis import strategies as st

from judges.conformance.placeholders import Bindings
from judges.conformance.replay import recordings
from judges.fuzz.values import anything, bent, keys, scalars, texts

NAMESPACE = "fuzz"
Query = tuple[tuple[str, str], ...]

PATCHES = (
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_MEDIA = (
    *PATCHES,
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "text/plain",
    "application/json; charset=utf-8",
    "",
    ";",
)
_ACCEPTS = (
    "application/json",
    "application/yaml",
    "*/*",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io",
    "application/json;as=Table;v=v9;g=nosuch",
    "text/html",
    ";;,",
)
_PARAMETERS = (
    "watch",
    "limit",
    "continue",
    "resourceVersion",
    "resourceVersionMatch",
    "labelSelector",
    "fieldSelector",
    "timeoutSeconds",
    "allowWatchBookmarks",
    "sendInitialEvents",
    "dryRun",
    "fieldValidation",
    "fieldManager",
    "force",
    "gracePeriodSeconds",
    "propagationPolicy",
    "orphanDependents",
    "pretty",
    "includeObject",
)
_ARGUMENTS = (
    "true",
    "false",
    "1",
    "0",
    "-1",
    "99999999999999999999",
    "All",
    "Strict",
    "Ignore",
    "Warn",
    "Exact",
    "NotOlderThan",
    "Foreground",
    "Orphan",
    "metadata.name=c",
    "metadata.name!=c,metadata.namespace=x",
    "spec.nodeName=",
    "a=b,c in (d,e),!f",
    "a in (",
    "=",
    "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0",
    "bm90IGpzb24",
    "\x00",
)
_SEGMENTS = (
    "api",
    "apis",
    "v1",
    "v1beta1",
    "apps",
    "resource.k8s.io",
    "watch",
    "namespaces",
    NAMESPACE,
    "pods",
    "resourceclaims",
    "deployments",
    "customresourcedefinitions",
    "status",
    "scale",
    "eviction",
    "binding",
    "token",
    "log",
    "openapi",
    "v3",
    "",
    ".",
    "..",
    "%",
    "ß",
    "*",
)
_RAW = (
    b"",
    b"null",
    b"[]",
    b"{",
    b"\xff\xfe",
    b"{}{}",
    b"[" * 20000,
    b'{"a":' * 5000,
    b'{"metadata":{"name":"\\ud800"}}',
    b'{"metadata":{"name":"a","name":"b"},"data":{"k":"1","k":"2"}}',
    b'{"spec":{"replicas":' + b"9" * 5000 + b"}}",
    b'{"spec":{"replicas":1e400}}',
    b'{"spec":{"replicas":NaN}}',
    b"k8s\x00",
    b"k8s\x00\x0a\xff\xff\xff\xff\xff",
    b"a: &a [*a]",
    b"a: 2026-01-01\nb: !!python/object:os.system x",
    b"{? [1]: 2}",
    b"a: .nan",
    b"\x00",
)


@dataclass(frozen=True, slots=True)
class FuzzRequest:
    method: str
    path: str
    query: Query = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None


@dataclass(frozen=True, slots=True)
class Example:
    """A request of a recording, its body as JSON. Bodies that are no JSON have none."""

    method: str
    path: str
    query: Query
    headers: tuple[tuple[str, str], ...]
    body: Any


@cache
def examples() -> tuple[Example, ...]:
    """What the recordings ask, each file in the namespace of the tests, each request once."""
    examples_by_key: dict[str, Example] = {}
    for recording in recordings():
        for step in recording.steps:
            for part in (step, *step.get("during", ())):
                if "request" in part:
                    example = _example(part["request"], recording.name.replace(".", "-"))
                    examples_by_key.setdefault(repr(example), example)
    return tuple(examples_by_key.values())


_STAND_INS = Bindings({f"<rv:{number}>": str(number) for number in range(200)})


def _example(recorded: dict[str, Any], namespace: str) -> Example:
    text = json.dumps(_STAND_INS.fill(recorded)).replace(namespace, NAMESPACE)
    request = json.loads(text)
    parts = urlsplit(request["path"])
    return Example(
        method=request["method"],
        path=unquote(parts.path),
        query=tuple(parse_qsl(parts.query, keep_blank_values=True)),
        headers=tuple(sorted(request.get("headers", {}).items())),
        body=request.get("body") if not isinstance(request.get("body"), str) else {},
    )


@st.composite
def requests(draw: st.DrawFn) -> FuzzRequest:
    """One request; most are near a valid one."""
    example = draw(st.sampled_from(examples()))
    method, path, body = example.method, example.path, example.body
    odd = draw(st.integers(0, 9))
    if odd == 0:
        path = _bent_path(draw, path)
    elif odd == 1:
        method = draw(st.sampled_from(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")))
    query = _bent_query(draw, example.query)
    headers = _bent_headers(draw, dict(example.headers))
    if method == "PATCH":
        headers.setdefault("content-type", draw(st.sampled_from(PATCHES)))
    data = _encoded(draw, body, headers.get("content-type", "")) if body is not None else None
    if data is None and method in ("POST", "PUT", "PATCH"):
        data = _raw(draw)
    return FuzzRequest(method, path, query, tuple(sorted(headers.items())), data)


def _bent_path(draw: st.DrawFn, path: str) -> str:
    parts = path.split("/")[1:]
    where = draw(st.integers(0, len(parts)))
    segment = draw(st.one_of(st.sampled_from(_SEGMENTS), texts))
    how = draw(st.integers(0, 2))
    if how == 0:
        parts[where : where + 1] = [segment]
    elif how == 1:
        parts.insert(where, segment)
    else:
        del parts[where:]
    return "/" + "/".join(parts)


def _bent_query(draw: st.DrawFn, query: Query) -> Query:
    if draw(st.integers(0, 2)):
        return query
    names = st.one_of(st.sampled_from(_PARAMETERS), texts)
    values = st.one_of(st.sampled_from(_ARGUMENTS), texts)
    return (*query, *draw(st.lists(st.tuples(names, values), min_size=1, max_size=3)))


def _bent_headers(draw: st.DrawFn, headers: dict[str, str]) -> dict[str, str]:
    headers.pop("authorization", None)
    odd = draw(st.integers(0, 39))
    if odd <= 4:
        headers["accept"] = draw(st.sampled_from(_ACCEPTS))
    elif odd <= 9:
        headers["content-type"] = draw(st.sampled_from(_MEDIA))
    elif odd == 10:
        headers["authorization"] = draw(st.sampled_from(("", "Bearer", "Bearer x", "Basic eDp5")))
    elif odd == 11:
        headers["impersonate-user"] = draw(texts)
    elif odd == 12:
        headers["user-agent"] = draw(texts)
    return headers


def _encoded(draw: st.DrawFn, body: Any, media: str) -> bytes:
    if draw(st.integers(0, 19)) == 0:
        return _raw(draw)
    if media == "application/json-patch+json" and draw(st.booleans()):
        return _json(draw(st.lists(operations(), max_size=3)))
    return _json(draw(bent(body)))


def _raw(draw: st.DrawFn) -> bytes:
    return draw(st.one_of(st.sampled_from(_RAW), st.binary(max_size=20), anything.map(_json)))


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def operations() -> st.SearchStrategy[Any]:
    """Operations of JSON patches."""
    pointers = st.one_of(
        st.lists(st.one_of(keys, st.sampled_from(("0", "-", "1", "~1", "~"))), max_size=4).map(
            lambda parts: "".join(f"/{part}" for part in parts)
        ),
        scalars,
    )
    return st.one_of(
        st.fixed_dictionaries(
            {"op": st.sampled_from(("add", "remove", "replace", "move", "copy", "test", "x"))},
            optional={"path": pointers, "from": pointers, "value": anything},
        ),
        anything,
    )


def sequences(longest: int = 4) -> st.SearchStrategy[list[FuzzRequest]]:
    """Requests that come one after the other."""
    return st.lists(requests(), min_size=1, max_size=longest)
