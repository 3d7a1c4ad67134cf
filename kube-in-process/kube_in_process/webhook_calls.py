"""Calls of webhooks over HTTPS, beside the synchronous code of the server.

A write that needs an answer raises ``CallsWanted``. Whoever serves it makes the calls, and serves
it once more. An answer counts for a call with the same content: so a write that meets another
object than before asks again, as a real server does after a conflict. Some writes differ each time,
as those with the time of now: after some tries, the last answer about the object counts.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kube_in_process.virtual import VirtualLoop

_TRIES = 4
"""How often a webhook is asked for one write about one object."""


@dataclass(frozen=True, slots=True)
class WebhookCall:
    """A POST to a webhook. ``key`` is its content without what differs from call to call, and
    ``about`` the webhook with the object that it is asked about."""

    key: str
    about: str
    uid: str
    url: str
    ca_bundle: str
    timeout: float
    body: bytes


@dataclass(frozen=True, slots=True)
class WebhookReply:
    """What came back: a body, or the text of what went wrong."""

    uid: str
    body: bytes = b""
    problem: str = ""


class CallsWanted(Exception):
    """A write cannot go on without the answers of webhooks."""

    def __init__(self, calls: Sequence[WebhookCall]) -> None:
        super().__init__(", ".join(call.url for call in calls))
        self.calls = tuple(calls)


class Replies(msgspec.Struct):
    """The answers that came for a write, or for the writes of a component. ``none_asked``: no
    webhook is called for them, as nobody could wait for it."""

    none_asked: bool = False
    token_volume: str = ""
    """The name of the volume with a pod's token: a write that begins once more keeps it."""
    _kept: dict[str, WebhookReply] = msgspec.field(default_factory=dict)
    _about: dict[str, list[WebhookReply]] = msgspec.field(default_factory=dict)

    def to(self, call: WebhookCall) -> WebhookReply | None:
        """The answer to a call; None if it was not made yet."""
        if call.key in self._kept:
            return self._kept[call.key]
        tried = self._about.get(call.about, [])
        return tried[-1] if len(tried) >= _TRIES else None

    def forget(self) -> None:
        """Called when a write has ended: another one with the same content asks again."""
        self.token_volume = ""
        self._kept.clear()
        self._about.clear()

    async def fetch(self, wanted: CallsWanted) -> None:
        """Make the calls, all at the same time."""
        replies = await asyncio.gather(*map(_answered, wanted.calls))
        for call, reply in zip(wanted.calls, replies, strict=True):
            self._kept[call.key] = reply
            self._about.setdefault(call.about, []).append(reply)


async def _answered(call: WebhookCall) -> WebhookReply:
    if isinstance(asyncio.get_running_loop(), VirtualLoop):
        return WebhookReply(call.uid, problem="no webhook is called in virtual time")
    # imported here: few clusters call a webhook
    import aiohttp

    url = f"{call.url}?timeout={call.timeout:g}s"
    try:
        context = ssl.create_default_context(cadata=call.ca_bundle or None)
        limit = aiohttp.ClientTimeout(total=call.timeout)
        headers = {"content-type": "application/json", "user-agent": "kube-apiserver-admission"}
        async with (
            aiohttp.ClientSession(timeout=limit, headers=headers) as session,
            session.post(url, data=call.body, ssl=context) as response,
        ):
            body = await response.read()
            if response.status == 200:
                return WebhookReply(call.uid, body)
            return WebhookReply(call.uid, problem=_status_text(response.status, body))
    except (aiohttp.ClientError, TimeoutError, ssl.SSLError, OSError) as error:
        return WebhookReply(call.uid, problem=f'Post "{url}": {_text(error)}')


_STATUS_TEXTS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
}


def _status_text(status: int, body: bytes) -> str:
    """The words of Go's client for an answer that is no success."""
    if status in _STATUS_TEXTS:
        return _STATUS_TEXTS[status]
    shown = body.decode(errors="replace").strip().replace('"', '\\"')
    if status == 403:
        return f"forbidden: {shown}"
    if status >= 500:
        return f'an error on the server ("{shown}") has prevented the request from succeeding'
    why = "but did not return more information"
    return f"the server responded with the status code {status} {why}"


def _text(error: Exception) -> str:
    """The words of Go's client for a connection that failed."""
    if isinstance(error, TimeoutError):
        return "context deadline exceeded"
    cause = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(cause, ConnectionRefusedError):
        host, port = getattr(error, "host", ""), getattr(error, "port", "")
        return f"dial tcp {host}:{port}: connect: connection refused"
    if isinstance(cause, ssl.SSLCertVerificationError):
        why = cause.verify_message
        if why.startswith(("unable to get", "self-signed", "self signed")):
            why = "certificate signed by unknown authority"
        return f"tls: failed to verify certificate: x509: {why}"
    return str(cause)
