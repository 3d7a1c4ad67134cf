"""Requests with plain documents, where the server's answers have nulls."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.kube.errors import ApiError, BadAnswer, NotFound, NotServed
from claimctl_demo.documents import DocumentClient
from tests.support.wire_server import Reply, WireServer, failure, ok

CLAIMS = {"name": "resourceclaims", "kind": "ResourceClaim", "namespaced": True}
STATUS = {"name": "resourceclaims/status", "kind": "ResourceClaim", "namespaced": True}
CLASSES = {"name": "deviceclasses", "kind": "DeviceClass", "namespaced": None}
API = "resource.k8s.io/v1"


def client(*answers: Any) -> DocumentClient:
    return DocumentClient(WireServer(*map(ok, answers)), "test")


@pytest.mark.parametrize("empty", [{"items": None}, {"items": []}, {"metadata": {}}])
async def test_a_list_without_items_is_empty(empty: dict[str, Any]) -> None:
    told = client({"resources": [STATUS, CLAIMS]}, empty)
    assert await told.list((API, "ResourceClaim")) == []


async def test_what_is_not_said_to_have_a_namespace_has_none() -> None:
    found = await client({"resources": [CLAIMS, CLASSES, None]}).served(API, "DeviceClass")
    assert found.at("team", "x") == f"/apis/{API}/deviceclasses/x"


@pytest.mark.parametrize("nothing", [{"resources": None}, {}])
async def test_a_version_without_resources_serves_nothing(nothing: dict[str, Any]) -> None:
    with pytest.raises(NotServed):
        await client(nothing).served(API, "ResourceClaim")


async def test_an_answer_that_is_no_document_names_the_request() -> None:
    server = WireServer(ok({"resources": [CLAIMS]}), ok(["no document"]))
    with pytest.raises(BadAnswer, match=f"GET /apis/{API}/.*/x: unexpected answer: Expected"):
        await DocumentClient(server, "test").get((API, "ResourceClaim"), "team", "x")


async def test_a_refusal_is_the_error_of_claimctls_client() -> None:
    server = WireServer(ok({"resources": [CLAIMS]}), failure(404, "NotFound"))
    with pytest.raises(NotFound):
        await DocumentClient(server, "test").get((API, "ResourceClaim"), "team", "x")


async def test_an_error_of_the_transport_is_passed_on() -> None:
    server = WireServer(Reply(before=[ConnectionResetError("reset")]))
    with pytest.raises(ConnectionResetError, match="reset"):
        await DocumentClient(server, "test").list((API, "ResourceClaim"))


@pytest.mark.parametrize(("status", "raises"), [(404, False), (409, True)])
async def test_deleting_what_is_gone_is_no_error(status: int, raises: bool) -> None:
    server = WireServer(ok({"resources": [CLAIMS]}), failure(status, "Reason"))
    deleting = DocumentClient(server, "test").delete((API, "ResourceClaim"), "team", "x")
    if raises:
        with pytest.raises(ApiError):
            await deleting
    else:
        await deleting
    assert server.requests[-1].line == f"DELETE /apis/{API}/namespaces/team/resourceclaims/x"
