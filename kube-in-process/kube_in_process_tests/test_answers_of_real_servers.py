"""Single answers of real servers that no recording has.

A recording would need definitions of custom kinds, or the message quotes the patched object.
"""

from __future__ import annotations

from typing import Any

import pytest
from judges.definitions import definitions
from kube_in_process.virtual import run

from kube_in_process_tests.servers import Answered, Server, pod, server

_ROOT = "/apis/claimctl.io/v1alpha1/namespaces/ns/claimreservations"
_WORKLOAD = {"apiGroup": "apps", "kind": "Deployment", "name": "train"}
_RESERVATION: dict[str, Any] = {
    "apiVersion": "claimctl.io/v1alpha1",
    "kind": "ClaimReservation",
    "metadata": {"name": "a"},
    "spec": {"resourceClaimName": "slice", "workloadRef": _WORKLOAD},
}


def with_definitions() -> Server:
    served = server()
    for body in definitions():
        served.local().create("customresourcedefinitions", body)
    return served


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
    created = await served.send("POST", _ROOT, _RESERVATION)
    version = created.body["metadata"]["resourceVersion"]
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
    assert all(answer.body["metadata"]["labels"]["job-name"] == "a" for answer in answers)
    first, second, third = [answer.body["metadata"]["resourceVersion"] for answer in answers]
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
        created = replicas.body["spec"]["template"]["spec"]["containers"][0]["resources"]
        return created, single.body["spec"]["containers"][0]["resources"]

    created, single = run(go())
    assert created == {"limits": {"cpu": "1"}}
    assert single == {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}}


_JSON = {"content-type": "application/json-patch+json"}
_MERGE = {"content-type": "application/merge-patch+json"}
_APPLY = {"content-type": "application/apply-patch+yaml"}


async def test_a_null_that_is_applied_to_a_custom_object_has_the_wrong_type() -> None:
    spec = {**_RESERVATION["spec"], "workloadRef": {**_WORKLOAD, "kind": None}}
    body = {**_RESERVATION, "spec": spec}
    applied = await with_definitions().send("PATCH", f"{_ROOT}/a?fieldManager=x", body, _APPLY)
    created = await with_definitions().send("POST", _ROOT, body)
    assert [given.body["details"]["causes"][0]["message"] for given in (applied, created)] == [
        'Invalid value: "null": spec.workloadRef.kind in body must be of type string: "null"',
        "Required value",
    ]


async def test_a_status_that_is_no_object_is_named_without_a_dot() -> None:
    served = with_definitions()
    created = await served.send("POST", _ROOT, _RESERVATION)
    body = {**created.body, "status": "b"}
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
    created = await served.send("POST", _ROOT, _RESERVATION)
    spec = {**_RESERVATION["spec"], "resourceClaimTemplateName": []}
    answer = await served.send("PUT", f"{_ROOT}/a/status", {**created.body, "spec": spec})
    assert answer.status == 200
    assert "managedFields" in created.body["metadata"]
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
    created = await served.send("POST", "/api/v1/namespaces", {"metadata": {"name": "b"}})
    body = {**created.body, "spec": {"finalizers": []}}
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
    assert [item["metadata"]["name"] for item in one.body["items"]] == ["b"]
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


_JSON_PATCH = {"content-type": "application/json-patch+json"}


@pytest.mark.parametrize(
    ("operations", "status", "said"),
    [
        (
            [
                {"op": "replace", "path": "/apiVersion", "value": {}},
                {"op": "add", "path": "/kind", "value": "x"},
            ],
            422,
            "json: cannot unmarshal object into Go struct field .apiVersion of type string",
        ),
        (
            [{"op": "move", "path": "/metadata/name", "from": "/apiVersion"}],
            400,
            "the name of the object (claimctl.io/v1alpha1) does not match the name on the URL (a)",
        ),
        (
            [
                {"op": "remove", "path": "/apiVersion"},
                {"op": "replace", "path": "/metadata/resourceVersion", "value": "1"},
            ],
            409,
            "the object has been modified; please apply your changes to the latest version and "
            "try again",
        ),
        (
            [{"op": "remove", "path": "/apiVersion"}],
            500,
            "Internal error occurred: Object 'apiVersion' is missing in 'object has no apiVersion "
            "field'",
        ),
    ],
)
async def test_a_patched_custom_object_without_a_version_is_refused_after_all_else(
    operations: list[Any], status: int, said: str
) -> None:
    served = with_definitions()
    await served.send("POST", _ROOT, _RESERVATION)
    for path in (f"{_ROOT}/a", f"{_ROOT}/a/status"):
        answer = await served.send("PATCH", path, operations, _JSON_PATCH)
        assert answer.status == status
        assert answer.body["message"].endswith(said)


