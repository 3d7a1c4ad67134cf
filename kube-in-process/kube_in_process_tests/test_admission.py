"""Admission policies beyond the recording ``20-admission-policies``."""

from __future__ import annotations

from typing import Any

import pytest
from kube_in_process.options import Authorization

from kube_in_process_tests.hooks import ADMISSION
from kube_in_process_tests.servers import Server, server

Json = dict[str, Any]
MAPS = "/api/v1/namespaces/ns/configmaps"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
VALIDATING, MUTATING = "validatingadmissionpolicies", "mutatingadmissionpolicies"


def rule(resource: str, group: str = "", version: str = "v1", operation: str = "CREATE") -> Json:
    return {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": [operation],
        "resources": [resource],
    }


async def put(asked: Server, plural: str, match: Json, **spec: Any) -> None:
    """Create a policy with its binding."""
    bound: Json = {"policyName": "p"}
    if plural == VALIDATING:
        bound["validationActions"] = ["Deny"]
    for path, body in (
        (plural, {"matchConstraints": match, **spec}),
        (f"{plural[:-3]}ybindings", bound),
    ):
        answer = await asked.send(
            "POST", f"{ADMISSION}/{path}", {"metadata": {"name": "p"}, "spec": body}
        )
        assert answer.status == 201, answer.body


async def refuse(asked: Server, match: Json, expression: str, **spec: Any) -> None:
    validations = [{"expression": expression, "message": "refused"}]
    await put(asked, VALIDATING, match, validations=validations, **spec)


def config_map(name: str = "c", **data: str) -> Json:
    return {"metadata": {"name": name}, "data": data}


async def test_an_expression_asks_for_the_rights_of_the_user() -> None:
    asked = server(authorization=Authorization.RBAC)
    await refuse(
        asked,
        {"resourceRules": [rule("configmaps")]},
        "authorizer.group('example.com').resource('things').namespace(request.namespace)"
        ".check('exceed').allowed() || "
        "authorizer.serviceAccount('ns', 'robot').path('/healthz').check('put').allowed()",
    )
    user = {"impersonate-user": "alice"}
    rules = [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["exceed"]},
    ]
    for name, given in (("writes", rules[:1]), ("exceeds", rules[1:])):
        await asked.send(
            "POST",
            f"{RBAC}/namespaces/ns/roles",
            {"metadata": {"name": name}, "rules": given},
        )
        bound = await asked.send(
            "POST",
            f"{RBAC}/namespaces/ns/rolebindings",
            {
                "metadata": {"name": name},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": "Role",
                    "name": name,
                },
                "subjects": [
                    {"kind": "User", "name": "alice", "apiGroup": "rbac.authorization.k8s.io"}
                ],
            },
        )
        assert bound.status == 201, bound.body
        answer = await asked.send("POST", MAPS, config_map(name), user)
        assert answer.status == {"writes": 422, "exceeds": 201}[name]


async def test_the_labels_of_a_namespace_choose_its_objects() -> None:
    asked = server()
    await refuse(
        asked,
        {
            "resourceRules": [rule("configmaps"), rule("namespaces")],
            "namespaceSelector": {"matchLabels": {"strict": "yes"}},
        },
        "namespaceObject != null && 'free' in namespaceObject.metadata.labels",
    )
    statuses = []
    for name, labels in (("strict", {"strict": "yes"}), ("free", {"strict": "yes", "free": ""})):
        body = {"metadata": {"name": name, "labels": labels}}
        statuses.append((await asked.send("POST", "/api/v1/namespaces", body)).status)
        asked.local().create("namespaces", {"metadata": {"name": f"{name}-2"}})
    await asked.merge_patch("/api/v1/namespaces/free-2", {"metadata": {"labels": labels}})
    await asked.merge_patch(
        "/api/v1/namespaces/strict-2", {"metadata": {"labels": {"strict": "yes"}}}
    )
    for name in ("ns", "free-2", "strict-2"):
        path = f"/api/v1/namespaces/{name}/configmaps"
        statuses.append((await asked.send("POST", path, config_map())).status)
    assert statuses == [422, 422, 201, 201, 422]


