"""Bodies are read as Go reads them."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.text.json_text import check_depth, parse
from kube_in_process.virtual import run

from kube_in_process_tests.servers import CLAIMS, Answered, config_map, server


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"\\ud800x"', "\ufffdx"),
        (b'{"\\udc00": ["\\udc00"]}', {"\ufffd": ["\ufffd"]}),
        (b'"\xff"', "\ufffd"),
        (b"9223372036854775807", 2**63 - 1),
        (b"9223372036854775808", float(2**63)),
    ],
)
def test_what_no_text_or_number_can_hold_is_mended(body: bytes, value: Any) -> None:
    parsed = parse(body)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize("body", [b"NaN", b"-Infinity", b"1e999", b"9" * 400, b"[" * 50_000, b""])
def test_what_is_no_json_for_go_is_refused(body: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse(body)


def test_nesting_has_an_end() -> None:
    value: Any = 1
    for _ in range(99):
        value = [value]
    check_depth(value)
    with pytest.raises(ValueError, match="exceeded max depth"):
        check_depth([[value]])


def answer(method: str, path: str, body: Any, media: str = "application/json") -> Answered:
    async def scenario() -> Answered:
        served = server()
        await served.send("POST", "/api/v1/namespaces/ns/configmaps", config_map("c", k="v"))
        return await served.send(method, path, body, {"content-type": media})

    return run(scenario())


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        (CLAIMS, {"kind": ["ResourceClaim"]}, 400),
        (CLAIMS, {"metadata": {"name": "c", "labels": {"a": None}}}, 201),
        (CLAIMS, {"metadata": {"name": "c", "finalizers": [None]}}, 422),
        ("/apis/authentication.k8s.io/v1/tokenreviews", {"spec": [None]}, 400),
        (f"{CLAIMS}?fieldValidation=Strict", b'{"a\\u0000": 1}', 400),
    ],
)
def test_odd_bodies_are_refused_or_mended(path: str, body: Any, status: int) -> None:
    assert answer("POST", path, body).status == status


def test_a_warning_that_no_header_can_carry_is_left_out() -> None:
    body = {"metadata": {"name": "d"}, "odd\u0000": 1, "plain": 1}
    answered = answer("POST", "/api/v1/namespaces/ns/configmaps", body)
    assert answered.headers["warning"] == '299 - "unknown field \\"plain\\""'


@pytest.mark.parametrize(
    ("media", "body", "status"),
    [
        ("application/json-patch+json", [1], 422),
        ("application/json-patch+json", [{"op": "remove", "path": "/data/\u00b2"}], 422),
        ("application/apply-patch+yaml", {"metadata": 1}, 400),
        ("application/apply-patch+yaml", b"a: &a [*a]", 400),
        ("application/merge-patch+json", {"kind": {"a": "b"}}, 422),
    ],
)
def test_odd_patches_are_refused(media: str, body: Any, status: int) -> None:
    path = "/api/v1/namespaces/ns/configmaps/c?fieldManager=me"
    assert answer("PATCH", path, body, media).status == status


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("9223372036854775808", "value out of range"),
        ("\u0661", "invalid syntax"),
        ("1_0", "invalid syntax"),
        ("soon", "invalid syntax"),
    ],
)
def test_numbers_in_a_query_are_gos(text: str, why: str) -> None:
    path = f"/api/v1/namespaces/ns/configmaps?watch=true&timeoutSeconds={text}"
    answered = answer("GET", path, None)
    assert (answered.status, answered.body["message"]) == (
        400,
        f'strconv.ParseInt: parsing "{text}": {why}',
    )
