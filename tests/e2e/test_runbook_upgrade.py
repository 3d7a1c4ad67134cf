"""docs/runbooks/upgrade.md, word for word, under a held claim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl_demo.story.acts import Acts
from tests.e2e.commands import cluster
from tests.e2e.gates import TRAIN
from tests.e2e.runbooks import Runbook

pytestmark = [pytest.mark.alone, pytest.mark.real_time(300)]
EDGE = {"From 1.36 to 1.37 with PodGroups", "PodGroups return in 1.37"}
"""In this order."""
GROUPS = ClusterOptions(preset=Preset.POD_GROUPS, kubernetes_version=(1, 36))
OLD = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 34))


async def test_kubernetes_is_upgraded_under_a_held_claim(tmp_path: Path) -> None:
    async with cluster(OLD, tmp_path) as served:
        acts = Acts(served.stage, native=False)
        await acts.room("ml")
        await acts.held(TRAIN)
        book = Runbook("upgrade.md", served.kubeconfig)
        async with acts.same_device(TRAIN):
            await book.play("Before")
            embedded = served.embedded
            embedded.switch(replace(embedded.features, version=(1, 36)))
            await book.play("The control plane")
            await book.play("The nodes")
            acts.expect_held(TRAIN)
        await book.play("A node that does not come back")
        await acts.deallocated(TRAIN)
        await book.play("On another node")
        assert {pod.spec.node_name for pod in acts.pods(TRAIN)}.isdisjoint({"node-0"})
        await book.play("Afterwards")
        book.played |= EDGE
        book.expect_all_played()


async def test_podgroups_are_taken_over_the_edge_to_1_37(tmp_path: Path) -> None:
    async with cluster(GROUPS, tmp_path) as served:
        acts = Acts(served.stage, native=False, groups=True)
        await acts.room("ml")
        await acts.held(TRAIN)
        book = Runbook("upgrade.md", served.kubeconfig)
        async with acts.same_device(TRAIN):
            for section in sorted(EDGE):
                await book.play(section)