async def test_repeated_owners_of_a_custom_object_are_warned_of_whatever_its_kind() -> None:
    served = with_definitions()
    await served.send("POST", _ROOT, _RESERVATION)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "o", "uid": "u-1"}
    patch = {"kind": "x", "metadata": {"ownerReferences": [owner, owner]}}
    answer = await served.merge_patch(f"{_ROOT}/a", patch)
    assert answer.status == 422
    assert "duplicate UID(s) observed: u-1" in answer.headers["warning"]


_WRONG = 'metadata.generateName: Invalid value: "{}": '


@pytest.mark.parametrize(
    ("version", "path", "body", "base", "wrong"),
    [
        ((1, 36), "/api/v1/nodes", {}, "Bad_", "a lowercase RFC 1123 subdomain"),
        ((1, 36), "/api/v1/namespaces", {}, "Bad_", "a lowercase RFC 1123 label"),
        ((1, 36), "/apis/resource.k8s.io/v1/deviceclasses", {"spec": {}}, "Bad_", ""),
        (
            (1, 34),
            "/apis/resource.k8s.io/v1/deviceclasses",
            {"spec": {}},
            "Bad_",
            "a lowercase RFC 1123 subdomain",
        ),
        (
            (1, 36),
            "/apis/scheduling.k8s.io/v1/priorityclasses",
            {"value": 1},
            "a/b",
            "may not contain '/'",
        ),
        ((1, 36), "/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 1}, "Bad_", ""),
    ],
)
async def test_an_update_checks_generate_name_by_the_rules_of_the_kind(
    version: tuple[int, int], path: str, body: dict[str, Any], base: str, wrong: str
) -> None:
    served = server(kubernetes_version=version)
    created = await served.send("POST", path, {"metadata": {"name": "a"}, **body})
    assert created.status == 201
    answer = await served.merge_patch(f"{path}/a", {"metadata": {"generateName": base}})
    assert answer.status == (422 if wrong else 200)
    if wrong:
        assert f"{_WRONG.format(base)}{wrong}" in answer.body["message"]


async def test_a_write_of_the_status_checks_generate_name_as_a_path_alone() -> None:
    served = server()
    await served.send("POST", "/api/v1/nodes", {"metadata": {"name": "a"}})
    for base, status in (("Bad_", 200), ("a/b", 422)):
        patch = {"metadata": {"generateName": base}}
        answer = await served.merge_patch("/api/v1/nodes/a/status", patch)
        assert answer.status == status


_ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces/ns/roles"


async def test_a_create_keeps_the_version_that_was_sent_in_a_dry_run_alone() -> None:
    served = server()
    apply = {"content-type": "application/apply-patch+yaml"}
    head = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}

    async def sent(name: str, version: str, query: str, method: str) -> Answered:
        body = {**head, "metadata": {"name": name, "resourceVersion": version}, "rules": []}
        path = _ROLES if method == "POST" else f"{_ROLES}/{name}"
        headers = apply if method == "PATCH" else None
        return await served.send(method, f"{path}?fieldManager=m{query}", body, headers)

    for method in ("PUT", "PATCH", "POST"):
        answer = await sent("dry", "7", "&dryRun=All", method)
        assert (answer.status, answer.body["metadata"]["resourceVersion"]) == (201, "7")
    for method in ("PUT", "PATCH"):
        answer = await sent(method.lower(), "7", "", method)
        assert answer.status == 201
        assert answer.body["metadata"]["resourceVersion"] != "7"
        assert (await sent("odd", "x", "", method)).status == 500
    for version, status in (("7", 500), ("0", 201), ("x", 201)):
        assert (await sent(f"made-{version}", version, "", "POST")).status == status


