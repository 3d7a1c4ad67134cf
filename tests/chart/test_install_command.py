"""``claimctl install`` on the embedded cluster, and with its components on a real one."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from claimctl.kube.errors import Invalid
from claimctl.wire.base import encode
from claimctl.wire.reservations import RESERVE_ANNOTATION
from claimctl_demo.story import objects
from tests.chart.containers import IMAGE
from tests.chart.sites import ASSETS, CLUSTERS, TRAIN, ChartSite, site
from tests.e2e.commands import CommandAnswer, claimctl

pytestmark = pytest.mark.real_time(300)
needs_real = pytest.mark.skipif(
    not ASSETS,
    reason="KUBEBUILDER_ASSETS names no programs: the embedded cluster emulates no network "
    "policies, and checks no types of expressions",
)
WITH_IMAGE = ("--image", f"{IMAGE}:1")


@pytest.fixture
@asynccontextmanager
async def cluster(tmp_path: Path, kind: str) -> AsyncIterator[ChartSite]:
    async with site(kind, tmp_path) as made:
        yield made


@pytest.fixture
def kind() -> str:
    return "real"


async def install(cluster: ChartSite, *arguments: str) -> CommandAnswer:
    return await claimctl("install", *arguments, "--kubeconfig", str(cluster.kubeconfig))


@pytest.mark.parametrize("kind", CLUSTERS)
async def test_it_installs_waits_repeats_and_holds(cluster: ChartSite) -> None:
    looked = await install(cluster, *WITH_IMAGE, "--dry-run")
    assert (looked.code, looked.err) == (0, "")
    assert "Deployment claimctl-system/claimctl-controller created (dry run)" in looked.out
    made = await install(cluster, *WITH_IMAGE, "--wait", "--timeout", "60")
    assert (made.code, made.err.splitlines()[-1:]) == (
        0,
        ["claimctl is installed, and a controller acts"],
    )
    again = await install(cluster, *WITH_IMAGE)
    assert (again.code, again.err) == (0, "")
    assert {line.rpartition(" ")[2] for line in again.out.splitlines()} == {"unchanged"}
    await cluster.train()
    await cluster.until(cluster.held, "the claim is held")


@needs_real
async def test_what_cannot_work_is_one_line(cluster: ChartSite) -> None:
    assert (await install(cluster, *WITH_IMAGE)).code == 0
    second = await install(cluster, *WITH_IMAGE, "-n", "gpus")
    assert (second.code, second.err.count("\n")) == (1, 1)
    assert "claimctl is installed in namespace claimctl-system already" in second.err
    operator = await install(cluster, "--component", "monitoring")
    assert (operator.code, operator.err.count("\n")) == (1, 1)
    assert "is not served by this cluster: install the Prometheus Operator first" in operator.err
    stranger = await install(cluster, "--component", "network-policy", "--as", "stranger")
    assert (stranger.code, stranger.err.count("\n")) == (1, 1)
    assert "cannot read NetworkPolicy" in stranger.err
    assert (await install(cluster, "--component", "network-policy")).code == 0


@needs_real
async def test_the_rescheduler_runs_beside_the_controller(
    cluster: ChartSite, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: descheduler/v1alpha2\nkind: DeschedulerPolicy\nprofiles:\n- name: spread\n"
        "  plugins: {balance: {enabled: [RemoveDuplicates]}}\n"
    )
    flags = (*WITH_IMAGE, "--reschedule", str(policy), "--reschedule-schedule", "2s")
    made = await install(cluster, *flags, "--wait", "--timeout", "60")
    assert (made.code, made.err.splitlines()[-1:]) == (
        0,
        ["claimctl is installed, and a controller acts"],
    )
    again = await install(cluster, *flags)
    assert {line.rpartition(" ")[2] for line in again.out.splitlines()} == {"unchanged"}

    async def leads() -> bool:
        lease = ("coordination.k8s.io/v1", "Lease")
        return not await cluster.gone(lease, "claimctl-system", "claimctl-rescheduler")

    await cluster.until(leads, "the rescheduler has its Lease")
    acting = await install(cluster, *flags, "--evict")
    changed = [line for line in acting.out.splitlines() if not line.endswith(" unchanged")]
    assert changed == ["Deployment claimctl-system/claimctl-rescheduler changed"]


@needs_real
async def test_the_server_warns_of_a_wrong_annotation(cluster: ChartSite) -> None:
    installed = await install(cluster, "--component", "admission-policy")
    assert (installed.code, installed.err) == (0, "")

    async def warned() -> bool:
        return "does not name" in await warnings(cluster, {RESERVE_ANNOTATION: "other"})

    await cluster.until(warned, "a warning about the claim that the template does not name")
    told = await warnings(cluster, {RESERVE_ANNOTATION: ""})
    assert "claimctl.io/reserve names no claim" in told
    told = await warnings(
        cluster,
        {RESERVE_ANNOTATION: "*", "claimctl.io/retention-policy": "Ever"},
    )
    assert "must be WhileRunning or Persistent" in told
    told = await warnings(
        cluster, {RESERVE_ANNOTATION: "*", "claimctl.io/idle-timeout-seconds": "2147483648"}
    )
    assert "must be a whole number of seconds" in told
    assert "unknown annotation" in await warnings(cluster, {"claimctl.io/reserved": "*"})
    assert "must be inject" in await warnings(cluster, {"claimctl.io/pod-group": "yes"})
    right = {RESERVE_ANNOTATION: TRAIN.claim, "claimctl.io/idle-timeout-seconds": "60"}
    assert await warnings(cluster, right) == ""
    assert await warnings(cluster, {}) == ""


@needs_real
async def test_a_pod_that_may_use_a_device_is_not_deleted_at_once(cluster: ChartSite) -> None:
    assert (await install(cluster, "--component", "pod-deletion")).code == 0
    await cluster.client.create(objects.namespace("ml"))
    for name, claim, marks in (
        ("uses", "gpu", {}),
        ("marked", "gpu", {"claimctl.io/force-delete": ""}),
        ("plain", "", {}),
    ):
        body = objects.pod_on("ml", "node-0", 0)
        body["metadata"] |= {"name": name, "annotations": marks}
        if claim:
            body["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
        await cluster.client.create(body)

    async def delete(name: str, **options: object) -> str:
        try:
            await cluster.client.delete(objects.POD, "ml", name, options)
        except Invalid as refused:
            return str(refused)
        return ""

    async def refused() -> bool:
        return "may still use its devices on node node-0" in await delete(
            "uses", gracePeriodSeconds=0, dryRun=["All"]
        )

    await cluster.until(refused, "the policy is in force")
    assert not await delete("uses", dryRun=["All"])
    assert not await delete("marked", gracePeriodSeconds=0)
    assert not await delete("plain", gracePeriodSeconds=0)
    # the kubelet of the node ends it, and the namespace takes its pods along
    await cluster.client.delete(objects.NAMESPACE, "", "ml")
    await cluster.until(lambda: cluster.gone(objects.NAMESPACE, "", "ml"), "the namespace is gone")


async def warnings(cluster: ChartSite, annotations: Mapping[str, str]) -> str:
    """What the server warns of when a Deployment with these annotations is created (dry run)."""
    body = objects.deployment(TRAIN)
    body["metadata"] |= {"namespace": "default", "annotations": dict(annotations)}
    answer = await cluster.transport.send(
        "POST",
        "/apis/apps/v1/namespaces/default/deployments",
        (("dryRun", "All"),),
        {"content-type": "application/json", "accept": "application/json"},
        encode(body),
    )
    text = b"".join([part async for part in answer.body])
    assert answer.status == 201, json.loads(text)
    return str(answer.headers.get("warning", ""))
