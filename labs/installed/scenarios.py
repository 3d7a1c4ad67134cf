"""What becomes of claimctl's pods, and of held claims, on real nodes. One after the other."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import pytest

from claimctl_demo.story import objects
from labs.installed import site as sites
from labs.installed.site import NAMESPACE, NEXT, InstalledSite
from tests.chart.helm import CHART, Helm, needs_helm

pytestmark = pytest.mark.real_time(400)
START_SECONDS = 45.0
"""From the start of a container to the first good answer of its readiness probe, which comes every
5 s, on a machine that is busy."""
RELEASE_SECONDS = 30.0
KUBECTL = (
    shutil.which("kubectl") or shutil.which("kubectl", path=str(Path(sys.prefix) / "bin")) or ""
)
DEPLOY = Path(__file__).parents[2] / "deploy"


@pytest.fixture
@asynccontextmanager
async def site() -> AsyncIterator[InstalledSite]:
    async with sites.site() as made:
        yield made


@pytest.fixture
@asynccontextmanager
async def installed() -> AsyncIterator[InstalledSite]:
    """claimctl runs, installed by its command."""
    async with sites.site() as made:
        await made.install()
        await made.until(made.two_are_ready, "both replicas are ready")
        yield made


def seconds_between(first: str, last: str) -> float:
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


async def test_both_replicas_get_ready_and_one_leads(installed: InstalledSite) -> None:
    took = []
    for pod in await installed.controllers():
        [status] = pod["status"]["containerStatuses"]
        [ready] = [each for each in pod["status"]["conditions"] if each["type"] == "Ready"]
        took.append(
            seconds_between(status["state"]["running"]["startedAt"], ready["lastTransitionTime"])
        )
    print(f"ready after {took} s")
    assert max(took) <= START_SECONDS
    assert len({pod["spec"]["nodeName"] for pod in await installed.controllers()}) == 2
    await installed.until(lambda: leads(installed), "one leads")


async def leads(site: InstalledSite) -> bool:
    return await site.leader() is not None


async def test_its_processes_may_do_nothing(installed: InstalledSite) -> None:
    for pod in await installed.controllers():
        process = Path(f"/proc/{installed.process(pod)}")
        status = dict(
            line.split(":\t", 1)
            for line in (process / "status").read_text().splitlines()
            if ":\t" in line
        )
        assert status["Uid"].split() == ["65532"] * 4
        assert status["Gid"].split() == ["65532"] * 4
        assert (status["CapEff"], status["NoNewPrivs"], status["Seccomp"]) == ("0" * 16, "1", "2")
        [root] = [
            line.split()
            for line in (process / "mountinfo").read_text().splitlines()
            if line.split()[4] == "/"
        ]
        assert "ro" in root[5].split(",")


async def test_a_claim_stays_held_through_a_rollout_and_an_idle_time(
    installed: InstalledSite,
) -> None:
    await installed.train("idle")
    for change in ({"template": {"metadata": {"labels": {"version": "2"}}}}, {"replicas": 0}):
        await installed.client.patch(objects.DEPLOYMENT, "default", "idle", {"spec": change})
        await stays_held(installed, "idle", 6)
    print(f"free {await installed.finish('idle'):.1f} s after its Deployment was deleted")


async def stays_held(site: InstalledSite, name: str, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert await site.is_held(name)
        await asyncio.sleep(0.2)


async def test_the_budget_lets_one_replica_go_at_a_time(installed: InstalledSite) -> None:
    first, second = await installed.ready()
    assert await installed.evict(first)
    assert not await installed.evict(second)
    await installed.until(installed.two_are_ready, "the evicted replica is replaced")


async def test_an_upgrade_keeps_claims_held_and_a_replica_ready(installed: InstalledSite) -> None:
    await installed.train("kept")
    watched = asyncio.create_task(never_without(installed, "kept"))
    await installed.install(NEXT)
    await installed.until(lambda: runs(installed, NEXT), "both replicas have the new image")
    watched.cancel()
    with pytest.raises(asyncio.CancelledError):
        await watched
    await installed.until(lambda: leads(installed), "one leads")
    assert await installed.finish("kept") < RELEASE_SECONDS


async def never_without(site: InstalledSite, claim: str) -> None:
    """Fails as soon as no replica is ready, or the claim is not held."""
    while True:
        assert await site.ready()
        assert await site.is_held(claim)
        await asyncio.sleep(0.2)


async def runs(site: InstalledSite, image: str) -> bool:
    images = [pod["spec"]["containers"][0]["image"] for pod in await site.ready()]
    return images == [image, image]


async def test_a_drain_of_the_leaders_node_hands_over(installed: InstalledSite) -> None:
    await installed.train("drained")
    await installed.until(lambda: leads(installed), "one leads")
    leader = await installed.leader()
    assert leader is not None
    node = leader["spec"]["nodeName"]
    await installed.client.patch(objects.NODE, "", node, {"spec": {"unschedulable": True}})
    try:
        await drain(installed, node)
        await installed.until(lambda: leads(installed), "another one leads")
        assert await installed.is_held("drained")
        took = await installed.finish("drained")
        print(f"free {took:.1f} s after its Deployment was deleted")
        assert took < RELEASE_SECONDS
        await installed.until(installed.two_are_ready, "both run on the node that is left")
    finally:
        await installed.client.patch(objects.NODE, "", node, {"spec": {"unschedulable": None}})


async def drain(site: InstalledSite, node: str) -> None:
    """Evict claimctl's pods from a node, as kubectl drain does."""

    async def is_empty() -> bool:
        pods = [pod for pod in await site.controllers() if pod["spec"].get("nodeName") == node]
        for pod in pods:
            await site.evict(pod)
        return not pods

    await site.until(is_empty, f"{node} is drained")