async def test_a_binding_is_checked_by_its_names_before_the_pod_is_looked_up() -> None:
    served = server()
    path = "/api/v1/namespaces/ns/pods/p/binding"
    node = {"name": "node-0"}

    async def said(where: str, **metadata: str) -> tuple[int, str]:
        answer = await served.send("POST", where, {"metadata": metadata, "target": node})
        return answer.status, answer.body.get("message", "")

    other = "name in URL does not match name in Binding object"
    assert await said(path, name="q") == (400, other)
    assert await said(path) == (400, other)
    wrong = "the namespace of the provided object does not match the namespace sent on the request"
    assert await said(path, name="q", namespace="other") == (400, wrong)
    nowhere = path.replace("/ns/", "/nowhere/")
    assert await said(nowhere, name="q") == (404, 'namespaces "nowhere" not found')
    assert await said(path, name="p") == (404, 'pods "p" not found')
    bindings = "/api/v1/namespaces/ns/bindings"
    assert await said(bindings) == (400, "Name parameter required.")
    await served.send("POST", "/api/v1/namespaces/ns/pods", pod())
    assert await said(bindings, name="p", namespace="ns") == (201, "")


@pytest.mark.parametrize(("labels", "written"), [({}, False), (None, True)])
async def test_empty_labels_of_a_jobs_template_are_those_of_the_job_at_once(
    labels: dict[str, str] | None, written: bool
) -> None:
    served = server()
    root = "/apis/batch/v1/namespaces/ns/jobs"
    spec = {"restartPolicy": "Never", "containers": [{"name": "m", "image": "x"}]}
    template = {"metadata": {"labels": labels}, "spec": spec}
    created = await served.send(
        "POST", root, {"metadata": {"name": "a"}, "spec": {"template": template}}
    )
    patched = await served.merge_patch(f"{root}/a", {})
    assert created.body["metadata"]["labels"] == patched.body["metadata"]["labels"] != {}
    versions = [one.body["metadata"]["resourceVersion"] for one in (created, patched)]
    assert (versions[0] != versions[1]) == written


async def test_a_scale_owns_the_replicas_only_if_a_manager_owned_them_before() -> None:
    served = server()
    root = "/apis/apps/v1/namespaces/ns/deployments"
    template = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {"containers": [{"name": "m", "image": "x"}]},
    }
    body: dict[str, Any] = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"selector": {"matchLabels": {"app": "a"}}, "template": template},
    }
    media = {"content-type": "application/apply-patch+yaml"}
    scale = {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 4}}
    owned = []
    for name, replicas in (("a", {}), ("b", {"replicas": 1})):
        applied = {**body, "metadata": {"name": name}, "spec": {**body["spec"], **replicas}}
        await served.send("PATCH", f"{root}/{name}?fieldManager=one", applied, media)
        await served.send("PUT", f"{root}/{name}/scale", {**scale, "metadata": {"name": name}})
        entries = (await served.send("GET", f"{root}/{name}")).body["metadata"]["managedFields"]
        owned.append([(entry["operation"], entry.get("subresource", "")) for entry in entries])
    assert owned == [[("Apply", "")], [("Apply", ""), ("Update", "scale")]]


@pytest.mark.parametrize(
    ("version", "status"), [("x", 500), ("-1", 500), ("0", 422), ("", 422), ("1", 409)]
)
async def test_a_patch_of_the_version_is_checked_as_in_an_update(version: str, status: int) -> None:
    served = server()
    root = "/apis/policy/v1/namespaces/ns/poddisruptionbudgets"
    body: dict[str, Any] = {"metadata": {"name": "a"}, "spec": {"selector": {}}}
    await served.send("POST", root, body)
    patch = {"metadata": {"resourceVersion": version, "labels": {"x": "y"}}}
    assert (await served.merge_patch(f"{root}/a", patch)).status == status
    apply = {"content-type": "application/apply-patch+yaml"}
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    applied = {**head, **body, "metadata": {**patch["metadata"], "name": "a"}}
    answer = await served.send("PATCH", f"{root}/a?fieldManager=m", applied, apply)
    assert answer.status == status


async def test_no_pod_is_bound_in_a_namespace_that_is_being_deleted() -> None:
    served = server()
    await served.send("POST", "/api/v1/namespaces/ns/pods", pod())
    await served.send("DELETE", "/api/v1/namespaces/ns")
    body = {"metadata": {"name": "p"}, "target": {"name": "node-0"}}
    for path, plural in (("pods/p/binding", "pods"), ("bindings", "bindings")):
        answer = await served.send("POST", f"/api/v1/namespaces/ns/{path}", body)
        assert answer.status == 403
        assert answer.body["message"].startswith(f'{plural} "p" is forbidden: unable to create')
