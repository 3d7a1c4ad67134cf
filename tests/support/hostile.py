"""Texts that a tenant may write, and what must not be left of them in what people read."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from random import Random
from typing import Any

from kube_in_process.seams import HttpResponse

from claimctl.wire.seams import Query, Response, Transport

SIGNS = (
    *("\x1b[2J\x1b[H", "\x1b]52;c;cm0gLXJmIC8=\x07", "\x1b[31m", "\x9b2J", "\x9d0;title\x9c"),
    *("\n", "\r", "\r\n", "\t", "\v", "\f", "\x08", "\x00", "\x7f", "\x85", "\u2028", "\u2029"),
    *("\u202a", "\u202e", "\u2066", "\u2069", "\u200e", "\u200f", "\u061c"),
    *("\u200b", "\u200d", "\u2060", "\ufeff", "\xad", "\U000e0041"),
)
"""What a terminal or a browser obeys, or what nobody sees."""
MARKUP = (
    *('"', "'", "`", "\\", "<", ">", "&", "#", ";", "%", "%%", "{", "}", "[", "]", "(", ")", "|"),
    *("<script>alert(1)</script>", "</text>", "-->", "<!--", "]]>", "<br>", "&lt;", "&#27;"),
    *('"]\nclick v0 href "javascript:alert(1)"', "%%{init: {'securityLevel': 'loose'}}%%"),
    *('"];\n evil -> v0;', "\\N", '\\"', "#quot;", "#35;", "$$x$$", "style v0 fill:#f00;", "end"),
    *("[bold]", "[/]", "{0}", "%s", "~~~mermaid", "---", "ä", "☃", "javascript:"),
)
"""What a language of pictures may take for its own."""
FORGED = "FORGED"
"""Stands after a line break, as the answer that a tenant would have an administrator read."""
TEXT = f"say{''.join(SIGNS)}\n{FORGED}: nothing is wrong\r{FORGED}\u2028{FORGED}\x85{FORGED}"


def texts(seed: int, count: int) -> list[str]:
    """Texts of random parts of all that is hostile, no two of which are equal."""
    rng = Random(seed)
    parts = (*SIGNS, *MARKUP, "a", "B9", " ", "/")
    return [f"{number}{''.join(rng.choices(parts, k=8))}" for number in range(count)]


def obeyed(text: str) -> set[str]:
    """The signs of a printed text that are no plain signs and no line breaks of its own."""
    return {sign for sign in text if not sign.isprintable() and sign != "\n"}


def forged_lines(text: str) -> list[str]:
    """The lines that begin with what a tenant wrote."""
    return [line for line in text.split("\n") if line.startswith(FORGED)]


class Hostile:
    """A Transport that appends ``TEXT`` to every text that it passes on, but for what the API
    server checks or computes: names, times, enumerations, numbers. Old versions are gone, so that
    a timeline is made from objects and Events."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        if "watch" in dict(query):
            gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": TEXT}
            return HttpResponse(410, {"content-type": "application/json"}, _once(gone))
        response = await self._inner.send(method, path, query, headers, body)
        if path.count("/") < 3 or path.startswith("/openapi"):
            return response
        text = b"".join([chunk async for chunk in response.body])
        try:
            answer = spoiled(json.loads(text))
        except ValueError:
            answer = f"{text.decode()}{TEXT}"
        kept = {key: value for key, value in response.headers.items() if key != "content-length"}
        return HttpResponse(response.status, kept, _once(answer), response.close)


async def _once(answer: Any) -> AsyncIterator[bytes]:
    yield json.dumps(answer).encode()


KNOWN_OWNER = "web"
"""The owners whose names begin so keep their kinds: something can be done about their pods."""
CHECKED = {
    *("apiVersion", "kind", "name", "namespace", "generateName", "uid", "resourceVersion"),
    *("finalizers", "labels", "matchLabels", "continue", "nodeName", "values", "manager"),
    *("phase", "status", "type", "action", "operation", "subresource", "conditionType"),
    *("retentionPolicy", "allocationMode", "restartPolicy", "operator", "effect", "step", "state"),
    *("resource", "apiGroup", "group", "version", "plural", "groupVersion", "scope", "verbs"),
    *("resourceClaimName", "resourceClaimTemplateName", "schedulerName", "podGroupName"),
    *("replicas", "capacity", "allocatable", "requests", "limits", "resources", "preferences"),
    *("standing", "component", "feature", "podTemplateHash", "openAPIV3Schema", "data"),
}
"""Fields whose values the API server, its admission or a CRD checks; also all below them."""
_NO_TEXT = re.compile(r"[\d.:TZ+-]*|.*/v\d\w*", re.ASCII)
"""Numbers and times, and versions of APIs."""


def spoiled(value: Any, key: str = "") -> Any:
    """A value of an object with all its free texts hostile."""
    if isinstance(value, list):
        return [spoiled(part, key) for part in value]
    if isinstance(value, dict):
        if key == "ownerReferences" and not value["name"].startswith(KNOWN_OWNER):
            # the API server checks neither
            return {**value, "kind": value["kind"] + TEXT, "name": value["name"] + TEXT}
        return {
            name: part if name in CHECKED and isinstance(part, str | list) else spoiled(part, name)
            for name, part in value.items()
            if name != "managedFields"
        }
    if isinstance(value, str) and not _NO_TEXT.fullmatch(value):
        return value + TEXT
    return value
