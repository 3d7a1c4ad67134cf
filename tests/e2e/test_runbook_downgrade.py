"""docs/runbooks/downgrade.md, word for word, on a busy cluster with PodGroups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.wire.resources import DOWNGRADEPLANS
from claimctl_demo.story.acts import Acts
from tests.e2e.commands import ServedCluster, cluster
from tests.e2e.gates import TRAIN, refused, restarts, scale, switch
from tests.e2e.runbooks import Runbook

pytestmark = [pytest.mark.alone, pytest.mark.real_time(300)]
PODGROUP = ClusterOptions(preset=Preset.POD_GROUPS, nodes=1)


async def step(served: ServedCluster, *arguments: str) -> str:
    answer = await served.claimctl("downgrade", "status", "-o", "json", *arguments)
    return str(answer.document["step"])


def component(document: Any, name: str) -> str:
    (found,) = {each["feature"] for each in document["components"] if each["component"] == name}
    return str(found)


async def test_the_feature_is_switched_off_and_on_again(tmp_path: Path) -> None:
    async with cluster(PODGROUP, tmp_path) as served:
        acts = Acts(served.stage, native=False, groups=True)
        await acts.room("ml")
        await acts.held(TRAIN)
        book = Runbook("downgrade.md", served.kubeconfig)
        await _off(book, served, acts)
        await _without_the_feature(served, acts)
        await _on(book, served, acts)
        book.expect_all_played()
        assert (await served.stage.client.list(DOWNGRADEPLANS)).items == ()


async def _off(book: Runbook, served: ServedCluster, acts: Acts) -> None:
    with_the_same_device = acts.same_device(TRAIN)
    async with with_the_same_device:
        await book.play("Look first")
        assert await step(served) == "Prepare"
        told = await book.play("1. Prepare")
        assert "next step (SwitchOffSchedulers)" in told[0].err
        await scale(acts, 5)
        shown = (await served.claimctl("downgrade", "status", "-o", "json")).document
        assert (shown["step"], component(shown, "scheduler")) == ("SwitchOffSchedulers", "On")
        assert shown["claims"][0]["reason"] == "PutBack"
        switch(served, scheduler_pod_groups=False, kcm_pod_groups=False)
        await book.play("2. Switch off the scheduler and kube-controller-manager")
        await book.play("3. Prepare again")
        await scale(acts, 6)
        shown = (await served.claimctl("downgrade", "status", "-o", "json")).document
        assert (shown["step"], component(shown, "scheduler")) == ("SwitchOffKubelets", "Off")
        switch(served, kubelet_pod_groups=False)
        await book.play("4. Switch off the kubelets")
        assert await step(served, "--switched-off", "kubelets") == "SwitchOffAPIServer"
        switch(served, api_group_claims=False)
        await book.play("5. Switch off the API server")
        assert await step(served) == "Done"


async def _without_the_feature(served: ServedCluster, acts: Acts) -> None:
    """Every sandbox is made anew, and no kubelet refuses a pod."""
    served.embedded.reboot_node("node-0")
    # the slices of a node that boots are away for a while, and doctor says so
    served.embedded.driver(served.embedded.options.driver).publish_again("node-0")
    await served.stage.until(lambda: restarts(served) == [1] * 6, "all pods have restarted")
    shown = (await served.claimctl("downgrade", "status", "-o", "json")).document
    assert (shown["step"], shown["clear"]) == ("Done", True)


async def _on(book: Runbook, served: ServedCluster, acts: Acts) -> None:
    switch(served, api_group_claims=True)
    switch(served, kubelet_pod_groups=True)
    switch(served, kcm_pod_groups=True, scheduler_pod_groups=True)
    await book.play("6. Switch on again")
    assert (await step(served, "--switched-off", "kubelets")) != "Done"
    told = await book.play("7. Let the references return")
    assert "1 of 1 claims have their workload references again" in told[1].err
    await served.stage.look_closely()
    held = {each.resource for each in acts.workloads(TRAIN)}
    assert held == {"podgroups", "deployments"}


async def test_the_naive_order_breaks_pods(tmp_path: Path) -> None:
    """Without the page: the kubelets' gates go off first, and they refuse new sandboxes."""
    async with cluster(PODGROUP, tmp_path) as served:
        acts = Acts(served.stage, native=False, groups=True)
        await acts.room("ml")
        await acts.held(TRAIN)
        switch(served, kubelet_pod_groups=False)
        served.embedded.reboot_node("node-0")
        await served.stage.until(lambda: restarts(served) == [], "no pod starts again")
        await served.stage.until(lambda: refused(served) == 4, "the kubelet says why")
        answer = await served.claimctl("downgrade", "status", "-o", "json")
        assert answer.code == 3
        refusing = [each for each in answer.document["components"] if each["refuses"]]
        assert [each["node"] for each in refusing] == ["node-0"]
