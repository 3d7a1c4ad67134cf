"""Single answers of real servers that no recording holds, for it would need definitions."""

from __future__ import annotations

from typing import Any

from tests.differential.playing import definitions
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
