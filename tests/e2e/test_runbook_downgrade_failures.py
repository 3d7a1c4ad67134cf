"""docs/runbooks/downgrade-failures.md: each failure is brought about, and its commands help."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from kube_in_process.cluster import Cluster as EmbeddedCluster
from kube_in_process.http.listener import serve
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.serving.kubeconfig import Access, write_kubeconfig
from kube_in_process.storage.requests import DeleteOptions

from claimctl.kube.client import Client
from claimctl.wire.base import to_plain
from claimctl.wire.claims import Reference
from claimctl.wire.resources import DEPLOYMENTS, DOWNGRADEPLANS, RESOURCECLAIMS
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e import manifests
from tests.e2e.commands import ServedCluster, claimctl, cluster, command_line
from tests.e2e.gates import TRAIN, refused, restarts, scale, switch
from tests.e2e.harness import HOLD_136, Stage, embedded_cluster
from tests.e2e.rights import as_account, grant, permissions, strict
from tests.e2e.runbooks import Runbook
from tests.e2e.site import EmbeddedSite
from tests.support.runbooks import sections

pytestmark = [pytest.mark.alone, pytest.mark.real_time(300)]
PAGE = "downgrade-failures.md"
WIDE = replace(TRAIN, pods=258)
NATIVE = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD)
PODGROUP = ClusterOptions(preset=Preset.POD_GROUPS, nodes=1)
MACHINE = Reference(api_group="kubevirt.io", resource="virtualmachines", name="vm", uid="v-1")


@asynccontextmanager
async def held(
    tmp_path: Path, options: ClusterOptions = NATIVE, workload: Workload = TRAIN
) -> AsyncIterator[tuple[ServedCluster, Acts, Runbook]]:
    """A cluster where the workload holds its claim."""
    async with cluster(options, tmp_path) as served:
        native = options.preset is Preset.RESERVED_FOR_ANY_POD
        acts = Acts(served.stage, native=native, groups=not native)
        await acts.room("ml")
        await acts.held(workload)
        yield served, acts, Runbook(PAGE, served.kubeconfig)


async def nothing_is_wrong(tmp_path: Path) -> None:
    async with held(tmp_path) as (_, _, book):
        await book.play("When a downgrade does not go on")


async def interrupted(tmp_path: Path) -> None:
    async with held(tmp_path) as (served, acts, book):
        await served.stage.dismiss_controller()
        arguments = ("downgrade", "prepare", "--kubeconfig", str(served.kubeconfig))
        process = await asyncio.create_subprocess_exec(*command_line(*arguments))
        await served.stage.until(
            lambda: len(acts.references(TRAIN)) == TRAIN.pods, "the list is written", 60
        )
        process.send_signal(signal.SIGINT)
        assert await process.wait() == 130
        await book.play("The command was interrupted")
        acts.expect_exactly_its_pods(TRAIN)


async def forbidden(tmp_path: Path) -> None:
    """The controller may not write the lists of claims."""
    kubeconfig = tmp_path / "kubeconfig"
    async with (
        embedded_cluster(strict(HOLD_136), epoch=None) as embedded,
        AsyncExitStack() as stack,
    ):
        server = await serve(embedded.handler)
        stack.push_async_callback(server.close)
        write_kubeconfig(kubeconfig, Access(server.url))
        stage = _administered(embedded)
        await stack.enter_async_context(stage.controllers())
        await grant(stage, permissions("controller.yaml"), "controller.yaml")
        await stage.started(transport=await as_account(stage), settle_seconds=0.3)
        await stage.create(RESOURCECLAIMS, manifests.claim())
        await stage.create(DEPLOYMENTS, manifests.deployment(replicas=2, reserve="*"))
        await stage.until_condition("Reserved", "True", "Reserved")
        _take_away(embedded, "resourceclaims/status")
        refused = await claimctl("downgrade", "prepare", "--kubeconfig", str(kubeconfig))
        assert (refused.code, "Forbidden" in refused.out) == (1, True), refused
        await Runbook(PAGE, kubeconfig).play("A request is forbidden")
        listed = await stage.references()
        assert [each.partition("/")[0] for each in listed] == ["pods", "pods"]


def _administered(embedded: EmbeddedCluster) -> Stage:
    return Stage(
        client=Client(embedded.transport(), embedded.clock),
        clock=embedded.clock,
        connect=embedded.transport,
        site=EmbeddedSite(embedded),
        cluster=embedded,
    )


def _take_away(embedded: EmbeddedCluster, resource: str) -> None:
    """Take the right to write this resource from the controller."""
    role = embedded.admin.get("clusterroles", "", "claimctl-controller")
    kept = [rule for rule in role["rules"] if rule["resources"] != [resource]]
    assert len(kept) < len(role["rules"])
    embedded.admin.patch("clusterroles", "", "claimctl-controller", {"rules": kept})


async def too_many(tmp_path: Path) -> None:
    async with held(tmp_path, workload=WIDE) as (_, acts, book):
        await book.play("Too many pods use a claim")
        acts.expect_exactly_its_pods(replace(WIDE, pods=256))


async def left_out(tmp_path: Path) -> None:
    async with held(tmp_path, workload=WIDE) as (_, acts, book):
        before = acts.references(WIDE)
        await book.play("You cannot scale down")
        assert acts.references(WIDE) == before


async def foreign(tmp_path: Path) -> None:
    async with held(tmp_path) as (served, acts, book):
        listed = acts.references(TRAIN)
        write_list(served, (*listed, MACHINE))
        await book.play("Another owner holds a claim")
        write_list(served, listed)
        await book.play("After the owner has left")
        acts.expect_exactly_its_pods(TRAIN)


async def idle(tmp_path: Path) -> None:
    async with held(tmp_path) as (_, acts, book):
        await acts.change(TRAIN, {"replicas": 0})
        await acts.runs(replace(TRAIN, pods=0))
        await book.play("No pod uses a claim")
        await acts.deallocated(TRAIN)
        await book.play("After the release")


async def gate_on(tmp_path: Path) -> None:
    async with held(tmp_path, PODGROUP) as (served, acts, book):
        await served.claimctl("downgrade", "prepare")
        await scale(acts, 5)
        shown = (await served.claimctl("downgrade", "status", "-o", "json")).document
        assert shown["claims"][0]["reason"] == "PutBack"
        switch(served, scheduler_pod_groups=False, kcm_pod_groups=False)
        await book.play("The scheduler gate is still on")
        acts.expect_exactly_its_pods(replace(TRAIN, pods=5))


async def kubelets_first(tmp_path: Path) -> None:
    async with held(tmp_path, PODGROUP) as (served, _, book):
        switch(served, kubelet_pod_groups=False)
        served.embedded.reboot_node("node-0")
        await served.stage.until(lambda: refused(served) == TRAIN.pods, "the kubelet refuses pods")
        await book.play("The kubelets were switched off too early")
        # a kubelet that refused looks again after 60 to 90 s, or when it is started
        served.embedded.kubelet.restart("node-0")
        await served.stage.until(lambda: restarts(served) == [1] * TRAIN.pods, "the pods start")


async def not_restored(tmp_path: Path) -> None:
    async with held(tmp_path) as (served, _, book):
        await served.stage.dismiss_controller()
        await served.claimctl("downgrade", "prepare")
        options = DeleteOptions(propagation="Orphan")
        served.embedded.admin.delete("deployments", "ml", "train", options)
        await book.play("Some references do not return")
        assert (await served.stage.client.list(DOWNGRADEPLANS)).items == ()


def write_list(served: ServedCluster, listed: Iterable[Reference]) -> None:
    body = {"status": {"reservedFor": [to_plain(each) for each in listed]}}
    served.embedded.admin.patch("resourceclaims", "ml", "slice", body, "status")
    served.stage.look()


SCENES: dict[str, Callable[[Path], Awaitable[None]]] = {
    "When a downgrade does not go on": nothing_is_wrong,
    "The command was interrupted": interrupted,
    "A request is forbidden": forbidden,
    "Too many pods use a claim": too_many,
    "You cannot scale down": left_out,
    "Another owner holds a claim": foreign,
    "No pod uses a claim": idle,
    "The scheduler gate is still on": gate_on,
    "The kubelets were switched off too early": kubelets_first,
    "Some references do not return": not_restored,
}
LATER = {"After the owner has left", "After the release"}
"""Sections that the scene of the section before plays."""


@pytest.mark.parametrize("title", SCENES)
async def test_the_commands_help(title: str, tmp_path: Path) -> None:
    await SCENES[title](tmp_path)


def test_every_section_is_played() -> None:
    assert set(sections(PAGE)) == {*SCENES, *LATER}
