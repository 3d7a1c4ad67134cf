"""Errors of requests to an API server.

There is one class for each kind of answer that callers handle differently. ``str()`` of an error
is one line that names the request and can be shown to a user.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

import msgspec

from claimctl.wire.base import decode
from claimctl.wire.claims import UNCHANGEABLE
from claimctl.wire.meta import Status
from claimctl.wire.unreadable import Unreadable


class ConfigError(Exception):
    """The configuration gives no usable connection; one line that names file and field."""


class KubeError(Exception):
    """The base class of all errors of one request.

    Attributes:
        method, path: the request, without its query.
        status: the HTTP status; 0 if there was no answer.
        reason: the reason of the Status object, such as NotFound; else the name of the error class.
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
    """There was no complete answer: connection refused or reset, DNS or TLS failure.

    ``delivered`` is False only if the request surely never reached the server. Then even a write
    may be repeated.
    """

    def __init__(self, method: str, path: str, message: str, *, delivered: bool = True) -> None:
        super().__init__(method, path, message=message)
        self.delivered = delivered


class RequestTimeout(KubeError):
    """The deadline passed. It is unknown whether the server applied a write."""


class BadAnswer(KubeError):
    """The answer is not JSON, or has not the expected structure."""


class AnswerTooLong(BadAnswer):
    """An answer has more bytes than are read. A list may be asked for in smaller pages."""


class NotServed(KubeError):
    """The server does not serve a kind."""

    def __init__(self, api_version: str, kind: str) -> None:
        self.api_version = api_version
        message = f"{api_version} {kind} is not served by this cluster"
        super().__init__("GET", f"/apis/{api_version}", message=message)

    def __str__(self) -> str:
        return self.message


class LostEvent(BadAnswer):
    """A line of a watch cannot be decoded. The event is lost; only a new list helps."""


class UnreadableObject(BadAnswer):
    """An object exists and cannot be decoded. If the request was a write, it succeeded.

    Attributes:
        unreadable: the parts of the object that can be read.
    """

    def __init__(self, method: str, path: str, unreadable: Unreadable) -> None:
        super().__init__(method, path, message=f"unexpected answer: {unreadable.describe()}")
        self.unreadable = unreadable


class ApiError(KubeError):
    """An answer with status 400 or above.

    Attributes:
        retry_after: the number of seconds that the server asks the client to wait, or None.
        names_fields: whether the server names a field at fault.
    """

    retry_after: float | None = None
    names_fields: bool = False


class BadRequest(ApiError):
    """400; also raised here, without a request, if no server would accept the request."""

    @property
    def unknown_fields(self) -> bool:
        """Whether the server refuses fields that it does not know, as a strict write asks for."""
        return "strict decoding error: unknown field" in self.message


class Unauthorized(ApiError):
    """401: the credentials are missing or not valid any more."""


class Forbidden(ApiError):
    """403; or 422 from Kubernetes 1.36 if the verb on resourceclaims/binding is missing."""


class NotFound(ApiError):
    """404: the object does not exist, or the server does not serve its kind."""


class Conflict(ApiError):
    """409: the object has another version than the write carries."""


class AlreadyExists(ApiError):
    """409 on create: the name is taken."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old; only a new list helps."""


class Invalid(ApiError):
    """422: the object is not valid."""


class Unchangeable(Invalid):
    """422 to a patch of a ResourceClaim, for fields that the patch does not change: the server
    compares their bytes, and the bytes change when it reads and writes the claim."""


class TooManyRequests(ApiError):
    """429: too many requests; or a disruption budget refuses an eviction."""


class ServerError(ApiError):
    """500 and above."""


class ErrorKind(Enum):
    """What has to change before a request that failed is worth another try."""

    FINAL = auto()
    """The request itself: no server would ever accept it."""
    REFUSED = auto()
    """A right, a policy or a quota, of which nothing tells."""
    AWAY = auto()
    """The server gave no answer."""
    PASSING = auto()
    """Nothing but time: another client wrote first, or the server is busy."""


def kind_of(error: BaseException | None) -> ErrorKind:
    """The kind of an error; a bug of ours (any other exception) counts as passing."""
    if isinstance(error, Unreachable):
        return ErrorKind.AWAY
    if isinstance(error, Forbidden):
        return ErrorKind.REFUSED
    if not isinstance(error, (BadRequest, Invalid)):
        return ErrorKind.PASSING
    # a webhook answers 400 by default, and a ValidatingAdmissionPolicy 422
    denied = any(words in error.message for words in _DENIALS)
    unknown = isinstance(error, BadRequest) and error.unknown_fields
    final = not error.status or unknown or (error.names_fields and not denied)
    return ErrorKind.FINAL if final else ErrorKind.REFUSED


_DENIALS = ("denied request", "denied the request")
"""How API servers word what an admission policy and an admission webhook refuse."""
_NO_SUCH_PATH = "404 page not found"
"""What an API server answers where it serves nothing; all its other errors are Status objects."""
_NO_KUBERNETES = (
    "this is not the answer of a Kubernetes API server; look at the server in the kubeconfig "
    "(kubectl config view --minify)"
)

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
    """Make the error for an answer with ``status`` >= 400."""
    try:
        answer = decode(body, Status)
    except msgspec.MsgspecError:
        text = body[:200].decode("utf-8", "replace").strip()
        strange = status == 404 and text != _NO_SUCH_PATH
        answer = Status(message=_NO_KUBERNETES if strange else text)
    return from_status(method, path, status, answer, headers.get("retry-after"))


def from_status(
    method: str, path: str, status: int, answer: Status, retry_after: str | None = None
) -> ApiError:
    """Make the error for a Status object, which a watch may also send in an ERROR event."""
    class_ = _class_of(path, status, answer)
    error = class_(
        method,
        path,
        status=status,
        reason=answer.reason or _BY_STATUS.get(status, ServerError).__name__,
        message=UNCHANGEABLE if class_ is Unchangeable else answer.message,
    )
    error.retry_after = _seconds(retry_after, answer)
    causes = (answer.details and answer.details.causes) or ()
    error.names_fields = any(cause.field for cause in causes)
    return error


def _class_of(path: str, status: int, answer: Status) -> type[ApiError]:
    if status == 409 and answer.reason == "AlreadyExists":
        return AlreadyExists
    if status == 422 and _is_missing_permission(answer):
        return Forbidden
    if status == 422 and "/resourceclaims/" in path and "field is immutable" in answer.message:
        return Unchangeable
    if status >= 500:
        return ServerError
    return _BY_STATUS.get(status, ApiError)


def _is_missing_permission(answer: Status) -> bool:
    """Whether a 422 means that the verb on a synthetic subresource is missing (from 1.36).

    The reason of the causes is FieldValueForbidden, as for validation errors. Only the text
    differs.
    """
    causes = (answer.details and answer.details.causes) or ()
    texts = [cause.message for cause in causes] or [answer.message]
    return any("Forbidden: changing status." in text and " permission" in text for text in texts)


def _seconds(header: str | None, answer: Status) -> float | None:
    if header is not None and header.strip().isdigit():
        return float(header)
    if answer.details and answer.details.retry_after_seconds:
        return float(answer.details.retry_after_seconds)
    return None