async def test_a_leader_that_hangs_is_replaced_and_restarted(installed: InstalledSite) -> None:
    await installed.train("hung")
    await installed.until(lambda: leads(installed), "one leads")
    leader = await installed.leader()
    assert leader is not None
    installed.pause(leader)
    took = await installed.finish("hung")
    print(f"free {took:.1f} s after its Deployment was deleted, the leader hung")
    assert took < RELEASE_SECONDS

    async def restarted() -> bool:
        name = leader["metadata"]["name"]
        pod = await installed.client.get(objects.POD, NAMESPACE, name)
        return bool(pod["status"]["containerStatuses"][0]["restartCount"])

    await installed.until(restarted, "the liveness probe has the leader restarted")


async def test_an_uninstallation_leaves_nothing(installed: InstalledSite) -> None:
    await installed.train("left")
    pods = {pod["metadata"]["uid"] for pod in await installed.client.list(objects.POD, "default")}
    done = await installed.claimctl("uninstall", "prepare", "--stop-controller")
    assert done.code == 0, done.err
    assert not await installed.is_held("left")
    assert pods == {
        pod["metadata"]["uid"] for pod in await installed.client.list(objects.POD, "default")
    }
    await remove(installed)
    await installed.client.delete(objects.DEPLOYMENT, "default", "left")
    await installed.until(lambda: installed.is_free("left"), "Kubernetes frees the claim")


async def remove(site: InstalledSite) -> None:
    """Delete what claimctl was installed with."""
    kinds: list[tuple[str, str]] = [
        ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
        ("rbac.authorization.k8s.io/v1", "ClusterRole"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("v1", "Namespace"),
    ]
    for kind in kinds:
        for each in await site.client.list(kind):
            labels = each["metadata"].get("labels") or {}
            if labels.get("app.kubernetes.io/part-of") == "claimctl":
                await site.client.delete(kind, "", each["metadata"]["name"])
    await site.until(
        lambda: site.is_gone(("v1", "Namespace"), "", NAMESPACE), "the namespace is gone"
    )


@needs_helm
async def test_the_chart_installs_tests_and_uninstalls(site: InstalledSite, tmp_path: Path) -> None:
    helm = Helm(tmp_path, site.kubeconfig)
    where = ("-n", NAMESPACE)

    async def run(*arguments: str) -> str:
        done = await asyncio.to_thread(helm.run, *arguments, seconds=200)
        assert done.returncode == 0, done.stderr
        return done.stdout

    await run(
        "install",
        "claimctl",
        str(CHART),
        *where,
        "--create-namespace",
        "--wait",
        "--timeout",
        "90s",
    )
    await site.train("chart")
    tested = await run("test", "claimctl", *where, "--timeout", "90s")
    assert "Phase:          Succeeded" in tested
    await run("uninstall", "claimctl", *where, "--wait", "--timeout", "120s")
    assert not await site.is_held("chart")
    await site.finish("chart")
    await site.client.delete(("v1", "Namespace"), "", NAMESPACE)
    await site.until(
        lambda: site.is_gone(("v1", "Namespace"), "", NAMESPACE), "the namespace is gone"
    )


@pytest.mark.skipif(
    not KUBECTL, reason="there is no kubectl on this machine (`make helm` gets one)"
)
async def test_kustomize_installs(site: InstalledSite) -> None:
    def apply() -> str:
        command = [KUBECTL, "--kubeconfig", str(site.kubeconfig), "apply", "-k", str(DEPLOY)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        return ended.stderr if ended.returncode else ""

    assert not await asyncio.to_thread(apply)
    await site.until(site.two_are_ready, "both replicas are ready")
    await site.train("kustomized")
    await site.finish("kustomized")
    await remove(site)
