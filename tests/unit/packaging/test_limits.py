"""The component limits says what exceeds a limit, and its policy, binding and ConfigMap agree."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest
import yaml

from claimctl.commands.install.components import NAMESPACE, Choice, chosen, documents
from claimctl.reservation.facts.reasons import RetentionPolicy
from generate.values import LimitKey
from tests.unit.packaging.policies import refusals

Json = dict[str, Any]
ROOT = Path(__file__).parents[3]
LIMITS = {"maxIdleTimeoutSeconds": "3600", "maxForceDeletedPodGraceSeconds": "600"}
LEAST = {"minForceDeletedPodGraceSeconds": "30"}
DEFAULTS = {"idleTimeoutSeconds": 60, "retentionPolicy": "WhileRunning"}


def document(kind: str, name: str = "claimctl-limits", namespace: str = NAMESPACE) -> Json:
    every = chosen(Choice(("limits",), namespace))
    (body,) = [body for body in every if (body["kind"], body["metadata"]["name"]) == (kind, name)]
    return body


def reservation(given: Json) -> Json:
    """A ClaimReservation; the entry ``ended`` of ``given`` becomes its annotation."""
    spec = dict(given)
    annotations = {"claimctl.io/ended-pods": spec.pop("ended")} if "ended" in spec else {}
    return {"metadata": {"annotations": annotations}, "spec": DEFAULTS | spec}


def refused(
    limits: Json, spec: Json, old: Json | None = None, *, exempt: bool = False
) -> list[str]:
    names = {
        "params": {"data": limits} if limits else {},
        "object": reservation(spec),
        "oldObject": reservation(old) if old is not None else None,
    }
    return refusals(document("ValidatingAdmissionPolicy"), names, {"mayExceed": exempt})


CASES: list[tuple[Json, Json, Json | None, int]] = [
    ({}, {"idleTimeoutSeconds": 9999, "retentionPolicy": "Manual"}, None, 0),
    (LIMITS, {}, None, 0),
    (LIMITS, {"idleTimeoutSeconds": 3600, "forceDeletedPodGraceSeconds": 600}, None, 0),
    (LIMITS, {"idleTimeoutSeconds": 3601, "forceDeletedPodGraceSeconds": 601}, None, 2),
    (LIMITS, {"forceDeletedPodGraceSeconds": None}, None, 0),
    (LIMITS, {"idleTimeoutSeconds": 7200}, {"idleTimeoutSeconds": 7200}, 0),
    (LIMITS, {"idleTimeoutSeconds": 7201}, {"idleTimeoutSeconds": 7200}, 1),
    (LIMITS, {"forceDeletedPodGraceSeconds": 900}, {"forceDeletedPodGraceSeconds": 901}, 0),
    (LIMITS, {"forceDeletedPodGraceSeconds": 901}, {"forceDeletedPodGraceSeconds": None}, 1),
    (LEAST, {}, None, 0),
    (LEAST, {"forceDeletedPodGraceSeconds": None}, None, 0),
    (LEAST, {"forceDeletedPodGraceSeconds": 29}, None, 1),
    (LEAST, {"forceDeletedPodGraceSeconds": 30}, None, 0),
    (LEAST, {"forceDeletedPodGraceSeconds": 29}, {}, 1),
    (LEAST, {"forceDeletedPodGraceSeconds": 5}, {"forceDeletedPodGraceSeconds": 5}, 0),
    (LEAST, {"forceDeletedPodGraceSeconds": 4}, {"forceDeletedPodGraceSeconds": 5}, 1),
    (LEAST, {"ended": "uid-a"}, {}, 1),
    (LEAST, {"ended": "uid-a"}, {"ended": "uid-a"}, 0),
    (LEAST, {}, {"ended": "uid-a"}, 0),
    (LIMITS, {"ended": "uid-a"}, {}, 0),
    ({"retentionPolicies": "WhileRunning"}, {"retentionPolicy": "Manual"}, None, 1),
    ({"retentionPolicies": "Manual , Persistent"}, {"retentionPolicy": "Persistent"}, None, 0),
    (
        {"retentionPolicies": "WhileRunning"},
        {"retentionPolicy": "Manual"},
        {"retentionPolicy": "Manual"},
        0,
    ),
    (
        {"retentionPolicies": "WhileRunning"},
        {"retentionPolicy": "Manual"},
        {"retentionPolicy": "Persistent"},
        1,
    ),
]


@pytest.mark.parametrize(("limits", "spec", "old", "count"), CASES)
def test_only_what_exceeds_a_limit_and_is_worse_than_before_is_refused(
    limits: Json, spec: Json, old: Json | None, count: int
) -> None:
    assert len(refused(limits, spec, old)) == count
    assert refused(limits, spec, old, exempt=True) == []


def test_a_refusal_says_what_is_allowed_and_whom_to_ask() -> None:
    assert refused({**LIMITS, "contact": "#gpus"}, {"idleTimeoutSeconds": 7200}) == [
        "idleTimeoutSeconds is 7200, and the limit of this cluster is 3600: set that at most, or "
        "ask #gpus"
    ]
    (nobody,) = refused({"retentionPolicies": "WhileRunning"}, {"retentionPolicy": "Manual"})
    assert nobody.endswith("or ask an administrator of the cluster")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, ""),
        ({**LIMITS, "retentionPolicies": "WhileRunning,Manual", "contact": "x"}, ""),
        ({"maxIdleTimeout": "60"}, "unknown key"),
        ({"maxIdleTimeoutSeconds": "1h"}, "whole numbers"),
        ({"maxForceDeletedPodGraceSeconds": "-1"}, "whole numbers"),
        ({"minForceDeletedPodGraceSeconds": "x"}, "whole numbers"),
        ({"retentionPolicies": "WhileRunning,"}, "must name some of"),
    ],
)
def test_a_wrong_configmap_is_refused(data: Json, words: str) -> None:
    policy = document("ValidatingAdmissionPolicy", "claimctl-limits-values")
    messages = refusals(policy, {"object": {"data": data} if data else {}})
    assert [words in message for message in messages] == ([True] if words else [])


def test_the_policy_finds_its_configmap_in_every_namespace() -> None:
    for namespace in (NAMESPACE, "gpus"):
        config = document("ConfigMap", namespace=namespace)
        binding = document("ValidatingAdmissionPolicyBinding", namespace=namespace)["spec"]
        assert (binding["paramRef"]["name"], binding["paramRef"]["namespace"]) == (
            config["metadata"]["name"],
            config["metadata"]["namespace"],
        )
        assert "data" not in config  # another installation would take the administrators' limits
        values = document("ValidatingAdmissionPolicyBinding", "claimctl-limits-values", namespace)
        assert values["spec"]["matchResources"]["namespaceSelector"]["matchLabels"] == {
            "kubernetes.io/metadata.name": namespace
        }
    assert binding["paramRef"]["parameterNotFoundAction"] == "Allow"


def test_the_keys_are_the_same_everywhere() -> None:
    text = (ROOT / "deploy/components/limits/limits.yaml").read_text()
    page = (ROOT / "docs/tenancy.md").read_text()
    for key in get_args(LimitKey):
        assert f"variables.limits.{key}" in text
        assert f"{key}:" in page
    for policy in RetentionPolicy:
        assert f"'{policy}'" in text


def test_no_role_but_its_own_gives_the_right_to_exceed_the_limits() -> None:
    paths = [*ROOT.glob("rbac/**/*.yaml"), *ROOT.glob("deploy/**/*.yaml")]
    roles = [
        body["metadata"]["name"]
        for path in paths
        for body in yaml.safe_load_all(path.read_text())
        for rule in (body or {}).get("rules") or ()
        if {"exceed-limits", "*"} & set(rule.get("verbs", ()))
    ]
    assert roles == ["claimctl-exceed-limits"]
    rules = document("ClusterRole", "claimctl-exceed-limits")["rules"]
    assert rules == [
        {
            "apiGroups": ["claimctl.io"],
            "resources": ["claimreservations"],
            "verbs": ["exceed-limits"],
        }
    ]
    assert documents("limits")
