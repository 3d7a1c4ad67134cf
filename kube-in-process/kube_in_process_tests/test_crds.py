"""Definitions come to be served, are refused, change and go."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from kube_in_process.crd.definitions import Definitions
from kube_in_process.errors import StatusError
from kube_in_process.http.documents.discovery import Discovery
from kube_in_process.options import Features
from kube_in_process.storage.requests import Actor
from kube_in_process.storage.store import Store
from kube_in_process.text.jsonpath import find
from kube_in_process.verbs.api import Api
from kube_in_process.verbs.reading import Target

from kube_in_process_tests.clocks import StoppedClock
from kube_in_process_tests.servers import server as http_server

ADMIN = Actor("admin", ("system:masters",))
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "size": {"type": "string"},
                "replicas": {"type": "integer", "default": 1, "minimum": 0},
            },
            "x-kubernetes-validations": [
                {"rule": "self.size == oldSelf.size", "message": "size is immutable"}
            ],
        },
        "status": {"type": "object", "properties": {"replicas": {"type": "integer"}}},
    },
}


DEFINITION = {"plural": "customresourcedefinitions", "namespace": "", "name": "widgets.example.com"}


def at(api: Api, plural: str, namespace: str = "default", **more: str) -> Target:
    return Target(api.kinds.named(plural), namespace, **more)


def server() -> Api:
    features = Features()
    api = Api(Store(lambda: 0.0), StoppedClock(datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)), features)
    Definitions(api)
    api.create(ADMIN, at(api, "namespaces", ""), {"metadata": {"name": "default"}})
    return api


def definition(schema: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema or SCHEMA},
        "subresources": {
            "status": {},
            "scale": {
                "specReplicasPath": ".spec.replicas",
                "statusReplicasPath": ".status.replicas",
            },
        },
        **more,
    }
    return {
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [version],
        },
    }


def define(api: Api, body: dict[str, Any] | None = None) -> dict[str, Any]:
    return api.create(ADMIN, at(api, "customresourcedefinitions", ""), body or definition())


def make(api: Api, name: str, **spec: Any) -> dict[str, Any]:
    body = {"metadata": {"name": name}, "spec": {"size": "small", **spec}}
    return api.create(ADMIN, at(api, "widgets"), body)


def patch(api: Api, name: str, change: dict[str, Any], subresource: str = "") -> dict[str, Any]:
    target = at(api, "widgets", name=name, subresource=subresource)
    return api.patch(ADMIN, target, "merge", change)


def conditions(api: Api) -> dict[str, str]:
    status = api.get(at(api, **DEFINITION))["status"]
    return {one["type"]: one["status"] for one in status["conditions"]}


def test_a_definition_is_established_after_its_create_was_answered() -> None:
    api = server()
    assert define(api)["status"] == {
        "conditions": None,
        "acceptedNames": {"plural": "", "kind": ""},
        "storedVersions": ["v1"],
    }
    assert conditions(api) == {"NamesAccepted": "True", "Established": "True"}


def test_objects_get_defaults_and_a_generation_and_lose_unknown_fields() -> None:
    api = server()
    define(api)
    created = make(api, "a", nosuch=1)
    assert created["spec"] == {"size": "small", "replicas": 1}
    assert created["metadata"]["generation"] == 1
    assert patch(api, "a", {"spec": {"replicas": 2}})["metadata"]["generation"] == 2
    assert patch(api, "a", {"status": {"replicas": 2}}, "status")["metadata"]["generation"] == 2


def test_transition_rules_hold_between_versions_of_an_object() -> None:
    api = server()
    define(api)
    make(api, "a")
    with pytest.raises(StatusError) as refused:
        patch(api, "a", {"spec": {"size": "large"}})
    assert refused.value.message == (
        'Widget.example.com "a" is invalid: spec: Invalid value: size is immutable'
    )


def test_a_status_is_validated_as_seen_from_the_status() -> None:
    api = server()
    define(api)
    make(api, "a")
    with pytest.raises(StatusError) as refused:
        patch(api, "a", {"status": {"replicas": "x"}}, "status")
    assert refused.value.message == (
        'Widget.example.com "a" is invalid: [status.replicas: Invalid value: "string": replicas '
        'in body must be of type integer: "string", .status.replicas: Invalid value: 0: '
        ".status.replicas accessor error: x is of the type string, expected int64, <nil>: Invalid "
        "value: null: some validation rules were not checked because the object was invalid; "
        "correct the existing errors to complete validation]"
    )


def test_what_was_wrong_before_a_schema_grew_stricter_may_stay() -> None:
    api = server()
    define(api)
    make(api, "a", replicas=7)
    stricter = definition()["spec"]
    stricter["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {"replicas": {"type": "integer", "maximum": 5}},
            }
        },
    }
    api.patch(ADMIN, at(api, **DEFINITION), "merge", {"spec": stricter})
    assert patch(api, "a", {"metadata": {"labels": {"x": "y"}}})["metadata"]["labels"] == {"x": "y"}
    with pytest.raises(StatusError):
        patch(api, "a", {"spec": {"replicas": 8}})


def test_the_scale_follows_the_paths_of_the_definition() -> None:
    api = server()
    define(api)
    make(api, "a", replicas=4)
    target = at(api, "widgets", name="a", subresource="scale")
    scale = api.get(target)
    assert (scale["spec"], scale["status"]) == ({"replicas": 4}, {"replicas": 0})
    scale["spec"]["replicas"] = 6
    api.update(ADMIN, target, scale)
    assert api.get(at(api, "widgets", name="a"))["spec"]["replicas"] == 6


def test_deleting_a_definition_deletes_its_objects_first() -> None:
    api = server()
    define(api)
    make(api, "a")
    widgets = api.kinds.named("widgets")
    answer = api.delete(ADMIN, at(api, **DEFINITION))
    assert answer["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]
    assert answer["status"]["conditions"][-1]["type"] == "Terminating"
    assert api.kinds.by_plural("example.com", "widgets") is None
    assert not api.store.items("example.com", "widgets")
    assert widgets.custom


def test_a_definition_waits_for_objects_that_finalizers_keep() -> None:
    api = server()
    define(api)
    make(api, "a")
    patch(api, "a", {"metadata": {"finalizers": ["example.com/hold"]}})
    api.delete(ADMIN, at(api, **DEFINITION))
    assert conditions(api)["Terminating"] == "True"
    with pytest.raises(StatusError) as refused:
        make(api, "b")
    text = "create not allowed while custom resource definition is terminating"
    assert refused.value.code == 403
    assert refused.value.message == f'widgets.example.com "b" is forbidden: {text}'
    listed = Discovery(api.kinds).get("/apis/example.com/v1", "")
    assert listed is not None
    verbs = ["delete", "deletecollection", "get", "list", "watch"]
    assert listed.body["resources"][0]["verbs"] == verbs
    stored = api.store.list("apiextensions.k8s.io", "customresourcedefinitions")[0]
    assert stored["status"]["conditions"][-1]["reason"] == "InstanceDeletionInProgress"
    patch(api, "a", {"metadata": {"finalizers": None}})
    assert not api.store.items("apiextensions.k8s.io", "customresourcedefinitions")


def test_selectable_fields_can_be_selected_by() -> None:
    api = server()
    define(api, definition(selectableFields=[{"jsonPath": ".spec.size"}]))
    make(api, "a")
    strategy = api.strategies.of(api.kinds.named("widgets"))
    assert strategy.selectable_names() == ("spec.size",)
    assert strategy.selectable(make(api, "b", size="large")) == {"spec.size": "large"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            {**definition(), "metadata": {"name": "wrong.example.com"}},
            'metadata.name: Invalid value: "wrong.example.com": must be '
            'spec.names.plural+"."+spec.group',
        ),
        (
            definition({"type": "object", "properties": {"spec": {"properties": {"x": {}}}}}),
            "[spec.validation.openAPIV3Schema.properties[spec].properties[x].type: Required value: "
            "must not be empty for specified object fields, "
            "spec.validation.openAPIV3Schema.properties[spec].type: Required value: must not be "
            "empty for specified object fields]",
        ),
        (
            definition(schema={"type": "string"}),
            'spec.validation.openAPIV3Schema.type: Invalid value: "string": must be object at the '
            "root",
        ),
    ],
)
def test_broken_definitions_are_refused(body: dict[str, Any], message: str) -> None:
    with pytest.raises(StatusError) as refused:
        define(server(), body)
    assert refused.value.message.partition(" is invalid: ")[2] == message


@pytest.mark.parametrize(
    ("path", "values"),
    [
        (".spec.replicas", [3]),
        (".spec['replicas']", [3]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[*].type", ["Synced", "Ready"]),
        (".status.conditions[0].type", ["Synced"]),
        (".status.nosuch.thing", []),
        ("{.metadata.labels.a\\.b/c}", ["x"]),
    ],
)
def test_paths_find_their_values(path: str, values: list[Any]) -> None:
    obj = {
        "metadata": {"labels": {"a.b/c": "x"}},
        "spec": {"replicas": 3},
        "status": {
            "conditions": [
                {"type": "Synced", "status": "False"},
                {"type": "Ready", "status": "True"},
            ]
        },
    }
    assert find(path, obj) == values


@pytest.mark.parametrize(
    ("versions", "status", "told"),
    [
        ([], 422, "must have exactly one version marked as storage version"),
        ([{"served": True, "storage": True}], 422, "spec.versions[0].name: Invalid value"),
        (
            [{"name": "v1", "schema": {"openAPIV3Schema": {"items": {"properties": "x"}}}}],
            400,
            "cannot unmarshal string into Go struct field JSONSchemaProps.properties",
        ),
    ],
)
async def test_a_definition_of_a_wrong_shape_is_refused(
    versions: list[Any], status: int, told: str
) -> None:
    names = {"plural": "widgets", "kind": "Widget"}
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions}
    body = {"metadata": {"name": "widgets.example.com"}, "spec": spec}
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    answer = await http_server().send("POST", path, body)
    assert (answer.status, told in answer.body["message"]) == (status, True)
