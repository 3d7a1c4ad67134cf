"""Nothing that may be secret goes into a report."""

from __future__ import annotations

from typing import Any

import pytest

from claimctl.commands.doctor.scrubbing import HIDDEN, scrubbed

SECRET = "hunter2"
CONTAINER = {
    "name": "main",
    "image": "registry.example.com/train:1",
    "command": [f"--password={SECRET}"],
    "args": [SECRET],
    "env": [{"name": "TOKEN", "value": SECRET}],
    "envFrom": [{"secretRef": {"name": SECRET}}],
    "resources": {"claims": [{"name": "gpu"}]},
}
POD_SPEC = {
    "nodeName": "n1",
    "containers": [CONTAINER],
    "initContainers": [CONTAINER],
    "volumes": [{"name": "v", "secret": {"secretName": SECRET}}],
    "resourceClaims": [{"name": "gpu", "resourceClaimName": "slice"}],
    "imagePullSecrets": [{"name": SECRET}],
}
META = {
    "name": "train",
    "namespace": "ml",
    "uid": "u",
    "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": SECRET,
        "example.com/key": SECRET,
        "claimctl.io/reserve": "*",
    },
    "managedFields": [{"manager": SECRET}],
}
STATUS = {
    "phase": "Running",
    "containerStatuses": [
        {"name": "main", "ready": True, "imageID": SECRET, "state": {"running": {}}}
    ],
    "podIP": SECRET,
}


@pytest.mark.parametrize(
    ("plural", "body"),
    [
        ("pods", {"metadata": META, "spec": POD_SPEC, "status": STATUS}),
        (
            "deployments",
            {"metadata": META, "spec": {"replicas": 1, "template": {"spec": POD_SPEC}}},
        ),
        (
            "jobs",
            {"metadata": META, "spec": {"template": {"metadata": META, "spec": POD_SPEC}}},
        ),
        ("nodes", {"metadata": META, "status": {"nodeInfo": {}, "addresses": [SECRET]}}),
        (
            "deviceclasses",
            {
                "metadata": META,
                "spec": {"config": [{"opaque": {"driver": "d", "parameters": {"key": SECRET}}}]},
            },
        ),
        (
            "resourceclaimtemplates",
            {
                "metadata": META,
                "spec": {
                    "metadata": META,
                    "parts": [{"deep": {"metadata": META}}],
                    "spec": {
                        "devices": {
                            "config": [{"opaque": {"driver": "d", "parameters": {"a": [SECRET]}}}]
                        }
                    },
                },
            },
        ),
    ],
)
def test_what_may_be_secret_is_not_in_it(plural: str, body: dict[str, Any]) -> None:
    shown = scrubbed({"apiVersion": "v1", "kind": "X", **body}, plural)
    assert SECRET not in str(shown)
    assert shown["metadata"]["annotations"] == {"claimctl.io/reserve": "*"}
    assert (shown["apiVersion"], shown["kind"]) == ("v1", "X")


def test_what_concerns_claims_is_in_it() -> None:
    body = {"metadata": META, "spec": POD_SPEC, "status": STATUS}
    shown = scrubbed(body, "pods")
    assert shown["spec"]["resourceClaims"] == POD_SPEC["resourceClaims"]
    assert shown["spec"]["nodeName"] == "n1"
    assert shown["spec"]["containers"] == [{"name": "main", "claims": [{"name": "gpu"}]}]
    assert shown["status"]["phase"] == "Running"


def test_a_claim_keeps_its_writers_and_loses_what_drivers_put_there() -> None:
    body = {
        "metadata": {**META, "managedFields": [{"manager": "claimctl"}]},
        "spec": {"devices": {"requests": [{"name": "gpu"}]}},
        "status": {"reservedFor": [], "devices": [{"driver": "d", "data": {"key": SECRET}}]},
    }
    shown = scrubbed(body, "resourceclaims")
    assert SECRET not in str(shown)
    assert shown["metadata"]["managedFields"] == [{"manager": "claimctl"}]
    assert shown["status"] == {"reservedFor": [], "devices": [{"driver": "d", "data": HIDDEN}]}
    assert shown["spec"] == body["spec"]
