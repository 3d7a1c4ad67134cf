"""The component single-namespace: the controller holds, and may write, in one namespace only."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from claimctl.commands.install.apply import Installer
from claimctl.controller.caches.kinds import AGGREGATE, VERBS
from claimctl.kube.clock import LoopClock
from claimctl_demo.story import objects
from claimctl_demo.story.objects import RESERVATION, Workload
from tests.chart.containers import IMAGE
from tests.chart.sites import CLUSTERS, ChartSite, site
from tests.e2e.kinds import GANGS, definition

ROOT = Path(__file__).parents[2]
OTHER = Workload("other", "train", "slice", 1, reserve=True)
Json = dict[str, Any]
pytestmark = [
    pytest.mark.real_time(600),
    pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed"),
]


def rendered(folder: Path) -> list[Json]:
    """The base with the component, for the namespace ``ml``, as the component's head says."""
    copied = shutil.copytree(ROOT / "deploy", folder / "claimctl" / "deploy").parent
    for name in ("crds", "rbac"):
        shutil.copytree(ROOT / name, copied / name)
    head = (ROOT / "deploy/components/single-namespace/kustomization.yaml").read_text()
    lines = [line.removeprefix("#   ") for line in head.splitlines() if line.startswith("#   ")]
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": ["claimctl/deploy"],
        "components": ["claimctl/deploy/components/single-namespace"],
        "images": [{"name": "claimctl", "newName": IMAGE, "newTag": "1"}],
        **yaml.safe_load("\n".join(lines)),
    }
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    done = subprocess.run(
        ["kubectl", "kustomize", str(folder)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    return list(yaml.safe_load_all(done.stdout))


def test_the_rights_to_write_are_bound_in_the_namespace_only(tmp_path: Path) -> None:
    found = rendered(tmp_path)
    roles = {
        each["metadata"]["name"]: each["rules"] for each in found if each["kind"] == "ClusterRole"
    }
    everywhere = {each["roleRef"]["name"] for each in found if each["kind"] == "ClusterRoleBinding"}
    # the second one collects the roles of workload kinds, which only read
    assert everywhere == {"claimctl-controller-reader", "claimctl-controller-workloads"}
    assert not roles["claimctl-controller-workloads"]
    for rule in roles["claimctl-controller-reader"]:
        assert set(rule["verbs"]) <= {"list", "watch"} or rule == {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceclaims/binding"],
            "verbs": ["patch"],
        }
    within = {
        (each["metadata"]["namespace"], each["roleRef"]["name"])
        for each in found
        if each["kind"] == "RoleBinding"
    }
    assert within == {
        ("claimctl-system", "claimctl-controller"),
        ("ml", "claimctl-controller"),
        ("ml", "claimctl-templates"),
    }


@pytest.mark.parametrize("kind", CLUSTERS)
async def test_it_holds_in_its_namespace_and_leaves_others_alone(kind: str, tmp_path: Path) -> None:
    documents = rendered(tmp_path)
    async with site(kind, tmp_path) as cluster:
        await _prepare(cluster, documents)
        await cluster.client.create(objects.namespace("other"))
        await cluster.client.create(objects.claim("other", OTHER.claim, cluster.resource_api))
        await cluster.client.create(objects.deployment(OTHER))
        await cluster.until(lambda: _runs(cluster), "the other workload runs")
        await cluster.train()
        await cluster.until(cluster.held, "the claim is held")
        assert [
            each["metadata"]["namespace"] for each in await cluster.client.list(RESERVATION)
        ] == ["ml"]
        claim = (cluster.resource_api, "ResourceClaim")
        found = await cluster.client.get(claim, "other", OTHER.claim)
        assert {each["resource"] for each in found["status"]["reservedFor"]} == {"pods"}
    logs = "".join(each.output for each in cluster.containers.ended)
    assert '"message": "leading"' in logs
    assert "not permitted" not in logs
    assert "orbidden" not in logs


async def _prepare(cluster: ChartSite, documents: list[Json]) -> None:
    await cluster.client.create(objects.namespace("ml"))
    for document in documents:
        if document["kind"] == "Namespace":
            # the embedded cluster does not emulate Pod Security
            document["metadata"]["labels"] = {}
    await Installer(cluster.client.transport, LoopClock()).apply(documents)


async def _runs(cluster: ChartSite) -> bool:
    pods = await cluster.client.list(objects.POD, "other")
    return any(pod["status"].get("phase") == "Running" for pod in pods)


@pytest.mark.parametrize("kind", CLUSTERS)
async def test_it_tells_once_what_it_lacks_and_holds_what_it_cannot_judge(
    kind: str, tmp_path: Path
) -> None:
    documents = rendered(tmp_path)
    async with site(kind, tmp_path) as cluster:
        await _prepare(cluster, documents)
        client = cluster.client
        await client.create({**_CRD, **definition(GANGS)})
        role = await client.create(_READER)
        await client.create(_RULE)
        await cluster.until(lambda: _may_read(cluster), "the controller may read Gangs")
        await cluster.train()
        await cluster.until(cluster.held, "the claim of the Deployment is held")
        await client.create(objects.claim("ml", "shared", cluster.resource_api))
        gang = await client.create(_GANG)
        await client.create(_pod_of(gang))
        await cluster.until(lambda: _listed(cluster, "gangs"), "the claim of the Gang is held")

        await client.delete(_ROLE, "", role["metadata"]["name"])
        await cluster.until(lambda: _may_not_read(cluster), "the right is gone")
        await client.patch_status(_KIND, "ml", "train", {"status": {"phase": "Done"}})
        # the controller looks at its rights when a rule changes
        await client.patch(
            _RULES, "", _RULE["metadata"]["name"], {"spec": {"pods": "self.spec.size"}}
        )
        await cluster.until(lambda: _is_unknown(cluster), "the state of the Gang is unknown")
        await client.delete(objects.POD, "ml", "gang-0")
        await cluster.until(lambda: cluster.gone(objects.POD, "ml", "gang-0"), "the pod is gone")
        victim = next(
            pod["metadata"]["name"]
            for pod in await client.list(objects.POD, "ml")
            if pod["metadata"]["name"].startswith("train-")
        )
        await client.delete(objects.POD, "ml", victim, {"gracePeriodSeconds": 0})
        await cluster.until(lambda: _has_ghost(cluster), "the pod may still use the device")
        assert await _listed(cluster, "gangs")
        assert await cluster.held()
    outputs = [each.output for each in cluster.containers.ended]
    statuses, leases = "statuses of WorkloadKinds are not written", "signs of life of nodes"
    for line in (statuses, leases):
        # once by each replica that leads
        assert max(output.count(line) for output in outputs) == 1, outputs
    assert any("the controller may not get, list, watch gangs." in output for output in outputs)


_CRD = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
_ROLE = ("rbac.authorization.k8s.io/v1", "ClusterRole")
_RULES = ("claimctl.io/v1alpha1", "WorkloadKind")
_KIND = (GANGS.api_version, GANGS.kind)
_READER: Json = {
    "apiVersion": _ROLE[0],
    "kind": _ROLE[1],
    "metadata": {"name": "claimctl-workloads-gangs", "labels": {AGGREGATE: "true"}},
    "rules": [{"apiGroups": [GANGS.group], "resources": [GANGS.plural], "verbs": list(VERBS)}],
}
_RULE: Json = {
    "apiVersion": _RULES[0],
    "kind": _RULES[1],
    "metadata": {"name": f"{GANGS.plural}.{GANGS.group}"},
    "spec": {
        "group": GANGS.group,
        "kind": GANGS.kind,
        "ended": "has(self.status.phase) && self.status.phase == 'Done'",
    },
}
_GANG: Json = {
    "apiVersion": _KIND[0],
    "kind": _KIND[1],
    "metadata": {
        "namespace": "ml",
        "name": "train",
        "annotations": {"claimctl.io/reserve": "*"},
    },
    "spec": {},
}


def _pod_of(gang: Json) -> Json:
    template = objects.deployment(Workload("ml", "gang", "shared"))["spec"]["template"]
    meta = {"namespace": "ml", "name": "gang-0"}
    owner = {"apiVersion": _KIND[0], "kind": _KIND[1], "name": "train", "controller": True}
    references = [{**owner, "uid": gang["metadata"]["uid"]}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**meta, "ownerReferences": references},
        "spec": template["spec"],
    }


async def _may_read(cluster: ChartSite) -> bool:
    account = "system:serviceaccount:claimctl-system:claimctl-controller"
    wanted = {"verb": "list", "group": GANGS.group, "resource": GANGS.plural}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
    spec = {"user": account, "resourceAttributes": wanted}
    answer = await cluster.client.create({**review, "metadata": {}, "spec": spec})
    return bool(answer["status"]["allowed"])


async def _may_not_read(cluster: ChartSite) -> bool:
    return not await _may_read(cluster)


async def _listed(cluster: ChartSite, resource: str) -> bool:
    claim = await cluster.client.get((cluster.resource_api, "ResourceClaim"), "ml", "shared")
    listed = claim.get("status", {}).get("reservedFor") or ()
    return resource in {each["resource"] for each in listed}


async def _is_unknown(cluster: ChartSite) -> bool:
    reasons = {
        condition["reason"]
        for made in await cluster.client.list(RESERVATION, "ml")
        for condition in made.get("status", {}).get("conditions", ())
    }
    return "WorkloadStateUnknown" in reasons


async def _has_ghost(cluster: ChartSite) -> bool:
    made = await cluster.client.list(RESERVATION, "ml")
    return any(each.get("status", {}).get("forceDeletedPods") for each in made)
