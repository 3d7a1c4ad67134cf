"""The admission policy around the rescheduler's right to patch nodes, on a real control plane."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from claimctl_demo.story.objects import NODE
from tests.chart.sites import ASSETS, ChartSite, site

pytestmark = [
    pytest.mark.real_time(300),
    pytest.mark.skipif(
        not ASSETS,
        reason="KUBEBUILDER_ASSETS names no programs: the embedded cluster checks no types of "
        "expressions",
    ),
]
FILE = Path(__file__).parents[2] / "deploy" / "rescheduler" / "base" / "node-fence.yaml"
ACCOUNT = "system:serviceaccount:claimctl-system:claimctl-rescheduler"
POLICY = ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy")
GROUP = "rbac.authorization.k8s.io"
THEIRS = {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}
OURS = {"key": "claimctl.io/moving", "value": "claimctl-p-1", "effect": "NoSchedule"}
Json = dict[str, Any]


@asynccontextmanager
async def fenced(directory: Path) -> AsyncIterator[ChartSite]:
    """A cluster with the policy, in which RBAC lets the account do everything with nodes."""
    async with site("real", directory) as cluster:
        for document in yaml.safe_load_all(FILE.read_text()):
            await cluster.client.create(document)
        await cluster.client.create(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "ClusterRole",
                "metadata": {"name": "nodes"},
                "rules": [
                    {"apiGroups": [""], "resources": ["nodes", "nodes/status"], "verbs": ["*"]}
                ],
            }
        )
        await cluster.client.create(
            {
                "apiVersion": f"{GROUP}/v1",
                "kind": "ClusterRoleBinding",
                "metadata": {"name": "nodes"},
                "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": "nodes"},
                "subjects": [{"apiGroup": GROUP, "kind": "User", "name": ACCOUNT}],
            }
        )
        yield cluster


async def asked(
    cluster: ChartSite, method: str, path: str, body: Json | None = None, user: str = ACCOUNT
) -> tuple[int, str]:
    """The status and the message of the answer to a request about nodes, as a dry run."""
    kind = "merge-patch+json" if method == "PATCH" else "json"
    headers = {
        "content-type": f"application/{kind}",
        "accept": "application/json",
        **({"impersonate-user": user} if user else {}),
    }
    content = json.dumps(body).encode() if body is not None else b""
    answer = await cluster.transport.send(
        method, f"/api/v1/nodes{path}", (("dryRun", "All"),), headers, content
    )
    text = json.loads(b"".join([part async for part in answer.body]))
    return answer.status, str(text.get("message", ""))


async def test_the_account_writes_its_own_taints_and_nothing_else(tmp_path: Path) -> None:
    async with fenced(tmp_path) as cluster:
        name = (await cluster.client.list(NODE))[0]["metadata"]["name"]
        path = f"/{name}"
        cordon = {"spec": {"unschedulable": True}}

        async def works() -> bool:
            return (await asked(cluster, "PATCH", path, cordon))[0] == 422

        await cluster.until(works, "the policy works")
        await cluster.client.patch(NODE, "", name, {"spec": {"taints": [THEIRS]}})
        allowed = {"spec": {"taints": [THEIRS, OURS]}}
        assert (await asked(cluster, "PATCH", path, allowed))[0] == 200
        for message, body in (
            ("changes only its own taints", {"spec": {"taints": [OURS]}}),
            ("nothing of a node's spec", {"spec": {"providerID": "cloud://1"}}),
            ("nothing of a node's spec", {"spec": {"podCIDR": "10.9.0.0/24"}}),
            ("nothing of a node's spec", cordon),
            ("no labels, annotations", {"metadata": {"labels": {"a": "b"}}}),
            ("no labels, annotations", {"metadata": {"annotations": {"a": "b"}}}),
            ("no labels, annotations", {"metadata": {"finalizers": ["x.io/y"]}}),
        ):
            status, told = await asked(cluster, "PATCH", path, body)
            assert (status, message in told) == (422, True), (body, told)
            assert (await asked(cluster, "PATCH", path, body, user=""))[0] == 200, body
        made = {"metadata": {"name": "another"}}
        for method, where, sent in (
            ("PATCH", f"{path}/status", {"status": {"capacity": {"x.io/y": "1"}}}),
            ("POST", "", made),
            ("DELETE", path, None),
        ):
            status, told = await asked(cluster, method, where, sent)
            assert (status, "neither creates nor deletes nodes" in told) == (422, True), told

        await cluster.until(lambda: judged(cluster), "the server has checked the expressions")


async def judged(cluster: ChartSite) -> bool:
    """Whether the server has checked the types of the policy. It must find no fault."""
    policy = await cluster.client.get(POLICY, "", "claimctl-rescheduler-nodes")
    status = policy.get("status", {})
    assert status.get("typeChecking", {}).get("expressionWarnings", []) == []
    return bool(status.get("observedGeneration"))
