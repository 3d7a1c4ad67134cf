"""The refusals of the API server: metav1.Status, and the field errors in it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from kube_in_process.wording import worded_for

Details = dict[str, Any]


class StatusError(Exception):
    """An HTTP error answer, as a metav1.Status.

    ``headers`` are headers of the answer with lower-case names (``retry-after``, ``allow``).
    ``metadata`` is the ListMeta of the Status; for an expired continue token it has a new one.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Details | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.headers: dict[str, str] = dict(headers or {})
        self.metadata: dict[str, Any] = {}

    def worded_for(self, version: tuple[int, int]) -> StatusError:
        """Change the texts to those of a server of that version; return self."""
        self.message = worded_for(version, self.message)
        for cause in (self.details or {}).get("causes") or ():
            if "message" in cause:
                cause["message"] = worded_for(version, cause["message"])
        return self

    def body(self) -> dict[str, Any]:
        """The metav1.Status of the answer."""
        body: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": dict(self.metadata),
            "status": "Failure",
            "message": self.message,
        }
        if self.reason:
            body["reason"] = self.reason
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


class NotFound(StatusError):
    """404: there is no such object, or no such resource is served."""

    def __init__(self, message: str, details: Details) -> None:
        super().__init__(404, "NotFound", message, details)


@dataclass(frozen=True, slots=True)
class FieldError:
    """One cause of a 422. ``reason`` is a CauseType, ``path`` a field path."""

    reason: str
    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"

    def cause(self) -> dict[str, str]:
        return {"reason": self.reason, "message": self.message, "field": self.path}


def quoted(value: Any) -> str:
    """A value as the server shows it in errors: Go's %q for strings, JSON for the rest."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def required(path: str, detail: str = "") -> FieldError:
    return FieldError("FieldValueRequired", path, _with_detail("Required value", detail))


def invalid_value(path: str, value: Any, detail: str) -> FieldError:
    return invalid_text(path, quoted(value), detail)


def invalid_text(path: str, shown: str, detail: str) -> FieldError:
    """Like ``invalid_value``, with a value that is formatted already."""
    return FieldError("FieldValueInvalid", path, _with_detail(f"Invalid value: {shown}", detail))


def invalid_name(path: str, name: str, rule: Callable[[str], list[str]]) -> list[FieldError]:
    """One error for each thing that ``rule`` says is wrong with a name."""
    return [invalid_value(path, name, text) for text in rule(name)]


def invalid_choice(path: str, value: str, supported: Sequence[str]) -> list[FieldError]:
    """The error for a missing or unsupported value, if any."""
    if not value:
        return [required(path)]
    return [] if value in supported else [not_supported(path, value, supported)]


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueDuplicate", path, f"Duplicate value: {quoted(value)}")


def forbidden_field(path: str, detail: str) -> FieldError:
    return FieldError("FieldValueForbidden", path, f"Forbidden: {detail}")


def not_supported(path: str, value: Any, supported: Sequence[str]) -> FieldError:
    values = ", ".join(quoted(choice) for choice in supported)
    text = f"Unsupported value: {quoted(value)}: supported values: {values}"
    return FieldError("FieldValueNotSupported", path, text)


def field_not_found(path: str, value: Any) -> FieldError:
    return FieldError("FieldValueNotFound", path, f"Not found: {quoted(value)}")


def too_many(path: str, count: int, limit: int) -> FieldError:
    text = f"Too many: {count}: must have at most {limit} items"
    return FieldError("FieldValueTooMany", path, text)


def too_long(path: str, limit: int) -> FieldError:
    """The error for a text with more bytes than ``limit``."""
    return FieldError("FieldValueTooLong", path, f"Too long: may not be more than {limit} bytes")


class Subject(msgspec.Struct, frozen=True):
    """The subject of an error. ``kind`` is the plural resource name, or the Kind in a 422."""

    group: str
    kind: str
    name: str = ""

    @property
    def resource(self) -> str:
        """``deployments.apps``; only the plural for the core group."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def details(self, **more: Any) -> Details:
        parts = {"name": self.name, "group": self.group, "kind": self.kind, **more}
        return {key: value for key, value in parts.items() if value not in ("", None)}


def not_found(subject: Subject) -> StatusError:
    message = f'{subject.resource} "{subject.name}" not found'
    return NotFound(message, subject.details())


def unknown_resource() -> StatusError:
    """The answer for a path without a resource in a served group."""
    message = "the server could not find the requested resource"
    return NotFound(message, {})


def not_allowed() -> StatusError:
    """The answer to a method that a path does not have."""
    message = "the server does not allow this method on the requested resource"
    return StatusError(405, "MethodNotAllowed", message, {})


def already_exists(
    subject: Subject, *, deleting: bool = False, generated: bool = False
) -> StatusError:
    """409. With a generated name, the client may send the same object again."""
    message = f'{subject.resource} "{subject.name}" already exists'
    headers, details = {}, subject.details()
    if generated:
        message += ", the server was not able to generate a unique name for the object"
        headers, details = {"retry-after": "1"}, subject.details(retryAfterSeconds=1)
    if deleting:
        message = f"object is being deleted: {message}"
    return StatusError(409, "AlreadyExists", message, details, headers)


def conflict(subject: Subject, why: str) -> StatusError:
    message = f'Operation cannot be fulfilled on {subject.resource} "{subject.name}": {why}'
    return StatusError(409, "Conflict", message, subject.details())


OTHER_NAMESPACE = (
    "the namespace of the provided object does not match the namespace sent on the request"
)
MODIFIED_MEANWHILE = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def invalid(subject: Subject, errors: Sequence[FieldError]) -> StatusError:
    """422 with all causes. The message shows repeated texts once; the causes show all."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    joined = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    message = f'{subject.resource} "{subject.name}" is invalid: {joined}'
    causes = [error.cause() for error in errors]
    return StatusError(422, "Invalid", message, subject.details(causes=causes))


NO_VERSION = ".apiVersion accessor error: <nil> is of the type <nil>, expected string"
"""The problem of an object of a custom kind whose version is null."""


def bad_request(message: str) -> StatusError:
    return StatusError(400, "BadRequest", message)


def forbidden(subject: Subject, why: str) -> StatusError:
    message = f'{subject.resource} "{subject.name}" is forbidden: {why}'
    return StatusError(403, "Forbidden", message, subject.details())


def expired(message: str) -> StatusError:
    return StatusError(410, "Expired", message)
