"""Bodies in Kubernetes' protobuf form."""

from __future__ import annotations

import pytest
from kube_in_process.http.protobuf import ProtobufError, decode_body

from kube_in_process_tests.servers import server

MEDIA = {"content-type": "application/vnd.kubernetes.protobuf"}


def varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def text(number: int, value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value & (1 << 64) - 1)


def body(version: str, kind: str, raw: bytes) -> bytes:
    return b"k8s\x00" + text(1, text(1, version) + text(2, kind)) + text(2, raw)


def pair(key: str, value: str | bytes) -> bytes:
    return text(1, key) + text(2, value)


def test_fields_get_their_names_and_empty_metadata_and_times_are_left_out() -> None:
    meta = text(1, "a") + text(2, "") + text(8, b"") + number(10, -5) + text(11, pair("x", "y"))
    review = text(1, meta) + text(2, number(4, 3600) + text(1, "one") + text(1, "two"))
    assert decode_body(body("authentication.k8s.io/v1", "TokenRequest", review)) == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenRequest",
        "metadata": {"name": "a", "deletionGracePeriodSeconds": -5, "labels": {"x": "y"}},
        "spec": {"expirationSeconds": 3600, "audiences": ["one", "two"]},
    }


def test_quantities_bytes_numbers_or_strings_and_inline_messages_become_json() -> None:
    resources = text(8, text(1, pair("cpu", text(1, "500m"))))
    probe = text(10, text(1, text(2, text(2, number(1, 1) + text(3, "http")))) + number(4, 9))
    container = text(1, "c") + resources + probe
    template = text(3, text(2, text(2, container)))
    rolling = text(4, text(2, text(1, number(1, 0) + number(2, 2))))
    decoded = decode_body(
        body("apps/v1", "Deployment", text(2, template + rolling + number(1, 0) + number(5, 0)))
    )
    assert decoded["spec"] == {
        "template": {
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "resources": {"limits": {"cpu": "500m"}},
                        "livenessProbe": {"httpGet": {"port": "http"}, "periodSeconds": 9},
                    }
                ]
            }
        },
        "strategy": {"rollingUpdate": {"maxUnavailable": 2}},
        "replicas": 0,
        "minReadySeconds": 0,
    }
    secret = decode_body(body("v1", "Secret", text(2, pair("k", b"v"))))
    assert secret["data"] == {"k": "dg=="}


def test_a_time_and_delete_options_of_any_group_are_understood() -> None:
    meta = text(1, text(8, number(1, 1767323045)))
    decoded = decode_body(body("v1", "ConfigMap", meta))
    assert decoded["metadata"]["creationTimestamp"] == "2026-01-02T03:04:05Z"
    options = decode_body(body("apps/v1", "DeleteOptions", number(1, 0) + text(4, "Orphan")))
    assert (options["gracePeriodSeconds"], options["propagationPolicy"]) == (0, "Orphan")


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"k8s\x00\x0a\xff",
        body("v1", "ConfigMap", b"\x0b"),
        body("example.com/v1", "Widget", b""),
        body("v1", "ConfigMap", text(1, text(1, b"\xff\xfe"))),
    ],
)
def test_what_makes_no_sense_is_refused(data: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode_body(data)


async def test_a_status_comes_through_and_its_zeros_are_left_out() -> None:
    served = server()
    container = {"name": "c", "image": "i"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    served.local().create("deployments", {"metadata": {"name": "d"}, "spec": spec}, "ns")
    status = number(1, 3) + number(2, 5) + number(3, 0)
    raw = text(1, text(1, "d")) + text(2, b"") + text(3, status)
    path = "/apis/apps/v1/namespaces/ns/deployments/d/status"
    answer = await served.send("PUT", path, body("apps/v1", "Deployment", raw), MEDIA)
    assert (answer.status, answer.body["status"]) == (
        200,
        {"observedGeneration": 3, "replicas": 5},
    )


@pytest.mark.parametrize(
    ("version", "raw", "told"),
    [
        ("v1", text(1, text(1, "a")) + number(99, 1), "field 99 of core.ConfigMap"),
        ("v1", text(1, text(1, "a") + text(99, "x")), "field 99 of meta.ObjectMeta"),
        ("v1beta1", text(1, text(1, "a")), "ConfigMap of v1beta1"),
    ],
)
async def test_a_body_that_is_not_understood_whole_is_refused_whole(
    version: str, raw: bytes, told: str
) -> None:
    served = server()
    path = "/api/v1/namespaces/ns/configmaps"
    answer = await served.send("POST", path, body(version, "ConfigMap", raw), MEDIA)
    assert (answer.status, answer.body["message"]) == (
        415,
        f"{told} is not understood in protobuf; send JSON",
    )
    assert (await served.send("GET", f"{path}/a")).status == 404


async def test_a_field_of_a_newer_client_that_is_not_set_is_no_reason_to_refuse() -> None:
    raw = text(1, text(1, "a")) + number(99, 0) + text(98, b"")
    path = "/api/v1/namespaces/ns/configmaps"
    answer = await server().send("POST", path, body("v1", "ConfigMap", raw), MEDIA)
    assert answer.status == 201


async def test_a_client_that_takes_only_protobuf_is_told_what_is_answered() -> None:
    path = "/api/v1/namespaces/ns/configmaps"
    answer = await server().send("GET", path, None, {"accept": MEDIA["content-type"]})
    assert answer.status == 406
    assert answer.body["message"].endswith(": application/json, application/yaml")
