"""What can go wrong between claimctl and an API server.

One class per answer that somebody treats differently. ``str()`` of each is one line that names
the request, fit to be shown to a person.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from claimctl.wire.base import decode
from claimctl.wire.meta import Status
from claimctl.wire.unreadable import Unreadable


class ConfigError(Exception):
    """No usable connection can be made of the configuration; one line naming file and field."""


class KubeError(Exception):
    """The root of all trouble with one request.

    Attributes:
        method, path: the request, without its query.
        status: the HTTP status, 0 when there was no answer.
        reason: the machine-readable reason of the Status object, or what stands in for it.
        message: the server's text, or ours.
    """

    def __init__(
        self, method: str, path: str, *, status: int = 0, reason: str = "", message: str = ""
    ) -> None:
        self.method = method
        self.path = path
        self.status = status
        self.reason = reason
        self.message = " ".join(message.split())
        super().__init__(method, path, status, reason, self.message)

    def __str__(self) -> str:
        outcome = " ".join(str(part) for part in (self.status, self.reason) if part)
        parts = (f"{self.method} {self.path}", outcome, self.message)
        return ": ".join(part for part in parts if part)


class Unreachable(KubeError):
    """There was no answer, or none to the end: refused, reset, DNS, TLS.

    ``delivered`` is False only when the request surely never reached the server, so that even a
    write may be repeated.
    """

    def __init__(self, method: str, path: str, message: str, *, delivered: bool = True) -> None:
        super().__init__(method, path, message=message)
        self.delivered = delivered


class RequestTimeout(KubeError):
    """The deadline passed: whether a write was applied is unknown."""


class BadAnswer(KubeError):
    """The answer is not JSON, or not of the shape that was asked for."""


class LostEvent(BadAnswer):
    """A line of a watch of which nothing can be made: what it told is lost, only a list helps."""


class UnreadableObject(BadAnswer):
    """The object that was asked for, written or listed is there and cannot be decoded.

    Attributes:
        found: what can be said of it all the same.
    """

    def __init__(self, method: str, path: str, found: Unreadable) -> None:
        super().__init__(method, path, message=f"unexpected answer: {found.told()}")
        self.found = found


class ApiError(KubeError):
    """An answer with status 400 or above.

    ``retry_after`` is the number of seconds the server asks to wait, None when it does not ask.
    """

    retry_after: float | None = None


class BadRequest(ApiError):
    """400, and requests that are refused here because no server would accept them."""


class Unauthorized(ApiError):
    """401: the credentials are missing or no longer good."""


class Forbidden(ApiError):
    """403, or the 422 by which 1.36 refuses a claim's status without resourceclaims/binding."""


class NotFound(ApiError):
    """404: the object, or the whole kind, is not there."""


class Conflict(ApiError):
    """409: the object has changed since the version the write was decided on."""


class AlreadyExists(ApiError):
    """409 on create: the name is taken."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old; only a new list helps."""


class Invalid(ApiError):
    """422: the server understood and refuses."""


class TooManyRequests(ApiError):
    """429: come again later; also how an eviction is refused by a disruption budget."""


class ServerError(ApiError):
    """500 and above."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    422: Invalid,
    429: TooManyRequests,
}


def from_answer(
    method: str, path: str, status: int, headers: Mapping[str, str], body: bytes
) -> ApiError:
    """The error that an answer with ``status`` >= 400 stands for."""
    try:
        told = decode(body, Status)
    except msgspec.MsgspecError:
        told = Status(message=body[:200].decode("utf-8", "replace"))
    return from_status(method, path, status, told, headers.get("retry-after"))


def from_status(
    method: str, path: str, status: int, told: Status, retry_after: str | None = None
) -> ApiError:
    """The error that a Status object stands for; a watch sends it without an HTTP status."""
    error = _class_of(status, told)(
        method,
        path,
        status=status,
        reason=told.reason or _BY_STATUS.get(status, ServerError).__name__,
        message=told.message,
    )
    error.retry_after = _seconds(retry_after, told)
    return error


def _class_of(status: int, told: Status) -> type[ApiError]:
    if status == 409 and told.reason == "AlreadyExists":
        return AlreadyExists
    if status == 422 and _is_missing_permission(told):
        return Forbidden
    if status >= 500:
        return ServerError
    return _BY_STATUS.get(status, ApiError)


def _is_missing_permission(told: Status) -> bool:
    """Kubernetes 1.36 answers 422 where the verb on a synthetic subresource is missing.

    The causes are of the reason FieldValueForbidden, as are those of plain validation errors, so
    only their text tells the two apart.
    """
    causes = (told.details and told.details.causes) or ()
    texts = [cause.message for cause in causes] or [told.message]
    return any("Forbidden: changing status." in text and " permission" in text for text in texts)


def _seconds(header: str | None, told: Status) -> float | None:
    if header is not None and header.strip().isdigit():
        return float(header)
    if told.details and told.details.retry_after_seconds:
        return float(told.details.retry_after_seconds)
    return None
