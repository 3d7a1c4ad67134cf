"""What people see who send requests by hand: methods, paths, headers and line breaks.

The answers are those of a real server of v1.36.2.
"""

from __future__ import annotations

import json
import re

import pytest

from kube_in_process_tests.servers import Server, config_map, server

NAMESPACE = "/api/v1/namespaces/ns"
STATUS = '{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"the server'
NOT_FOUND = f"{STATUS} could not find the requested resource"
NOT_ALLOWED = f"{STATUS} does not allow this method on the requested resource"
NO_PAGE = "404 page not found\n"


@pytest.fixture(scope="module")
def asked() -> Server:
    return server()


async def text_of(asked: Server, method: str, path: str, **headers: str) -> tuple[int, str]:
    asked.headers = {"user-agent": "test/1", **headers}
    response = await asked.open(method, path)
    return response.status, b"".join([part async for part in response.body]).decode()


@pytest.mark.parametrize(
    ("request_line", "status", "begins"),
    [
        (f"GET {NAMESPACE}/", 200, '{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"ns"'),
        ("GET /api/v1/namespaces/", 200, '{"kind":"NamespaceList","apiVersion":"v1","metadata":'),
        ("GET /api/v1/namespaces//pods", 200, '{"kind":"PodList","apiVersion":"v1"'),
        ("GET /api//v1/namespaces", 404, NOT_FOUND),
        (f"GET {NAMESPACE}//pods", 404, NOT_FOUND),
        ("GET /apis/apps//v1/deployments", 404, NOT_FOUND),
        ("GET /apis/nothing//v1/deployments", 404, NO_PAGE),
        ("GET //api/v1/namespaces", 404, NO_PAGE),
        ("GET /apis//", 404, NO_PAGE),
        ("GET /apis/", 200, '{"kind":"APIGroupList"'),
        (f"HEAD {NAMESPACE}", 405, NOT_ALLOWED),
        (f"OPTIONS {NAMESPACE}", 405, NOT_ALLOWED),
        ("HEAD /api", 405, NOT_ALLOWED),
        ("HEAD /version", 405, NOT_ALLOWED),
        ("HEAD /healthz", 200, "ok"),
        ("POST /healthz", 200, "ok"),
        ("HEAD /openapi/v3", 200, '{"paths":'),
        ("HEAD /nothing", 404, NO_PAGE),
        ("GET /readyz", 200, "ok"),
        ("GET /readyz/", 404, NO_PAGE),
        ("GET /readyz/ping", 200, "ok"),
        ("GET /livez/etcd", 200, "ok"),
        ("GET /readyz/nothing", 404, NO_PAGE),
        ("GET /readyz?verbose", 200, "[+]ping ok\n[+]log ok\n[+]informer-sync ok\n"),
        ("GET /livez?verbose", 200, "[+]ping ok\n[+]log ok\n[+]loopback-serving-certificate ok\n"),
        ("GET /livez?verbose&exclude=log", 200, "[+]ping ok\n[+]log excluded: ok\n"),
        ("GET /version", 200, '{\n  "major": "1",\n  "minor": "36",\n'),
    ],
)
async def test_methods_and_paths(
    asked: Server, request_line: str, status: int, begins: str
) -> None:
    answered, text = await text_of(asked, *request_line.split())
    assert answered == status
    assert text.startswith(begins)


async def test_health_ends_with_the_verdict(asked: Server) -> None:
    for name in ("healthz", "livez", "readyz"):
        assert (await text_of(asked, "GET", f"/{name}?verbose"))[1].endswith(
            f"\n{name} check passed\n"
        )


@pytest.mark.parametrize("path", [NAMESPACE, "/api/v1/pods", f"{NAMESPACE}/pods/none", "/apis"])
async def test_objects_end_with_a_line_break_unless_they_are_indented(
    asked: Server, path: str
) -> None:
    _, plain = await text_of(asked, "GET", path)
    _, pretty = await text_of(asked, "GET", f"{path}?pretty=true")
    _, curled = await text_of(asked, "GET", path, **{"user-agent": "curl/8.5.0"})
    assert plain.endswith("}\n")
    assert "\n" not in plain[:-1]
    assert pretty == curled == json.dumps(json.loads(plain), indent=2, ensure_ascii=False)
    assert (await text_of(asked, "GET", f"{path}?pretty=false", **{"user-agent": "curl/8"}))[
        1
    ] == plain


async def test_kind_and_version_come_first_whoever_wrote_the_object(asked: Server) -> None:
    body = dict(reversed(config_map("late", a="b").items()))
    created = (await asked.send("POST", f"{NAMESPACE}/configmaps", body)).body
    patched = (await asked.merge_patch(f"{NAMESPACE}/configmaps/late", {"data": {"a": "c"}})).body
    for obj in (created, patched):
        assert list(obj) == ["kind", "apiVersion", "metadata", "data"]
        assert list(obj["metadata"])[:4] == ["name", "namespace", "uid", "resourceVersion"]


async def test_each_answer_has_an_audit_id_and_is_not_to_be_kept(asked: Server) -> None:
    asked.headers = {}
    first = (await asked.send("GET", NAMESPACE)).headers
    refused = (await asked.send("GET", f"{NAMESPACE}/pods/none")).headers
    assert first["cache-control"] == refused["cache-control"] == "no-cache, private"
    assert re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", first["audit-id"])
    assert first["audit-id"] != refused["audit-id"]
    own = await asked.send("GET", NAMESPACE, headers={"audit-id": "mine"})
    assert own.headers["audit-id"] == "mine"
