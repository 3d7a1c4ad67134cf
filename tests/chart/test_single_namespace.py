"""The component single-namespace: the controller holds, and may write, in one namespace only."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from claimctl.commands.install.apply import Installer
from claimctl.kube.clock import LoopClock
from claimctl_demo.story import objects
from claimctl_demo.story.objects import RESERVATION, Workload
from tests.chart.containers import IMAGE
from tests.chart.sites import CLUSTERS, Site, site

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


async def _prepare(cluster: Site, documents: list[Json]) -> None:
    await cluster.client.create(objects.namespace("ml"))
    for document in documents:
        if document["kind"] == "Namespace":
            # the embedded cluster does not emulate Pod Security
            document["metadata"]["labels"] = {}
    await Installer(cluster.client.transport, LoopClock()).apply(documents)


async def _runs(cluster: Site) -> bool:
    pods = await cluster.client.list(objects.POD, "other")
    return any(pod["status"].get("phase") == "Running" for pod in pods)
