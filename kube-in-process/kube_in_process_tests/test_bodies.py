from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.virtual import run

from kube_in_process_tests.servers import pod, server

PATH = "/api/v1/namespaces/ns/configmaps"
YAML = b"metadata: {name: a}\ndata:\n  day: 2026-01-01\n"


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2, len(data)]) + data


def _protobuf_config_map(name: bytes) -> bytes:
    entry = _field(1, b"k") + _field(2, b"v")
    raw = _field(1, _field(1, name)) + _field(2, entry)
    types = _field(1, b"v1") + _field(2, b"ConfigMap")
    return b"k8s\x00" + _field(1, types) + _field(2, raw)


@pytest.mark.parametrize(
    ("media", "body", "data"),
    [
        ("application/yaml", YAML, {"day": "2026-01-01"}),
        ("application/json", b'{"metadata":{"name":"a"},"data":{"k":"v"}}', {"k": "v"}),
        ("application/vnd.kubernetes.protobuf", _protobuf_config_map(b"a"), {"k": "v"}),
    ],
)
def test_a_body_may_come_in_any_of_three_forms(media: str, body: bytes, data: Any) -> None:
    answer = run(server().send("POST", PATH, body, {"content-type": media}))
    assert (answer.status, answer.body["data"]) == (201, data)


@pytest.mark.parametrize(
    ("media", "body", "status"),
    [
        ("application/yaml", b"a: [", 400),
        ("application/yaml", b"text", 400),
        ("application/json", b"\xff", 400),
        ("application/vnd.kubernetes.protobuf", b"{}", 415),
        ("application/cbor", b"{}", 415),
    ],
)
def test_a_body_that_cannot_be_read_is_refused(media: str, body: bytes, status: int) -> None:
    assert run(server().send("POST", PATH, body, {"content-type": media})).status == status


def test_several_warnings_are_told_of_a_refused_body_too() -> None:
    body = {"metadata": {"name": "Bad_"}, "frob": 1, "frub": 2}
    answer = run(server().send("POST", PATH, body))
    assert answer.status == 422
    assert answer.headers["warning"] == (
        '299 - "unknown field \\"frob\\"", 299 - "unknown field \\"frub\\""'
    )


async def test_logs_are_empty_and_nothing_can_be_executed() -> None:
    served = server()
    served.local().create("pods", pod(), "ns")
    response = await served.open("GET", "/api/v1/namespaces/ns/pods/p/log")
    assert response.status == 200
    assert b"".join([part async for part in response.body]) == b""
    assert (await served.send("POST", "/api/v1/namespaces/ns/pods/p/exec")).status == 403
    assert (await served.send("GET", "/api/v1/namespaces/ns/pods/nosuch/log")).status == 404
