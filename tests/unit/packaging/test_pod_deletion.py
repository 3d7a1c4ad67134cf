"""The policy of the component pod-deletion refuses what would free a device in use."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.packaging.policies import matches, refusals

FOLDER = Path(__file__).parents[3] / "deploy/components/pod-deletion"
POLICY, BINDING, AT_CREATION, AT_CREATION_BINDING = yaml.safe_load_all(
    (FOLDER / "pod-deletion.yaml").read_text()
)
ADMIN = {"username": "admin", "groups": ["system:masters"]}
SPEC = {"nodeName": "node-0", "resourceClaims": [{"name": "gpu"}]}
Json = dict[str, Any]


def message(
    pod: Json | None = None,
    user: Json | None = None,
    grace: int | None = 0,
    namespace: Json | None = None,
) -> str:
    """What the API server answers to a deletion of a pod that runs, changed by ``pod``; '' if it
    deletes the pod."""
    body = {
        "metadata": {"name": "train-0"},
        "spec": SPEC,
        "status": {"phase": "Running"},
    }
    options = {} if grace is None else {"gracePeriodSeconds": grace}
    names = {
        "oldObject": body | (pod or {}),
        "request": {"options": options, "userInfo": user or ADMIN},
        "namespaceObject": {"metadata": namespace or {"name": "ml"}},
    }
    return "".join(refusals(POLICY, names)) if matches(POLICY, names) else ""


def test_a_running_pod_with_claims_is_not_deleted_at_once() -> None:
    assert message().startswith(
        "pod train-0 may still use its devices on node node-0: delete it without --force"
    )
    assert BINDING["spec"] == {
        "policyName": POLICY["metadata"]["name"],
        "validationActions": ["Deny"],
    }


@pytest.mark.parametrize(
    "change",
    [
        {"grace": 30},
        {"grace": None},
        {"pod": {"spec": {**SPEC, "terminationGracePeriodSeconds": 0}}},
        {"user": {"username": "system:node:node-0", "groups": ["system:nodes"]}},
        {"user": {"username": "system:kube-controller-manager", "groups": []}},
        {
            "user": {
                "username": "system:serviceaccount:kube-system:pod-garbage-collector",
                "groups": [],
            }
        },
        {"namespace": {"name": "ml", "deletionTimestamp": "2026-01-01T00:00:00Z"}},
        {"pod": {"status": {"phase": "Succeeded"}}},
        {"pod": {"spec": {"nodeName": "node-0"}}},
        {"pod": {"spec": {"resourceClaims": [{"name": "gpu"}]}}},
        {"pod": {"metadata": {"name": "x", "annotations": {"claimctl.io/force-delete": ""}}}},
    ],
    ids=[
        *(
            "with grace",
            "by default",
            "its own grace",
            "kubelet",
            "kcm",
            "pod gc",
            "namespace ends",
            "terminal",
        ),
        *("no claims", "no node", "marked"),
    ],
)
def test_everything_else_passes(change: Json) -> None:
    assert message(**change) == ""


def test_a_claim_of_an_extended_resource_counts() -> None:
    status = {"phase": "Running", "extendedResourceClaimStatus": {"resourceClaimName": "x"}}
    assert message({"spec": {"nodeName": "node-0"}, "status": status})


@pytest.mark.parametrize(
    ("spec", "refused"),
    [
        pytest.param({**SPEC, "terminationGracePeriodSeconds": 0}, True, id="claims, and 0"),
        pytest.param({**SPEC, "terminationGracePeriodSeconds": 1}, False, id="claims, and 1"),
        pytest.param(SPEC, False, id="by default"),
        pytest.param({"terminationGracePeriodSeconds": 0}, False, id="no claims"),
        pytest.param(
            {"resourceClaims": [], "terminationGracePeriodSeconds": 0}, False, id="none in the list"
        ),
    ],
)
def test_a_pod_with_claims_and_without_a_grace_period_is_refused_when_it_is_made(
    spec: Json, refused: bool
) -> None:
    names = {"object": {"spec": spec}}
    told = refusals(AT_CREATION, names) if matches(AT_CREATION, names) else []
    assert ["Set at least 1" in each for each in told] == [True] * refused
    constraints = AT_CREATION["spec"]["matchConstraints"]
    assert constraints["resourceRules"][0]["operations"] == ["CREATE"]
    assert AT_CREATION_BINDING["spec"] == {
        "policyName": AT_CREATION["metadata"]["name"],
        "validationActions": ["Deny"],
    }
