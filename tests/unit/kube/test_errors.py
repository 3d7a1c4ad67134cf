"""Answers to errors."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claimctl.kube import errors
from claimctl.wire.claims import UNCHANGEABLE


def answer(status: int, body: Any, **headers: str) -> errors.ApiError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return errors.from_answer("PATCH", "/apis/x/y", status, named, data)


@pytest.mark.parametrize(
    ("status", "reason", "expected"),
    [
        (400, "BadRequest", errors.BadRequest),
        (401, "Unauthorized", errors.Unauthorized),
        (403, "Forbidden", errors.Forbidden),
        (404, "NotFound", errors.NotFound),
        (405, "MethodNotAllowed", errors.ApiError),
        (409, "AlreadyExists", errors.AlreadyExists),
        (409, "Conflict", errors.Conflict),
        (410, "Expired", errors.Gone),
        (410, "Gone", errors.Gone),
        (422, "Invalid", errors.Invalid),
        (429, "TooManyRequests", errors.TooManyRequests),
        (500, "InternalError", errors.ServerError),
        (504, "Timeout", errors.ServerError),
    ],
)
def test_every_status_has_the_class_that_callers_tell_apart(
    status: int, reason: str, expected: type[errors.ApiError]
) -> None:
    error = answer(status, {"kind": "Status", "reason": reason, "message": "why\nnot"})
    assert type(error) is expected
    assert str(error) == f"PATCH /apis/x/y: {status} {reason}: why not"


def invalid(message: str) -> dict[str, Any]:
    cause = {"reason": "FieldValueForbidden", "message": message, "field": "status.allocation"}
    return {
        "reason": "Invalid",
        "message": f"x is invalid: {message}",
        "details": {"causes": [cause]},
    }


def test_a_422_for_want_of_a_permission_is_forbidden() -> None:
    error = answer(
        422,
        invalid(
            "Forbidden: changing status.allocation or status.reservedFor requires "
            'resource="resourceclaims/binding", verb="update" permission: x is forbidden'
        ),
    )
    assert type(error) is errors.Forbidden
    assert error.status == 422


def test_a_422_for_what_no_permission_would_help_is_invalid() -> None:
    error = answer(422, invalid("Forbidden: may not be specified when `allocated` is not set"))
    assert type(error) is errors.Invalid


def test_an_answer_that_is_not_a_status_still_says_what_it_said() -> None:
    error = answer(502, b"<html>bad gateway</html>")
    assert str(error) == "PATCH /apis/x/y: 502 ServerError: <html>bad gateway</html>"


@pytest.mark.parametrize("body", [b"404: Not Found", b"<!DOCTYPE HTML><title>Error</title>"])
def test_a_server_that_is_not_kubernetes_is_named_as_such(body: bytes) -> None:
    assert "not the answer of a Kubernetes API server; look at the server" in str(answer(404, body))
    of_kubernetes = str(answer(404, b"404 page not found\n"))
    assert of_kubernetes == "PATCH /apis/x/y: 404 NotFound: 404 page not found"


@pytest.mark.parametrize(
    ("headers", "details", "expected"),
    [
        ({}, {}, None),
        ({"retry_after": "7"}, {}, 7.0),
        ({}, {"retryAfterSeconds": 3}, 3.0),
        ({"retry_after": "Wed, 21 Oct 2026 07:28:00 GMT"}, {}, None),
    ],
)
def test_the_wait_that_a_server_asks_for_is_known(
    headers: dict[str, str], details: dict[str, int], expected: float | None
) -> None:
    error = answer(429, {"reason": "TooManyRequests", "details": details}, **headers)
    assert error.retry_after == expected


def test_an_error_without_an_answer_names_the_request() -> None:
    error = errors.Unreachable("GET", "/api", "connection refused", delivered=False)
    assert str(error) == "GET /api: connection refused"
    assert isinstance(error, errors.KubeError)


@pytest.mark.parametrize("field", ["spec", "status.allocation"])
def test_a_422_for_fields_of_a_claim_that_the_patch_leaves_alone(field: str) -> None:
    message = f'ResourceClaim "c" is invalid: {field}: Invalid value: {{}}: field is immutable'
    body = json.dumps({"reason": "Invalid", "message": message}).encode()
    of_claim = "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/c/status"
    error = errors.from_answer("PATCH", of_claim, 422, {}, body)
    assert type(error) is errors.Unchangeable
    assert error.message == UNCHANGEABLE
    other = errors.from_answer("PATCH", "/apis/apps/v1/namespaces/n/deployments/c", 422, {}, body)
    assert type(other) is errors.Invalid


def schema(message: str) -> dict[str, Any]:
    causes = [{"reason": "FieldValueInvalid", "message": "too large", "field": "status.consumers"}]
    return {"reason": "Invalid", "message": message, "details": {"causes": causes}}


DENIED = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        pytest.param(errors.BadRequest("GET", "/"), errors.ErrorKind.FINAL, id="no request"),
        pytest.param(answer(422, schema("x is invalid")), errors.ErrorKind.FINAL, id="the schema"),
        pytest.param(
            answer(422, {"reason": "Invalid", "message": f"x is forbidden: {DENIED}"}),
            errors.ErrorKind.REFUSED,
            id="a policy",
        ),
        pytest.param(
            answer(422, schema('admission webhook "w" denied the request: x is invalid')),
            errors.ErrorKind.REFUSED,
            id="a webhook that names fields",
        ),
        pytest.param(answer(400, {"message": "odd"}), errors.ErrorKind.REFUSED, id="a webhook"),
        pytest.param(answer(403, {"message": "no right"}), errors.ErrorKind.REFUSED, id="a right"),
        pytest.param(answer(409, {"message": "late"}), errors.ErrorKind.PASSING, id="a conflict"),
        pytest.param(
            answer(503, {"message": "busy"}), errors.ErrorKind.PASSING, id="a busy server"
        ),
        pytest.param(
            errors.Unreachable("GET", "/", "refused"), errors.ErrorKind.AWAY, id="no answer"
        ),
        pytest.param(RuntimeError("a bug"), errors.ErrorKind.PASSING, id="a bug"),
    ],
)
def test_what_has_to_change_before_another_try(
    error: BaseException, kind: errors.ErrorKind
) -> None:
    assert errors.kind_of(error) is kind
