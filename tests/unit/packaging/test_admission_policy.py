"""The admission policy warns exactly where the controller would report an annotation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from claimctl.reservation.annotation import Annotated, plan
from claimctl.wire.base import from_plain
from claimctl.wire.reservations import WorkloadRef
from claimctl.wire.workloads import Deployment
from tests.unit.packaging.policies import matches, refusals

FILE = Path(__file__).parents[3] / "deploy/components/admission-policy/admission-policy.yaml"
POLICY, BINDING = yaml.safe_load_all(FILE.read_text())
RESERVE, STICKY = "claimctl.io/reserve", "claimctl.io/sticky"
Json = dict[str, Any]


def deployment(
    annotations: dict[str, str] | None, *claims: str, on_template: dict[str, str] | None = None
) -> Json:
    spec: Json = {"containers": [{"name": "main", "image": "i"}]}
    if claims:
        spec["resourceClaims"] = [
            {"name": f"c{i}", "resourceClaimName": c} for i, c in enumerate(claims)
        ]
    meta: Json = {"name": "train", "namespace": "ml", "uid": "u"}
    if annotations is not None:
        meta["annotations"] = annotations
    labels = {"app": "train"}
    template: Json = {"labels": labels}
    if on_template is not None:
        template["annotations"] = on_template
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": meta,
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": template, "spec": spec},
        },
    }


def warnings(body: Json) -> list[str]:
    """The messages of the policy for an object, as an API server evaluates it."""
    names = {"object": body}
    told = refusals(POLICY, names) if matches(POLICY, names) else []
    return [" ".join(each.split()) for each in told]


def problems(body: Json) -> list[str]:
    """What the controller would report by Events."""
    workload = from_plain(body, Deployment)
    ref = WorkloadRef(api_group="apps", kind="Deployment", name="train")
    return [each.note for each in plan(Annotated(ref, "apps/v1", workload)).problems]


CASES = [
    ({RESERVE: "*"}, ("slice",), ""),
    ({RESERVE: "slice"}, ("slice",), ""),
    ({RESERVE: " slice , other "}, ("slice", "other"), ""),
    ({RESERVE: "slice", "claimctl.io/retention-policy": "Persistent"}, ("slice",), ""),
    ({RESERVE: "slice", "claimctl.io/idle-timeout-seconds": "2147483647"}, ("slice",), ""),
    ({"example.com/note": "x"}, (), ""),
    (None, (), ""),
    ({RESERVE: ""}, ("slice",), "names no claim"),
    ({RESERVE: " , "}, ("slice",), "names no claim"),
    ({RESERVE: "Slice_1"}, ("slice",), "no ResourceClaim can have"),
    ({RESERVE: "a" * 254}, ("slice",), "no ResourceClaim can have"),
    ({RESERVE: "slice,other"}, ("slice",), "does not name"),
    ({RESERVE: "slice", "claimctl.io/retention-policy": "Never"}, ("slice",), "must be While"),
    (
        {RESERVE: "slice", "claimctl.io/retention-policy": "Manual"},
        ("slice",),
        "for Manual, create",
    ),
    ({RESERVE: "slice", "claimctl.io/idle-timeout-seconds": "1m"}, ("slice",), "whole number"),
    ({RESERVE: "slice", "claimctl.io/idle-timeout-seconds": "2147483648"}, ("slice",), "whole num"),
]


@pytest.mark.parametrize(("annotations", "claims", "words"), CASES)
def test_it_says_what_the_controller_says(
    annotations: dict[str, str] | None, claims: tuple[str, ...], words: str
) -> None:
    body = deployment(annotations, *claims)
    found = warnings(body)
    assert bool(found) is bool(problems(body)) is bool(words)
    assert any(words in each for each in found) or not words


MORE = [
    (deployment({RESERVE: "*"}), "the pod template names no claim"),
    (deployment({"claimctl.io/retention-policy": "Persistent"}), "no effect without"),
    (deployment({"claimctl.io/reserved": "*"}, "slice"), "unknown annotation"),
    (deployment({"claimctl.io/pod-group": "yes"}, "slice"), "must be inject"),
    (deployment(None, "slice", on_template={RESERVE: "*"}), "is on the pod template"),
    (deployment({STICKY: "*"}), "belongs into the metadata of the pod template"),
    (
        deployment({"claimctl.io/when-scaled": "Delete"}),
        "have no effect without claimctl.io/sticky",
    ),
    (
        deployment({"claimctl.io/when-deleted": "No"}, on_template={STICKY: "*"}),
        "must be Retain or Delete",
    ),
    (
        deployment({"claimctl.io/retention-policy": "No"}, on_template={STICKY: "*"}),
        "must be WhileRunning or Persistent",
    ),
]
STICKY_ASKED = {
    "claimctl.io/retention-policy": "Persistent",
    "claimctl.io/idle-timeout-seconds": "3",
    "claimctl.io/when-scaled": "Delete",
    "claimctl.io/when-deleted": "Retain",
}


def test_it_is_silent_about_sticky_claims_that_are_asked_for_well() -> None:
    assert warnings(deployment(STICKY_ASKED, on_template={STICKY: "*"})) == []


@pytest.mark.parametrize(("body", "words"), MORE)
def test_it_says_also_what_the_controller_cannot_see(body: Json, words: str) -> None:
    assert [words in each for each in warnings(body)] == [True]


def test_it_warns_and_refuses_nothing() -> None:
    assert BINDING["spec"]["validationActions"] == ["Warn"]
    assert BINDING["spec"]["policyName"] == POLICY["metadata"]["name"]
    assert POLICY["spec"]["failurePolicy"] == "Ignore"
