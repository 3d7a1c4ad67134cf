"""downgrade status as a process: the next step in each dialect, and what is in its way.

``test_runbook_downgrade.py`` plays the whole way with PodGroups.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e.commands import ServedCluster, cluster, command_line

pytestmark = [pytest.mark.alone, pytest.mark.real_time(180)]
NATIVE = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD)
HOLD = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 34))
TRAIN = Workload("ml", "train", "slice", 3)


async def furnished(served: ServedCluster, workload: Workload = TRAIN) -> Acts:
    dialect = served.embedded.options.preset
    acts = Acts(
        served.stage,
        native=dialect is Preset.RESERVED_FOR_ANY_POD,
        groups=dialect is Preset.POD_GROUPS,
    )
    await acts.room(workload.namespace)
    await acts.held(workload)
    return acts


async def status(served: ServedCluster, *arguments: str) -> tuple[int, Any]:
    answer = await served.claimctl("downgrade", "status", "-o", "json", *arguments)
    return answer.code, answer.document


def features(document: Any) -> dict[str, str]:
    return {each["component"]: each["feature"] for each in document["components"]}


async def test_native(tmp_path: Path) -> None:
    async with cluster(NATIVE, tmp_path) as served:
        await furnished(served)
        code, document = await status(served)
        assert (code, document["step"]) == (0, "Prepare")
        assert features(document) == {
            "api-server": "On",
            "scheduler": "On",
            "kube-controller-manager": "Off",
            "kubelets": "On",
        }
        await served.claimctl("downgrade", "prepare")
        code, document = await status(served)
        assert (code, document["step"]) == (0, "SwitchOffSchedulers")
        off = ("--switched-off", "scheduler")
        assert (await status(served, *off))[1]["step"] == "SwitchOffKubelets"
        embedded = served.embedded
        embedded.switch(
            replace(
                embedded.features,
                api_reserved_for=False,
                scheduler_reserved_for=False,
                kubelet_reserved_for=False,
            )
        )
        code, document = await status(served)
        assert (code, document["step"], document["readyClaims"]) == (0, "Done", 1)


async def test_hold(tmp_path: Path) -> None:
    async with cluster(HOLD, tmp_path) as served:
        await served.stage.user.create({"apiVersion": "v1", "kind": "Namespace"} | _named("web"))
        code, document = await status(served)
        assert (code, document["step"]) == (0, "Done")
        await furnished(served)
        code, document = await status(served)
        assert (code, document["step"]) == (0, "Prepare")
        told = await served.claimctl("downgrade", "prepare")
        assert "next step (Done): nothing is left to do" in told.err
        code, document = await status(served)
        assert (code, document["step"]) == (0, "Done")


def _named(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name}}


async def test_it_watches_until_the_last_step_is_done(tmp_path: Path) -> None:
    async with cluster(HOLD, tmp_path) as served:
        await furnished(served)
        arguments = ("downgrade", "status", "-w", "--kubeconfig", str(served.kubeconfig))
        watching = await asyncio.create_subprocess_exec(
            *command_line(*arguments),
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        assert watching.stderr is not None
        first = await watching.stderr.readline()
        await served.claimctl("downgrade", "prepare")
        rest = await watching.stderr.read()
        assert await watching.wait() == 0
    assert b"next step (Prepare)" in first
    assert rest.splitlines()[-1].startswith(b"1 of 1 claims are ready; next step (Done)")


async def test_a_component_that_does_not_exist_is_bad_input(tmp_path: Path) -> None:
    async with cluster(HOLD, tmp_path) as served:
        answer = await served.claimctl("downgrade", "status", "--switched-off", "kubelet")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "error: --switched-off: 'kubelet' is not one of api-server, scheduler, "
        "kube-controller-manager, kubelets\n"
    )
