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


def _causes(*causes: dict[str, str] | None) -> dict[str, Any]:
    return {"message": "no", "details": {"causes": list(causes)}}


@pytest.mark.parametrize(
    ("status", "lines"),
    [
        pytest.param(
            {},
            [f"GET /apis/{API}/namespaces/team/resourceclaims/x: 422 Invalid"],
            id="not even a message",
        ),
        pytest.param({"message": "no"}, ["no"], id="no details"),
        pytest.param({"message": "no", "details": None}, ["no"], id="null as details"),
        pytest.param({"message": "no", "details": {"causes": None}}, ["no"], id="null as causes"),
        pytest.param(_causes({"message": "bad"}), ["no"], id="a cause without a field"),
        pytest.param(
            _causes({"field": "a", "message": "bad"}, {"field": "a", "message": "bad"}),
            ["a: bad"],
            id="the same cause twice",
        ),
        pytest.param(
            _causes({"field": "a", "message": "bad"}, {"message": "x"}, {"field": "b"}),
            ["a: bad", "b: "],
            id="several fields",
        ),
    ],
)
async def test_a_refusal_names_each_field_once(status: dict[str, Any], lines: list[str]) -> None:
    server = WireServer(ok({"resources": [CLAIMS]}), ok(status, 422))
    with pytest.raises(ApiError) as caught:
        await DocumentClient(server, "test").get((API, "ResourceClaim"), "team", "x")
    assert list(caught.value.causes) == lines


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
