"""The policy claimctl-avoidance changes pods as it does on real servers (recorded on 1.36.2)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from kube_in_process.api_server import api_server
from kube_in_process.clock import EPOCH, LoopClock
from kube_in_process.options import ClusterOptions, Preset

from tests.support.crds import definitions

FILE = Path(__file__).parents[3] / "deploy/rescheduler/avoidance/avoidance.yaml"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
AWAY = [
    {"key": "metadata.name", "operator": "NotIn", "values": [node]} for node in ("node-0", "node-1")
]
AVOIDANCES = [
    {"ownerUID": "avoids", "nodes": ["node-0", "node-1"]},
    {"ownerUID": "braked", "braked": True},
    {"ownerUID": "both", "nodes": ["node-9"], "braked": True},
]


class MutatingServer:
    def __init__(self, version: tuple[int, int] = (1, 36)) -> None:
        options = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=version)
        self._handler = api_server(options, LoopClock(EPOCH))

    async def sent(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        kind = {"PATCH": "application/merge-patch+json"}.get(method, "application/json")
        data = json.dumps(body).encode() if body is not None else None
        found = await self._handler.send(method, path, [], {"content-type": kind}, data)
        whole = b"".join([part async for part in found.body])
        return found.status, json.loads(whole)

    async def installed(self) -> MutatingServer:
        """With the CRDs, the policy, and a record."""
        for each in definitions():
            path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
            assert (await self.sent("POST", path, each))[0] == 201
        for each in yaml.safe_load_all(FILE.read_text(encoding="utf-8")):
            plural = {"MutatingAdmissionPolicy": "mutatingadmissionpolicies"}.get(
                each["kind"], "mutatingadmissionpolicybindings"
            )
            status, answer = await self.sent("POST", f"{ADMISSION}/{plural}", each)
            assert status == 201, answer
        await self.sent("POST", "/api/v1/namespaces", {"metadata": {"name": "default"}})
        records = "/apis/claimctl.io/v1alpha1/reschedulerecords"
        body = {
            "apiVersion": "claimctl.io/v1alpha1",
            "kind": "RescheduleRecord",
            "metadata": {"name": "claimctl"},
        }
        assert (await self.sent("POST", records, body))[0] == 201
        patch = {"status": {"avoidances": AVOIDANCES}}
        assert (await self.sent("PATCH", f"{records}/claimctl/status", patch))[0] == 200
        return self

    async def pod(self, owner: str, /, **spec: Any) -> dict[str, Any]:
        meta: dict[str, Any] = {"name": "p"}
        if owner:
            ref = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": owner}
            meta["ownerReferences"] = [{**ref, "controller": True}]
        body = {"metadata": meta, "spec": {"containers": [{"name": "c", "image": "x"}], **spec}}
        status, made = await self.sent("POST", "/api/v1/namespaces/default/pods", body)
        assert status == 201, made
        return made


def terms(pod: dict[str, Any]) -> Any:
    return pod["spec"]["affinity"]["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]


async def test_a_pod_without_affinity_gets_one() -> None:
    pod = await (await MutatingServer().installed()).pod("avoids")
    assert pod["spec"]["affinity"] == {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": AWAY}]}}
    }
    assert pod["metadata"]["annotations"] == {"claimctl.io/avoids": "node-0,node-1"}
    assert "schedulingGates" not in pod["spec"]


async def test_each_term_gets_the_nodes_and_an_empty_term_still_matches_nothing() -> None:
    wanted = [{"key": "a", "operator": "Exists"}]
    named = [{"key": "metadata.name", "operator": "In", "values": ["q"]}]
    given = [{"matchExpressions": wanted}, {"matchFields": named}, {}]
    preferred = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 1, "preference": {"matchExpressions": wanted}}
        ]
    }
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": given}, **preferred}}
    pod = await (await MutatingServer().installed()).pod("avoids", affinity=affinity)
    found = [{k: v for k, v in each.items() if v} for each in terms(pod)]
    assert found == [
        {"matchExpressions": wanted, "matchFields": AWAY},
        {"matchFields": [*named, *AWAY]},
        {},
    ]
    assert pod["spec"]["affinity"]["nodeAffinity"].items() >= preferred.items()


@pytest.mark.parametrize(
    ("owner", "given", "gates"),
    [
        ("braked", None, ["claimctl.io/brake"]),
        ("both", ["example.com/other"], ["example.com/other", "claimctl.io/brake"]),
        ("avoids", ["example.com/other"], ["example.com/other"]),
    ],
)
async def test_a_braked_pod_waits(owner: str, given: list[str] | None, gates: list[str]) -> None:
    spec = {"schedulingGates": [{"name": each} for each in given]} if given else {}
    pod = await (await MutatingServer().installed()).pod(owner, **spec)
    assert [each["name"] for each in pod["spec"]["schedulingGates"]] == gates
    assert ("affinity" in pod["spec"]) == (owner != "braked")


@pytest.mark.parametrize("owner", ["", "someone-else"])
async def test_other_pods_are_left_alone(owner: str) -> None:
    pod = await (await MutatingServer().installed()).pod(owner)
    assert "affinity" not in pod["spec"]
    assert "annotations" not in pod["metadata"]


async def test_a_pod_that_has_a_node_is_left_alone() -> None:
    pod = await (await MutatingServer().installed()).pod("braked", nodeName="node-0")
    assert "annotations" not in pod["metadata"]


async def test_before_1_36_the_policy_is_not_served() -> None:
    status, _ = await MutatingServer((1, 34)).sent("GET", f"{ADMISSION}/mutatingadmissionpolicies")
    assert status == 404
