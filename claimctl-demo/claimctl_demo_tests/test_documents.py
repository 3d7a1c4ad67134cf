"""Requests with plain documents, where the server's answers have nulls."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.kube.errors import ApiError, BadAnswer, NotServed
from claimctl_demo.documents import DocumentClient
from tests.support.wire_server import WireServer, failure, ok

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


async def test_an_answer_of_another_shape_names_the_request() -> None:
    with pytest.raises(BadAnswer, match=f"GET /apis/{API}: unexpected answer: Expected"):
        await client({"resources": [{"name": 5}]}).served(API, "ResourceClaim")


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
