"""Playing a user's own manifests: a report for each claim, or refusals in plain words."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.commands import Answer, claimctl

DEVICES = {
    "devices": {
        "requests": [
            {
                "name": "tpu",
                "exactly": {
                    "deviceClassName": "tpu.example.org",
                    "selectors": [
                        {"cel": {"expression": "device.attributes['tpu.example.org'].gen >= 4"}}
                    ],
                },
            }
        ]
    }
}


def obj(kind: str, name: str, spec: Any, version: str = "resource.k8s.io/v1", **meta: Any) -> Any:
    metadata = {"name": name, "namespace": "ml", **meta}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def pod_spec(**names: str) -> dict[str, Any]:
    return {
        "containers": [
            {"name": "c", "image": "x", "resources": {"claims": [{"name": "tpu"}]}},
        ],
        "resourceClaims": [{"name": "tpu", **names}],
    }


def deployment(claim: str) -> Any:
    spec = {
        "replicas": 3,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": pod_spec(resourceClaimName=claim),
        },
    }
    return obj("Deployment", "train", spec, "apps/v1", annotations={"claimctl.io/reserve": "*"})


def job(claim: str) -> Any:
    template = {"spec": {**pod_spec(resourceClaimName=claim), "restartPolicy": "Never"}}
    return obj("Job", "batch", {"completions": 2, "template": template}, "batch/v1")


def reservation(claim: str, **spec: Any) -> Any:
    body = {
        "resourceClaimName": claim,
        "workloadRef": {"apiGroup": "batch", "kind": "Job", "name": "batch"},
        **spec,
    }
    return obj("ClaimReservation", claim, body, "claimctl.io/v1alpha1")


def played(tmp_path: Path, documents: list[Any], *arguments: str) -> Answer:
    file = tmp_path / "mine.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    return asyncio.run(claimctl("demo", "-f", str(file), *arguments))


def test_each_claims_life_is_told(tmp_path: Path) -> None:
    documents = [
        obj("ResourceClaim", "shared", DEVICES),
        obj("ResourceClaimTemplate", "template", {"spec": DEVICES}),
        deployment("shared"),
        job("scratch"),
        reservation("scratch", resourceClaimTemplateName="template"),
        obj("Pod", "alone", pod_spec(resourceClaimTemplateName="template"), "v1"),
    ]
    answer = played(tmp_path, documents, "--reservation-mode", "hold", "--json")
    assert answer.code == 0
    lives = {claim["name"]: claim for claim in answer.document["claims"]}
    (generated,) = (name for name in lives if name.startswith("alone-tpu-"))
    assert lives[generated]["pods"] == ["alone"]
    assert lives[generated]["releasedBy"] == "kube-controller-manager"
    assert lives["scratch"]["workloads"] == ["jobs/batch"]
    assert len(lives["shared"]["pods"]) == 3
    assert (lives["shared"]["workloads"], lives["shared"]["whileIdle"]) == (
        ["deployments/train"],
        "kept",
    )
    assert [life["allocated"] for life in lives.values()] == [False, False, False]
    assert (answer.document["pendingPods"], answer.document["violations"]) == ([], 0)


def test_pod_groups_of_their_own_are_played_in_their_dialect(tmp_path: Path) -> None:
    shared = [{"name": "tpu", "resourceClaimName": "shared"}]
    group = obj(
        "PodGroup",
        "gang",
        {"schedulingPolicy": {"basic": {}}, "resourceClaims": shared},
        "scheduling.k8s.io/v1alpha2",
    )
    train = deployment("shared")
    train["spec"]["template"]["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
    documents = [obj("ResourceClaim", "shared", DEVICES), group, train]
    answer = played(tmp_path, documents, "--reservation-mode", "podgroup", "--json")
    assert answer.code == 0
    (life,) = answer.document["claims"]
    assert sorted(life["workloads"]) == ["deployments/train", "podgroups/gang"]
    assert (life["allocated"], life["whileIdle"]) == (False, "kept")
    assert (answer.document["pendingPods"], answer.document["violations"]) == ([], 0)


def test_people_get_a_line_per_claim(tmp_path: Path) -> None:
    documents = [obj("ResourceClaim", "shared", DEVICES), deployment("shared")]
    answer = played(tmp_path, documents)
    assert answer.code == 0
    last = answer.out.splitlines()[-1]
    assert last.startswith("claim ml/shared: node-")
    assert "held by 3 pods and deployments/train, kept while scaled to zero; released by" in last


def test_native_says_why_a_claim_of_a_user_is_not_reserved(tmp_path: Path) -> None:
    documents = [obj("ResourceClaim", "shared", DEVICES), deployment("shared")]
    answer = played(tmp_path, documents, "--reservation-mode", "native")
    assert answer.code == 0
    last = answer.out.splitlines()[-1]
    assert "held by 3 pods, not reserved (ClaimNotCreatedForWorkload); released by" in last


def test_pods_that_find_no_device_are_named_with_the_schedulers_reason(tmp_path: Path) -> None:
    impossible = yaml.safe_load(yaml.safe_dump(DEVICES))
    selector = impossible["devices"]["requests"][0]["exactly"]["selectors"][0]
    selector["cel"]["expression"] = "device.attributes['tpu.example.org'].gen.isOdd()"
    documents = [
        obj("ResourceClaim", "odd", impossible),
        obj("Pod", "waits", pod_spec(resourceClaimName="odd"), "v1"),
    ]
    answer = played(tmp_path, documents, "--json")
    assert answer.code == 0
    (line,) = answer.document["pendingPods"]
    assert line.startswith("pod ml/waits: ")
    assert [claim["devices"] for claim in answer.document["claims"]] == [[]]


def test_what_the_server_refuses_is_named_by_file_document_and_field(tmp_path: Path) -> None:
    gone = {"resourceClaims": [{"name": "tpu", "source": {"resourceClaimName": "x"}}]}
    old = obj("Pod", "old", {**pod_spec(), **gone}, "v1")
    group = obj("PodGroup", "gang", {}, "scheduling.k8s.io/v1alpha2")
    answer = played(tmp_path, [old, group, obj("Pod", "no", {}, "v1", namespace="Not A Name")])
    assert (answer.code, answer.out.count("claim ")) == (2, 0)
    lines = answer.err.splitlines()
    file = f"error: {tmp_path / 'mine.yaml'}"
    starts = [
        f"{file}, document 3 (Pod no): metadata.namespace: ",
        f"{file}, document 1 (Pod old): spec.resourceClaims[0]: ",
        f"{file}, document 2 (PodGroup gang): scheduling.k8s.io/v1alpha2 PodGroup is not served",
    ]
    assert [line.startswith(start) for line, start in zip(lines, starts, strict=True)] == [True] * 3
    assert "mode podgroup" in lines[2]


@pytest.mark.parametrize("text", ["", "a: [", "hello"], ids=["empty", "broken", "a word"])
def test_files_that_cannot_be_read_start_nothing(text: str) -> None:
    answer = asyncio.run(claimctl("demo", "-f", "-", stdin=text))
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("error: standard input")
    assert answer.err.count("\n") == 1
