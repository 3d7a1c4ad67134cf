"""Discovery, version, health and OpenAPI documents."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from kube_in_process.errors import StatusError
from kube_in_process.http.documents.discovery import AGGREGATED
from kube_in_process.http.documents.lookup import Documents
from kube_in_process.kinds.builtin import builtin_kinds
from kube_in_process.kinds.kind import Kind
from kube_in_process.options import Features
from kube_in_process.schema.registry import Schemas

WIDGET = Kind(
    "example.com",
    ("v1",),
    "widgets",
    "Widget",
    short_names=("wd",),
    subresources=("status", "scale"),
    custom=True,
)


def documents(features: Features | None = None) -> Documents:
    chosen = features or Features()
    return Documents(builtin_kinds(chosen), Schemas(lambda: chosen), lambda: chosen)


def fetched(source: Documents, path: str, accept: str = "") -> Any:
    document = source.get(path, (), accept)
    assert document is not None, path
    return json.loads(document.body)


def test_the_version_is_that_of_the_emulated_release() -> None:
    source = documents(Features(version=(1, 34)))
    assert fetched(source, "/version")["gitVersion"] == "v1.34.9"


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
def test_health_is_plain_text(path: str) -> None:
    document = documents().get(path, (), "")
    assert document is not None
    assert (document.content_type, document.body) == ("text/plain; charset=utf-8", b"ok")


def test_a_resource_is_listed_with_its_subresources_after_it() -> None:
    listed = fetched(documents(), "/apis/resource.k8s.io/v1")["resources"]
    assert [entry["name"] for entry in listed] == [
        "deviceclasses",
        "resourceclaims",
        "resourceclaims/status",
        "resourceclaimtemplates",
        "resourceslices",
    ]
    assert listed[1]["storageVersionHash"] == "wgAZaHcZxUg="


def test_the_form_follows_the_first_entry_of_accept_that_can_be_given() -> None:
    source = documents()
    document = source.get("/apis", (), f"{AGGREGATED},application/json")
    assert document is not None
    assert document.content_type == AGGREGATED
    assert json.loads(document.body)["kind"] == "APIGroupDiscoveryList"
    assert fetched(source, "/apis", "application/json")["kind"] == "APIGroupList"
    assert fetched(source, "/apis/apps", f"{AGGREGATED},application/json")["kind"] == "APIGroup"


@pytest.mark.parametrize(
    ("path", "accept"),
    [("/apis/policy/v1", AGGREGATED), ("/api", AGGREGATED.replace("v=v2", "v=v9"))],
)
def test_a_form_that_cannot_be_given_is_406(path: str, accept: str) -> None:
    with pytest.raises(StatusError) as refused:
        documents().get(path, (), accept)
    assert refused.value.code == 406


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/apis/apps", "only the following media types are accepted: "),
        ("/apis/apps/v1", "406: Not Acceptable\n\nAvailable representations: "),
        ("/api", "406: Not Acceptable\n\nAvailable representations: "),
    ],
)
def test_an_unknown_media_type_is_refused_in_the_words_of_who_refuses_it(
    path: str, message: str
) -> None:
    with pytest.raises(StatusError) as refused:
        documents().get(path, (), "text/html")
    media = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
    assert refused.value.message == f"{message}{media}"


def test_unknown_groups_have_no_document_and_unknown_versions_are_404() -> None:
    source = documents()
    assert source.get("/apis/nosuch.example.com/v1", (), "") is None
    assert source.get("/nosuchpath", (), "") is None
    with pytest.raises(StatusError) as refused:
        source.get("/apis/apps/v9", (), "")
    assert refused.value.body()["details"] == {}


def test_every_reference_in_every_openapi_document_leads_somewhere() -> None:
    source = documents(Features(api_reserved_for=True, api_pod_groups=True))
    index = fetched(source, "/openapi/v3")["paths"]
    for entry in index.values():
        document = source.get(entry["serverRelativeURL"].split("?")[0], (), "")
        assert document is not None
        references = set(re.findall(r'"#/components/schemas/([^"]+)"', document.body.decode()))
        components = json.loads(document.body).get("components", {"schemas": {}})
        assert references <= set(components["schemas"])


def test_gated_fields_stand_in_the_document_only_with_their_feature() -> None:
    name = "io.k8s.api.resource.v1.ResourceClaimSpec"
    path = "/openapi/v3/apis/resource.k8s.io/v1"
    without = fetched(documents(), path)["components"]["schemas"][name]
    served = documents(Features(api_reserved_for=True))
    assert "reservedFor" not in without["properties"]
    assert "reservedFor" in fetched(served, path)["components"]["schemas"][name]["properties"]


def test_patches_say_that_fields_are_validated_and_which_types_are_taken() -> None:
    document = fetched(documents(), "/openapi/v3/apis/apps/v1")
    patch = document["paths"]["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
    }
    assert {"dryRun", "fieldValidation"} <= {one["name"] for one in patch["parameters"]}
    assert "application/strategic-merge-patch+json" in patch["requestBody"]["content"]


def test_custom_kinds_come_and_go() -> None:
    features = Features()
    kinds, schemas = builtin_kinds(features), Schemas(lambda: features)
    source = Documents(kinds, schemas, lambda: features)
    before = fetched(source, "/openapi/v3")["paths"]
    kinds.add(WIDGET)
    raw = {"type": "object", "properties": {"spec": {"type": "object"}}}
    schemas.add_custom("example.com", "v1", "Widget", raw)
    after = fetched(source, "/openapi/v3")["paths"]
    assert set(after) - set(before) == {"apis/example.com/v1"}
    definitions = fetched(source, "/openapi/v3/apis/example.com/v1")["components"]["schemas"]
    assert sorted(definitions["com.example.v1.Widget"]["properties"]) == [
        "apiVersion",
        "kind",
        "metadata",
        "spec",
    ]
    listed = fetched(source, "/apis/example.com/v1")["resources"]
    assert [entry["name"] for entry in listed] == ["widgets", "widgets/status", "widgets/scale"]
    kinds.remove(WIDGET)
    assert source.get("/apis/example.com/v1", (), "") is None