THING: Json = {
    "metadata": {"name": "things.example.com"},
    "spec": {
        "group": "example.com",
        "names": {"plural": "things", "kind": "Thing"},
        "scope": "Namespaced",
        "versions": [
            {
                "name": name,
                "served": True,
                "storage": name == "v1",
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {"n": {"type": "integer"}, "m": {"type": "integer"}},
                    }
                },
            }
            for name in ("v1", "v2")
        ],
    },
}
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.mark.parametrize("policy", ["Equivalent", "Exact"])
async def test_a_rule_for_one_version_concerns_the_others_unless_it_is_exact(policy: str) -> None:
    asked = server()
    assert (await asked.send("POST", DEFINITIONS, THING)).status == 201
    await refuse(
        asked,
        {"resourceRules": [rule("things", "example.com", "v2")], "matchPolicy": policy},
        "object.apiVersion != 'example.com/v2' || request.kind.version != 'v2' || "
        "request.requestKind.version == request.kind.version",
    )
    statuses = {}
    for version in ("v1", "v2"):
        path = f"/apis/example.com/{version}/namespaces/ns/things"
        body = {
            "apiVersion": f"example.com/{version}",
            "kind": "Thing",
            "metadata": {"name": f"t-{version}"},
        }
        statuses[version] = (await asked.send("POST", path, body)).status
    assert statuses == {"v1": 422 if policy == "Equivalent" else 201, "v2": 201}


async def test_a_custom_object_is_changed_by_its_schema() -> None:
    asked = server()
    await asked.send("POST", DEFINITIONS, THING)
    patch = {"expression": "Object{n: object.m + 1}"}
    await put(
        asked,
        MUTATING,
        {"resourceRules": [rule("things", "example.com", "v1", "*")]},
        mutations=[{"patchType": "ApplyConfiguration", "applyConfiguration": patch}],
        reinvocationPolicy="Never",
    )
    path = "/apis/example.com/v1/namespaces/ns/things"
    body = {
        "apiVersion": "example.com/v1",
        "kind": "Thing",
        "metadata": {"name": "t"},
        "m": 1,
    }
    assert (await asked.send("POST", path, body)).body["n"] == 2
    assert (await asked.merge_patch(f"{path}/t", {"m": 5})).body["n"] == 6


async def test_each_mutation_sees_variables_of_the_object_as_the_one_before_left_it() -> None:
    asked = server()
    patch = {"expression": "Object{data: {'a': variables.longer}}"}
    await put(
        asked,
        MUTATING,
        {"resourceRules": [rule("configmaps")]},
        variables=[{"name": "longer", "expression": "object.data.a + 'x'"}],
        mutations=[{"patchType": "ApplyConfiguration", "applyConfiguration": patch}] * 2,
        reinvocationPolicy="Never",
    )
    assert (await asked.send("POST", MAPS, config_map(a="x"))).body["data"] == {"a": "xxx"}


async def test_an_eviction_is_no_deletion_and_the_grace_period_of_a_pod_is_seen() -> None:
    asked = server()
    match = {"resourceRules": [rule("pods", operation="DELETE")]}
    await refuse(asked, match, "request.options.gracePeriodSeconds > 0")
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeName": "n"}
    pods = "/api/v1/namespaces/ns/pods"
    for name in ("a", "b"):
        await asked.send("POST", pods, {"metadata": {"name": name}, "spec": spec})
    now = {"gracePeriodSeconds": 0}
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "b"},
        "deleteOptions": now,
    }
    statuses = [
        (await asked.send("DELETE", f"{pods}/a", now)).status,
        (await asked.send("DELETE", f"{pods}/a")).status,
        (await asked.send("POST", f"{pods}/b/eviction", eviction)).status,
    ]
    assert statuses == [422, 200, 201]


async def test_no_policy_keeps_others_from_being_mended() -> None:
    asked = server()
    await refuse(asked, {"resourceRules": [rule("*", "*", "*", "*")]}, "false")
    assert (await asked.send("POST", MAPS, config_map())).status == 422
    assert (await asked.send("DELETE", f"{ADMISSION}/{VALIDATING}/p")).status == 200


@pytest.mark.parametrize(
    ("expression", "missing"),
    [
        ("url('https://x').getHost() == 'x'", "url"),
        ("optional.none().hasValue()", "optional.none"),
        ("object.data.all(k, v, v != '')", "all"),
        ("object.?data.optMap(d, d.size() > 0).orValue(true)", "optMap"),
    ],
)
async def test_an_expression_with_more_than_is_served_is_refused(
    expression: str, missing: str
) -> None:
    body = {
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [rule("configmaps")]},
            "validations": [{"expression": expression}],
        },
    }
    answer = await server().send("POST", f"{ADMISSION}/{VALIDATING}", body)
    text = f"spec.validations[0].expression: the CEL function {missing} is not emulated"
    assert (answer.status, answer.body["message"]) == (403, text)


async def test_a_conversion_webhook_is_refused_as_nothing_is_stored_in_two_versions() -> None:
    conversion = {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"]}}
    spec: Json = {**THING["spec"], "conversion": conversion}
    body = {**THING, "spec": spec}
    answer = await server().send("POST", DEFINITIONS, body)
    assert answer.status == 422
    assert answer.body["details"]["causes"] == [
        {
            "reason": "FieldValueForbidden",
            "message": "Forbidden: a conversion webhook is not emulated: no object is stored in "
            "two versions here",
            "field": "spec.conversion.strategy",
        }
    ]
