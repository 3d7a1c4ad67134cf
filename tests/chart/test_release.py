"""The life of a release: install, test, upgrade, uninstall with running holds, and refusals."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from claimctl.cli.main import run as claimctl
from claimctl_demo.story import objects
from tests.chart.containers import IMAGE
from tests.chart.helm import CHART, Helm, needs_helm
from tests.chart.sites import CLUSTERS, TRAIN, ChartSite, site

pytestmark = [needs_helm, pytest.mark.real_time(600)]
WHERE = ("-n", "gpus")
RUN_SECONDS = "podAnnotations.kube-in-process/run-seconds"
SETTINGS = (
    *("--set", f"image.repository={IMAGE}"),
    # the process of a hook decides when its pod ends, not the stand-in for kubelets
    *("--set-string", f"{RUN_SECONDS}=3600"),
    *("--set", "args={--settle-seconds=1,--binding-seconds=5}"),
)
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
LEASE = ("coordination.k8s.io/v1", "Lease")
DEPLOYMENT = ("apps/v1", "Deployment")
RESERVATIONS = "claimreservations.claimctl.io"
KINDS = [
    CRD,
    DEPLOYMENT,
    ("batch/v1", "Job"),
    ("v1", "Pod"),
    ("v1", "Service"),
    ("v1", "ServiceAccount"),
    ("policy/v1", "PodDisruptionBudget"),
    *(
        ("rbac.authorization.k8s.io/v1", kind)
        for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    ),
]


class Release:
    """helm on a cluster; each call is a process in a thread, while the cluster goes on."""

    def __init__(self, helm: Helm, cluster: ChartSite) -> None:
        self.helm, self.cluster = helm, cluster

    async def run(self, *arguments: str) -> CompletedProcess[str]:
        return await asyncio.to_thread(self.helm.run, *arguments, seconds=150)

    async def __call__(self, *arguments: str) -> str:
        done = await self.run(*arguments)
        told = [one.output for one in self.cluster.containers.ended]
        assert done.returncode == 0, f"helm {' '.join(arguments)}: {done.stderr} {told}"
        return done.stdout

    async def install(self, *more: str) -> None:
        chart = ("install", "claimctl", str(CHART), *WHERE, "--create-namespace")
        await self(*chart, *SETTINGS, *more, "--wait", "--timeout", "60s")

    async def held(self) -> None:
        await self.cluster.train()
        await self.cluster.until(self.cluster.held, "the claim is held")

    async def left(self) -> list[str]:
        """The objects of claimctl that are still there."""
        found = []
        for kind in KINDS:
            for each in await self.cluster.client.list(kind):
                labels = each["metadata"].get("labels") or {}
                if labels.get("app.kubernetes.io/part-of") == "claimctl":
                    found.append(f"{kind[1]} {each['metadata']['name']}")
        return found


@pytest.fixture(params=CLUSTERS)
@asynccontextmanager
async def release(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Release]:
    async with site(request.param, tmp_path) as cluster:
        helm = Helm(tmp_path, cluster.kubeconfig)
        yield Release(helm, cluster)


async def test_from_install_to_uninstall_with_running_holds(release: Release) -> None:
    cluster, began = release.cluster, time.monotonic()
    await release.install()
    await release.held()
    print(f"from helm install to the first hold: {time.monotonic() - began:.1f} s")
    pods = await cluster.pods()
    tested = await release("test", "claimctl", *WHERE, "--timeout", "60s")
    assert "Phase:          Succeeded" in tested
    await release(
        *("upgrade", "claimctl", str(CHART), *WHERE, *SETTINGS),
        *("--set", "replicas=1", "--wait", "--timeout", "60s"),
        *("--set", "reschedule.enabled=true,reschedule.mode=Deployment,reschedule.dryRun=false"),
        *("--set", "reschedule.interval=1s,reschedule.nodeFence=true"),
    )
    await cluster.until(lambda: rescheduled(cluster), "the rescheduler has made a run")
    deployment = await cluster.client.get(DEPLOYMENT, "gpus", "claimctl-controller")
    assert (deployment["spec"]["replicas"], await cluster.held()) == (1, True)
    if cluster.resource_api != objects.CLAIM[0]:
        pytest.skip("before 1.34 a withdrawn hold stays until the pods are gone: no uninstall yet")
    began = time.monotonic()
    await release("uninstall", "claimctl", *WHERE, "--wait", "--timeout", "120s")
    print(f"helm uninstall: {time.monotonic() - began:.1f} s")
    await cluster.until(lambda: nothing_left(release), f"left: {await release.left()}")
    assert pods == await cluster.pods()
    assert {each["resource"] for each in await cluster.listed()} == {"pods"}
    runs = [one.output for one in cluster.containers.ended if one.arguments[0] == "reschedule"]
    assert runs
    for output in runs:
        assert '"event": "run ended"' in output or '"message": "run ended"' in output, output
        assert "orbidden" not in output, output
    train = await cluster.client.get(DEPLOYMENT, "ml", TRAIN.name)
    assert "claimctl.io/" not in str(train["metadata"].get("annotations"))
    verified = ["uninstall", "verify", "--kubeconfig", str(cluster.kubeconfig)]
    assert await asyncio.to_thread(claimctl, verified) == 0


async def rescheduled(cluster: ChartSite) -> bool:
    """Whether the rescheduler has its Lease, and so makes a run."""
    return not await cluster.gone(LEASE, "gpus", "claimctl-rescheduler")


async def nothing_left(release: Release) -> bool:
    return not await release.left()


async def test_what_cannot_work_is_refused_with_the_way_out(release: Release) -> None:
    await release.install()
    chart = (str(CHART), *SETTINGS)
    second = await release.run("install", "other", *chart, "-n", "other", "--create-namespace")
    assert second.returncode == 1
    assert (
        "claimctl is installed in this cluster already, by the release claimctl in namespace gpus, "
        "and a cluster has one claimctl: use helm upgrade claimctl -n gpus"
    ) in second.stderr
    newer = {"metadata": {"labels": {"app.kubernetes.io/version": "99.1.0"}}}
    await release.cluster.client.patch(CRD, "", RESERVATIONS, newer)
    older = await release.run("upgrade", "claimctl", *chart, *WHERE)
    assert older.returncode == 1
    assert "comes from claimctl 99.1.0, and this chart is of claimctl 0." in older.stderr
    assert "set crds.enabled=false" in older.stderr
    operator = await release.run(
        *("upgrade", "claimctl", *chart, *WHERE),
        *("--set", "monitoring.enabled=true,crds.enabled=false"),
    )
    assert operator.returncode == 1
    assert "Install the Prometheus Operator first" in operator.stderr


async def test_an_installation_without_helm_is_not_taken_over(release: Release) -> None:
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "claimctl-controller"},
        "rules": [],
    }
    await release.cluster.client.create(role)
    done = await release.run(
        "install", "claimctl", str(CHART), *WHERE, "--create-namespace", *SETTINGS
    )
    assert done.returncode == 1
    assert "claimctl is installed in this cluster already, and not by Helm" in done.stderr
