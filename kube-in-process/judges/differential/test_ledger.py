"""The lists of allowed and seen differences, and the names of kinds; without a real server."""

from __future__ import annotations

from judges.conformance.compare import Difference
from judges.differential.kinds import kind_of
from judges.differential.ledger import LIMIT, allowances
from judges.differential.placeholders import Encoder
from judges.differential.recorded import _own_names
from judges.differential.templates import Known, Step


def test_few_kinds_are_allowed_and_each_has_a_reason() -> None:
    assert len(allowances()) <= LIMIT
    assert all(rule.reason for rule in allowances())


def test_a_kind_of_difference_has_no_names_and_no_numbers() -> None:
    def kind(name: str) -> str:
        step = {"request": {"method": "POST", "path": f"/api/v1/namespaces/{name}/pods"}}
        message = f'Pod "{name}" is invalid: spec.containers[{len(name)}].name: Required value'
        differences = (
            Difference("status", 422, 201),
            Difference("body.message", message, "(missing)"),
        )
        return kind_of(step, differences)

    assert kind("one") == kind("three")
    assert kind("one") == "POST pods: status 422, here 201: spec.containers[N].name: Required value"


def test_what_a_server_made_becomes_a_placeholder_and_what_was_chosen_does_not() -> None:
    uid = "12345678-1234-1234-1234-123456789abc"
    encoder = Encoder("[]")
    given = {"uid": uid, "resourceVersion": "77", "creationTimestamp": "2026-05-06T07:08:09Z"}
    answer = encoder.answer({"metadata": {"name": "a", **given}, "message": f"has {uid}"})
    assert answer["metadata"] == {
        "name": "a",
        "uid": "<uid:1>",
        "resourceVersion": "<rv:1>",
        "creationTimestamp": "<time>",
    }
    assert answer["message"] == "has <uid:1>"
    assert encoder.request({"path": "/x?resourceVersion=77"}) == {
        "path": "/x?resourceVersion=<rv:1>"
    }


def test_a_generated_name_becomes_a_placeholder_also_if_its_base_was_cut() -> None:
    base = "x" * 80
    encoder = Encoder(base)
    encoder.request({"body": {"metadata": {"generateName": base}}})
    name = base[:58] + "fbmfp"
    answer = encoder.answer({"kind": "Status", "message": f'"{name}"', "details": {"name": name}})
    assert answer["details"]["name"] == f"{base[:58]}<gen:1>"
    assert answer["message"] == f'"{base[:58]}<gen:1>"'


def test_objects_without_a_namespace_have_other_names_in_every_sequence() -> None:
    root = "/apis/resource.k8s.io/v1/deviceclasses"

    def step(method: str, path: str, name: str, status: int = 201) -> Step:
        request = {"method": method, "path": path, "body": {"metadata": {"name": name}}}
        return {"request": request, "response": {"status": status, "body": {}}}

    steps = [
        step("POST", root, "100m"),
        step("PUT", f"{root}/100m", "100m", 200),
        step("POST", root, "bad", 422),
        step("POST", f"{root}?dryRun=All", "dry"),
        step("POST", root, "old-name"),
    ]
    renamed = [name["request"] for name in _own_names(steps, "old")]
    names = ["old-100m", "old-100m", "bad", "dry", "old-name"]
    assert [step["body"]["metadata"]["name"] for step in renamed] == names
    assert renamed[1]["path"] == f"{root}/old-100m"


def test_a_request_takes_up_what_was_answered_before() -> None:
    known = Known()
    pod = {"metadata": {"name": "a", "uid": "u", "resourceVersion": "5"}, "spec": {"x": 1}}
    known.learn("/api/v1/namespaces/n/pods/a", pod)
    changed = {"$from": "pods/a", "ops": [["set", ["spec", "x"], 2]]}
    assert known.resolved(changed)["spec"] == {"x": 2}
    assert known.resolved("<=pods/a#metadata.uid>") == "u"
    assert pod["spec"] == {"x": 1}
