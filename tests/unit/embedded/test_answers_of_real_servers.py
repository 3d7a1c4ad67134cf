"""Single answers of real servers that no recording has.

A recording would need definitions of custom kinds, or the message quotes the patched object.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.definitions import definitions
from tests.support.virtual import run
from tests.unit.embedded.servers import Answered, Server, server

_ROOT = "/apis/claimctl.io/v1alpha1/namespaces/ns/claimreservations"
_WORKLOAD = {"apiGroup": "apps", "kind": "Deployment", "name": "train"}
_RESERVATION: dict[str, Any] = {
    "apiVersion": "claimctl.io/v1alpha1",
    "kind": "ClaimReservation",
    "metadata": {"name": "a"},
    "spec": {"resourceClaimName": "slice", "workloadRef": _WORKLOAD},
}


def with_definitions() -> Server:
    made = server()
    for body in definitions():
        made.local().create("customresourcedefinitions", body)
    return made


def asked(method: str, path: str, body: Any = None) -> Answered:
    async def go() -> Answered:
        return await with_definitions().send(method, path, body)

    return run(go())


def test_a_custom_kinds_body_without_a_kind_is_refused_whole() -> None:
    answer = asked("POST", _ROOT, b"null")
    assert answer.status == 400
    assert answer.body["message"] == (
        "the object provided is unrecognized (must be of type ClaimReservation): "
        "Object 'Kind' is missing in 'null' (6e756c6c)"
    )


def test_a_custom_object_is_missed_before_its_subresource() -> None:
    answer = asked("GET", f"{_ROOT}/b/nosuch")
    assert answer.body["message"] == 'claimreservations.claimctl.io "b" not found'


def test_a_custom_object_of_another_version_is_told_which_one_is_expected() -> None:
    answer = asked("POST", _ROOT, {**_RESERVATION, "apiVersion": "odd/v1"})
    assert answer.status == 400
    assert answer.body["message"] == (
        "the API version in the data (odd/v1) does not match the expected API version "
        "(claimctl.io/v1alpha1)"
    )
    assert "warning" not in answer.headers


async def test_the_status_of_a_custom_object_takes_nothing_else_along() -> None:
    served = with_definitions()
    made = await served.send("POST", _ROOT, _RESERVATION)
    version = made.body["metadata"]["resourceVersion"]
    named = {"name": "a", "resourceVersion": version}
    meta = {**named, "labels": {"x": "y"}, "generateName": "made-"}
    body = {**_RESERVATION, "metadata": meta, "status": {"observedGeneration": 1}}
    answer = await served.send("PUT", f"{_ROOT}/a/status", body)
    assert answer.body["status"]["observedGeneration"] == 1
    assert not {"labels", "generateName"} & set(answer.body["metadata"])


async def test_a_job_is_stored_with_the_labels_that_it_is_shown_with_by_its_next_write() -> None:
    containers = [{"name": "main", "image": "example.com/image:1"}]
    template = {"spec": {"containers": containers, "restartPolicy": "Never"}}
    job = {"metadata": {"name": "a"}, "spec": {"template": template}}
    path = "/apis/batch/v1/namespaces/ns/jobs"
    served = server()
    answers = [await served.send("POST", path, job)]
    answers += [await served.merge_patch(f"{path}/a", {"kind": "Job"}) for _ in range(2)]
    assert all(each.body["metadata"]["labels"]["job-name"] == "a" for each in answers)
    first, second, third = [each.body["metadata"]["resourceVersion"] for each in answers]
    assert first != second == third


def test_a_template_requests_nothing_of_what_it_is_limited_to_and_a_pod_does() -> None:
    containers = [{"name": "main", "image": "x", "resources": {"limits": {"cpu": "1"}}}]
    labels = {"app": "a"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": containers}}
    spec = {"selector": {"matchLabels": labels}, "template": template}

    async def go() -> tuple[Any, Any]:
        served = server()
        group = "/apis/apps/v1/namespaces/ns/replicasets"
        replicas = await served.send("POST", group, {"metadata": {"name": "a"}, "spec": spec})
        pod = {"metadata": {"name": "a"}, "spec": {"containers": containers}}
        single = await served.send("POST", "/api/v1/namespaces/ns/pods", pod)
        made = replicas.body["spec"]["template"]["spec"]["containers"][0]["resources"]
        return made, single.body["spec"]["containers"][0]["resources"]

    made, single = run(go())
    assert made == {"limits": {"cpu": "1"}}
    assert single == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}


_JSON = {"content-type": "application/json-patch+json"}
_MERGE = {"content-type": "application/merge-patch+json"}
_APPLY = {"content-type": "application/apply-patch+yaml"}


async def test_a_null_that_is_applied_to_a_custom_object_has_the_wrong_type() -> None:
    spec = {**_RESERVATION["spec"], "workloadRef": {**_WORKLOAD, "kind": None}}
    body = {**_RESERVATION, "spec": spec}
    applied = await with_definitions().send("PATCH", f"{_ROOT}/a?fieldManager=x", body, _APPLY)
    created = await with_definitions().send("POST", _ROOT, body)
    assert [each.body["details"]["causes"][0]["message"] for each in (applied, created)] == [
        'Invalid value: "null": spec.workloadRef.kind in body must be of type string: "null"',
        "Required value",
    ]


async def test_a_status_that_is_no_object_is_named_without_a_dot() -> None:
    served = with_definitions()
    made = await served.send("POST", _ROOT, _RESERVATION)
    body = {**made.body, "status": "b"}
    answer = await served.send("PUT", f"{_ROOT}/a/status", body)
    assert answer.body["details"]["causes"][0]["field"] == "status"


@pytest.mark.parametrize(
    ("operations", "status", "message"),
    [
        (
            [{"op": "move", "path": "/kind", "from": "/metadata/name"}],
            400,
            "the name of the object (a based on URL) was undeterminable: name must be provided",
        ),
        (
            [{"op": "add", "path": "/apiVersion", "value": "x"}],
            422,
            'ClaimReservation "a" is invalid: apiVersion: Invalid value: "x": '
            "must be claimctl.io/v1alpha1",
        ),
        (
            [
                {"op": "add", "path": "/kind", "value": "x"},
                {"op": "add", "path": "/metadata/labels", "value": 1},
            ],
            422,
            "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type "
            "map[string]string",
        ),
    ],
)
async def test_a_custom_object_that_is_patched_into_another_kind_is_refused(
    operations: Any, status: int, message: str
) -> None:
    served = with_definitions()
    await served.send("POST", _ROOT, _RESERVATION)
    answer = await served.send("PATCH", f"{_ROOT}/a", operations, _JSON)
    assert answer.status == status
    assert answer.body["message"].endswith(message)


async def test_a_custom_object_with_a_wrong_type_loses_its_managed_fields() -> None:
    served = with_definitions()
    made = await served.send("POST", _ROOT, _RESERVATION)
    spec = {**_RESERVATION["spec"], "resourceClaimTemplateName": []}
    answer = await served.send("PUT", f"{_ROOT}/a/status", {**made.body, "spec": spec})
    assert answer.status == 200
    assert "managedFields" in made.body["metadata"]
    assert "managedFields" not in answer.body["metadata"]


_JOB = {
    "metadata": {"name": "a"},
    "spec": {
        "template": {
            "spec": {"containers": [{"name": "m", "image": "x"}], "restartPolicy": "Never"}
        }
    },
}


@pytest.mark.parametrize(
    ("patch", "headers", "message"),
    [
        (
            # a time stops the decoder at once, other types do not
            {"status": {"ready": "x", "startTime": "a"}},
            _MERGE,
            'parsing time "a" as "2006-01-02T15:04:05Z07:00": cannot parse "a" as "2006"',
        ),
        (
            # keys of the objects that a patch opens are read in their order
            [
                {"op": "replace", "path": "/spec/suspend", "value": "x"},
                {"op": "replace", "path": "/spec/maxFailedIndexes", "value": "x"},
            ],
            _JSON,
            "json: cannot unmarshal string into Go struct field JobSpec.spec.maxFailedIndexes of "
            "type int32",
        ),
        (
            [
                {"op": "add", "path": "/metadata", "value": []},
                {"op": "add", "path": "/kind", "value": "x"},
            ],
            _JSON,
            'no kind "x" is registered for version "batch/v1" in scheme '
            '"pkg/runtime/scheme.go:111"',
        ),
    ],
)
async def test_one_of_several_errors_of_a_patched_job_is_told(
    patch: Any, headers: dict[str, str], message: str
) -> None:
    served = server()
    path = "/apis/batch/v1/namespaces/ns/jobs"
    await served.send("POST", path, _JOB)
    below = "/status" if "status" in patch else ""
    answer = await served.send("PATCH", f"{path}/a{below}", patch, headers)
    assert answer.status == 422
    assert answer.body["message"].endswith(message)


async def test_a_patch_that_removes_the_version_knows_no_field_under_strict() -> None:
    served = server()
    path = "/api/v1/namespaces/ns/configmaps"
    await served.send("POST", path, {"metadata": {"name": "a"}, "data": {"k": "v"}})
    operations = [{"op": "remove", "path": "/apiVersion"}]
    answer = await served.send("PATCH", f"{path}/a?fieldValidation=Strict", operations, _JSON)
    assert answer.status == 422
    assert answer.body["message"].endswith(
        'strict decoding error: unknown field "data", unknown field "metadata"'
    )


_RBAC = "/apis/rbac.authorization.k8s.io/v1"
_TEMPLATES = "/apis/resource.k8s.io/v1/namespaces/ns/resourceclaimtemplates"
_REQUEST = {"name": "one", "exactly": {"deviceClassName": "gpu.example.com"}}
_CLAIM_SPEC = {"devices": {"requests": [_REQUEST]}}


async def test_a_merge_patch_removes_the_nulls_in_the_objects_of_a_list() -> None:
    served = server()
    selectors = [{"matchLabels": {"app": "a"}}]
    role = {"metadata": {"name": "c"}, "aggregationRule": {"clusterRoleSelectors": selectors}}
    await served.send("POST", f"{_RBAC}/clusterroles", role)
    change = {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"app": None}}]}}
    media = {"content-type": "application/merge-patch+json"}
    answer = await served.send("PATCH", f"{_RBAC}/clusterroles/c", change, media)
    assert answer.body["aggregationRule"] == {"clusterRoleSelectors": [{}]}


@pytest.mark.parametrize(("field", "named"), [("name", "name"), ("uid", "uID")])
def test_a_claim_template_refuses_other_metadata_of_its_claims(field: str, named: str) -> None:
    meta = {"labels": {"made": "yes"}, "annotations": {"for": "you"}, field: "1"}
    body = {"metadata": {"name": "b"}, "spec": {"metadata": meta, "spec": _CLAIM_SPEC}}
    answer = asked("POST", _TEMPLATES, body)
    assert answer.status == 422
    assert answer.body["message"] == (
        'ResourceClaimTemplate.resource.k8s.io "b" is invalid: '
        f"spec.metadata.{named}: Forbidden: cannot be set"
    )


@pytest.mark.parametrize(("parameters", "link"), [("&dryRun=All", "/x"), ("", None)])
def test_only_a_dry_run_of_an_apply_that_creates_shows_a_self_link(
    parameters: str, link: str | None
) -> None:
    body = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "c", "selfLink": "/x"},
        "spec": {"spec": _CLAIM_SPEC},
    }

    async def go() -> Answered:
        media = {"content-type": "application/apply-patch+yaml"}
        path = f"{_TEMPLATES}/c?fieldManager=one{parameters}"
        return await server().send("PATCH", path, body, media)

    answer = run(go())
    assert answer.status == 201
    assert answer.body["metadata"].get("selfLink") == link


async def test_the_first_deletion_of_a_finalized_namespace_only_marks_it() -> None:
    served = server()
    made = await served.send("POST", "/api/v1/namespaces", {"metadata": {"name": "b"}})
    body = {**made.body, "spec": {"finalizers": []}}
    await served.send("PUT", "/api/v1/namespaces/b/finalize", body)
    first = await served.send("DELETE", "/api/v1/namespaces/b")
    assert first.body["status"]["phase"] == "Terminating"
    assert first.body["metadata"]["deletionTimestamp"]
    assert (await served.send("GET", "/api/v1/namespaces/b")).status == 200
    await served.send("DELETE", "/api/v1/namespaces/b")
    assert (await served.send("GET", "/api/v1/namespaces/b")).status == 404


async def test_a_list_of_one_name_has_no_second_page() -> None:
    served = server()
    path = "/api/v1/namespaces/ns/configmaps"
    for name in ("a", "b", "c"):
        await served.send("POST", path, {"metadata": {"name": name}})
    one = await served.send("GET", f"{path}?limit=1&fieldSelector=metadata.name=b")
    assert [each["metadata"]["name"] for each in one.body["items"]] == ["b"]
    assert "continue" not in one.body["metadata"]
    # in all namespaces the server reads all objects
    everywhere = "/api/v1/configmaps?limit=1&fieldSelector=metadata.name=a"
    assert (await served.send("GET", everywhere)).body["metadata"]["continue"]


@pytest.mark.parametrize(
    ("ports", "written"), [((80, 443), True), ((443, 80), True), ((80,), False)]
)
async def test_a_patch_without_a_change_writes_once_after_a_scale_of_several_ports(
    ports: tuple[int, ...], written: bool
) -> None:
    served = server()
    root = "/apis/apps/v1/namespaces/ns/replicasets"
    shown = [{"containerPort": port} for port in ports]
    container = {"name": "main", "image": "example.com/image:1", "ports": shown}
    template = {"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    await served.send("POST", root, {"metadata": {"name": "a"}, "spec": spec})
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "a"}}
    scaled = await served.send("PUT", f"{root}/a/scale", {**scale, "spec": {"replicas": 2}})
    again = await served.send("PUT", f"{root}/a/scale", {**scale, "spec": {"replicas": 2}})
    media = {"content-type": "application/merge-patch+json"}
    first = await served.send("PATCH", f"{root}/a", {}, media)
    second = await served.send("PATCH", f"{root}/a", {}, media)
    versions = [one.body["metadata"]["resourceVersion"] for one in (scaled, again, first, second)]
    assert (versions[1] != versions[2]) == written
    assert versions[2] == versions[3]
