"""The bytes of HTTP answers."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from unicodedata import category

import msgspec
import yaml

from kube_in_process.errors import StatusError
from kube_in_process.objects import Object
from kube_in_process.seams import HttpResponse
from kube_in_process.storage.raw_json import as_answered
from kube_in_process.storage.store import decode, encode
from kube_in_process.text.json_text import indented

JSON = "application/json"
YAML = "application/yaml"
TEXT = "text/plain; charset=utf-8"
_SUPPORTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
_STREAMED = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"


class Answer(msgspec.Struct, frozen=True):
    """A complete answer; ``warnings`` become Warning headers."""

    status: int
    body: Object
    warnings: tuple[str, ...] = ()
    headers: Mapping[str, str] = msgspec.field(default_factory=dict)


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


def whole(status: int, content_type: str, data: bytes, headers: Mapping[str, str]) -> HttpResponse:
    """An answer of known length."""
    sent = {"content-length": str(len(data)), **headers}
    if content_type:
        sent["content-type"] = content_type
    return HttpResponse(status, sent, _once(data))


def respond(answer: Answer, media: str = JSON) -> HttpResponse:
    """An answer as JSON or YAML. Several warnings share one header line."""
    headers = dict(answer.headers)
    # like real servers, leave out warnings with control characters
    shown = (text for text in answer.warnings if all(category(letter) != "Cc" for letter in text))
    warnings = [_warning(text) for text in shown]
    if warnings:
        headers["warning"] = ", ".join(warnings)
    data = as_answered(encode(answer.body))
    if media == YAML:
        text = yaml.dump(decode(data), Dumper=_Dumper, sort_keys=True, default_flow_style=False)
        return whole(answer.status, YAML, text.encode(), headers)
    return whole(answer.status, JSON, data + b"\n", headers)


async def pretty(response: HttpResponse) -> HttpResponse:
    """The same answer, indented if it is JSON of known length."""
    if response.headers.get("content-type") != JSON or "content-length" not in response.headers:
        return response
    data = indented(b"".join([part async for part in response.body]))
    headers = {name: text for name, text in response.headers.items() if name != "content-length"}
    return whole(response.status, JSON, data, headers)


_MISREAD = re.compile(
    r"|~|null|true|false|yes|no|on|off|y|n|[-+]?(\d[\d_]*)?\.?\d*(e[-+]?\d+)?|\d+-\d+-\d+.*",
    re.IGNORECASE,
)


class _Dumper(yaml.SafeDumper):
    """Writes strings in double quotes if they would read as another type, as Go does."""


def _string(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = '"' if _MISREAD.fullmatch(value) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _string)


def _warning(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'299 - "{escaped}"'


def refuse(error: StatusError, warnings: Sequence[str] = ()) -> HttpResponse:
    """The answer for a refusal, with warnings about the body."""
    return respond(Answer(error.code, error.body(), tuple(warnings), error.headers))


def page_not_found() -> HttpResponse:
    return whole(404, TEXT, b"404 page not found\n", {})


def stream(body: AsyncIterator[bytes], content_type: str = JSON) -> HttpResponse:
    return HttpResponse(200, {"content-type": content_type}, body)


def choose_media(accept: str, *, watch: bool = False, custom: bool = False) -> str:
    """JSON or YAML, the first that the Accept header allows. ``custom`` kinds have their own error
    text.

    Raises:
        StatusError: 406.
    """
    if not accept:
        return JSON
    for entry in accept.split(","):
        media = entry.partition(";")[0].strip().lower()
        if media in (JSON, "*/*", "application/*"):
            return JSON
        if media == YAML:
            return YAML
    if custom and not watch:
        message = f"only the following media types are accepted: {_SUPPORTED}"
        raise StatusError(406, "NotAcceptable", message)
    supported = f"{_SUPPORTED}, {_STREAMED}" if watch else _SUPPORTED
    message = f"406: Not Acceptable\n\nAvailable representations: {supported}"
    raise StatusError(406, "NotAcceptable", message, {})
