"""What the server does not do it does not take either, and it says what that is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from claimctl.embedded.api_server import api_server
from claimctl.embedded.options import ClusterOptions, Dialect
from tests.conformance.stages import LoopTime
from tests.support.virtual import run

SERVER_SIDE = "/apis/admissionregistration.k8s.io/v1"


def sent(method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    async def go() -> tuple[int, dict[str, Any]]:
        options = ClusterOptions(dialect=Dialect.HOLD, kubernetes_version=(1, 36))
        handler = api_server(options, LoopTime())
        data = json.dumps(body).encode()
        response = await handler.send(method, path, [], {}, data)
        whole = b"".join([part async for part in response.body])
        return response.status, json.loads(whole)

    return run(go())


@pytest.mark.parametrize(
    ("path", "body", "what"),
    [
        (f"{SERVER_SIDE}/validatingadmissionpolicies", {}, "admission control"),
        (f"{SERVER_SIDE}/validatingwebhookconfigurations", {}, "admission control"),
        ("/api/v1/namespaces/default/resourcequotas", {}, "quotas"),
        ("/api/v1/namespaces/default/limitranges", {}, "limits on new objects"),
        (
            "/api/v1/namespaces",
            {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
            "Pod Security",
        ),
    ],
)
def test_what_nobody_enforces_is_refused(path: str, body: dict[str, Any], what: str) -> None:
    status, answer = sent("POST", path, {"metadata": {"name": "x", **body}})
    assert status == 501
    assert answer["reason"] == "NotImplemented"
    assert answer["message"].endswith(f"{what} is not emulated")


def test_a_namespace_that_asks_for_no_security_is_taken() -> None:
    labels = {"pod-security.kubernetes.io/enforce": "privileged"}
    status, _ = sent("POST", "/api/v1/namespaces", {"metadata": {"name": "x", "labels": labels}})
    assert status == 201


def test_a_pod_is_not_resized_as_no_kubelet_would_do_it() -> None:
    path = "/api/v1/namespaces/default/pods/x/resize"
    status, answer = sent("PUT", path, {"metadata": {"name": "x"}})
    assert (status, answer["message"]) == (501, "pods/resize: resizing of pods is not emulated")
