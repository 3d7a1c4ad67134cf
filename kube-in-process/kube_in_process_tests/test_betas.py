"""resource.k8s.io before v1: what is served by 1.32 and 1.33, in which shape."""

from __future__ import annotations

import json
from typing import Any

import pytest
from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.cluster import Cluster
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.virtual import run

GROUP = "/apis/resource.k8s.io"
OLD_REQUEST = {"name": "gpu", "deviceClassName": "gpu.example.com"}

DEFAULTS = {"allocationMode": "ExactCount", "count": 1}


def ask(release: tuple[int, int], *requests: tuple[str, str, Any]) -> list[tuple[int, Any]]:
    """Answers to (method, path, body) of a fresh cluster of that release."""

    async def scenario() -> list[tuple[int, Any]]:
        options = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=release, nodes=1)
        cluster = Cluster(options, LoopClock(EPOCH))
        await cluster.start()
        answers = []
        for method, path, body in requests:
            sent = None if body is None else json.dumps(body).encode()
            headers = {"content-type": "application/json"}
            response = await cluster.transport().send(method, path, (), headers, sent)
            answers.append(
                (response.status, json.loads(b"".join([x async for x in response.body])))
            )
        await cluster.stop()
        assert cluster.failures == []
        return answers

    return run(scenario())


@pytest.mark.parametrize(
    ("release", "versions"),
    [
        ((1, 32), ["v1beta1"]),
        ((1, 33), ["v1beta2", "v1beta1"]),
        ((1, 34), ["v1"]),
        ((1, 35), ["v1"]),
        ((1, 37), ["v1"]),
    ],
)
def test_each_release_serves_its_versions(release: tuple[int, int], versions: list[str]) -> None:
    ((_, body),) = ask(release, ("GET", GROUP, None))
    assert [version["version"] for version in body["versions"]] == versions


def test_requests_are_flat_in_v1beta1_and_below_exactly_in_v1beta2() -> None:
    claims = f"{GROUP}/v1beta1/namespaces/default/resourceclaims"
    body = {"metadata": {"name": "slice"}, "spec": {"devices": {"requests": [OLD_REQUEST]}}}
    created, old, new = ask(
        (1, 33),
        ("POST", claims, body),
        ("GET", f"{claims}/slice", None),
        ("GET", f"{claims}/slice".replace("v1beta1", "v1beta2"), None),
    )
    assert created[0] == 201
    assert created[1]["apiVersion"] == "resource.k8s.io/v1beta1"
    assert old[1]["spec"]["devices"]["requests"] == [OLD_REQUEST | DEFAULTS]
    exactly = {"deviceClassName": "gpu.example.com", **DEFAULTS}
    assert new[1]["spec"]["devices"]["requests"] == [{"name": "gpu", "exactly": exactly}]


def test_templates_are_converted_too() -> None:
    templates = f"{GROUP}/v1beta1/namespaces/default/resourceclaimtemplates"
    spec = {"spec": {"devices": {"requests": [OLD_REQUEST]}}}
    created, _ = ask(
        (1, 32),
        ("POST", templates, {"metadata": {"name": "gpu"}, "spec": spec}),
        ("GET", f"{templates}/gpu", None),
    )
    assert created[0] == 201
    assert created[1]["spec"]["spec"]["devices"]["requests"] == [OLD_REQUEST | DEFAULTS]


def test_devices_are_basic_in_v1beta1() -> None:
    ((_, body),) = ask((1, 32), ("GET", f"{GROUP}/v1beta1/resourceslices", None))
    device = body["items"][0]["spec"]["devices"][0]
    assert set(device) == {"name", "basic"}


def test_v1_is_not_served_before_1_34() -> None:
    path = f"{GROUP}/v1/namespaces/default/resourceclaims"
    ((status, _),) = ask((1, 33), ("GET", path, None))
    assert status == 404
