"""The embedded API server's ``/metrics``: what a scraper of a real one asks for first."""

from __future__ import annotations

import json

from kube_in_process.api_server import api_server
from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.http.handler import Handler
from kube_in_process.options import Authorization, ClusterOptions, Preset
from prometheus_client.parser import text_string_to_metric_families

PODS = "/api/v1/namespaces/default/pods"


async def asked(server: Handler, method: str, path: str, body: object = None) -> tuple[int, str]:
    data = None if body is None else json.dumps(body).encode()
    response = await server.send(method, path, [], {}, data)
    return response.status, b"".join([part async for part in response.body]).decode()


async def test_requests_and_objects_are_counted_with_the_names_of_a_real_server() -> None:
    server = api_server(
        ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, kubernetes_version=(1, 36)),
        LoopClock(EPOCH),
    )
    await asked(server, "POST", "/api/v1/namespaces", {"metadata": {"name": "ml"}})
    await asked(server, "GET", PODS)
    await asked(server, "GET", PODS)
    await asked(server, "GET", f"{PODS}/nope")
    status, text = await asked(server, "GET", "/metrics")
    assert status == 200
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }

    def requests(**labels: str) -> float:
        common = {"group": "", "version": "v1", "subresource": ""}
        return samples["apiserver_request_total", *sorted({**common, **labels}.items())]

    assert requests(verb="LIST", resource="pods", scope="namespace", code="200") == 2
    assert requests(verb="GET", resource="pods", scope="resource", code="404") == 1
    assert requests(verb="POST", resource="namespaces", scope="cluster", code="201") == 1
    assert samples["apiserver_storage_objects", ("resource", "namespaces")] == 1
    assert samples["kubernetes_build_info", ("git_version", "v1.36.2")] == 1
    assert samples[("process_start_time_seconds",)] > 0


async def test_with_rbac_a_stranger_may_not_read_it() -> None:
    options = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, authorization=Authorization.RBAC)
    server = api_server(options, LoopClock(EPOCH))
    headers = {"impersonate-user": "stranger"}
    response = await server.send("GET", "/metrics", [], headers, None)
    assert response.status == 403
