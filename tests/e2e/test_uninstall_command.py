"""``claimctl uninstall prepare`` as a process: without a controller, interrupted, in a hurry."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e.commands import SECONDS, ServedCluster, cluster, command_line
from tests.e2e.runbooks import run

pytestmark = [pytest.mark.alone, pytest.mark.real_time(240)]
HOLD = ClusterOptions(preset=Preset.PLAIN)
TRAIN = Workload("ml", "train", "slice", 2, reserve=True)
TAKES_OVER = b"no controller runs: this command does its work"


async def _started(served: ServedCluster, *arguments: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *command_line(*arguments, "--kubeconfig", str(served.kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def _until_told(process: asyncio.subprocess.Process, words: bytes) -> None:
    assert process.stderr is not None
    async with asyncio.timeout(SECONDS):
        async for line in process.stderr:
            if words in line:
                return
    raise AssertionError(f"it did not say {words!r}")


async def test_a_run_that_is_interrupted_ends_quietly_and_the_next_one_continues(
    tmp_path: Path,
) -> None:
    async with cluster(HOLD, tmp_path) as served:
        acts = Acts(served.stage, native=False)
        await acts.room("ml")
        await acts.held(TRAIN)
        pods = {pod.metadata.uid for pod in acts.pods(TRAIN)}
        await served.stage.dismiss_controller()
        process = await _started(served, "uninstall", "prepare")
        await _until_told(process, TAKES_OVER)
        process.send_signal(signal.SIGINT)
        async with asyncio.timeout(SECONDS):
            _, told = await process.communicate()
        assert (process.returncode, b"Traceback" in told) == (130, False), told
        hurried = await served.claimctl("uninstall", "prepare", "--timeout", "1", "-o", "json")
        assert hurried.code == 3, hurried
        assert {each["kind"] for each in hurried.document["left"]} == {"ClaimReservation"}
        done = await served.claimctl("uninstall", "prepare", "-o", "json")
        assert (done.code, done.document["clean"]) == (0, True), done
        served.stage.look()
        assert {pod.metadata.uid for pod in acts.pods(TRAIN)} == pods
        unknown = await served.claimctl("uninstall", "prepare", "-n", "nowhere")
        told_in_one_line = "error: --namespace: the cluster has no namespace nowhere\n"
        assert (unknown.code, unknown.err) == (2, told_in_one_line)


async def test_one_command_takes_everything_away_and_pods_stay(tmp_path: Path) -> None:
    async with cluster(HOLD, tmp_path) as served:
        acts = Acts(served.stage, native=False)
        await acts.room("ml")
        await acts.held(TRAIN)
        pods = {pod.metadata.uid for pod in acts.pods(TRAIN)}
        await served.stage.dismiss_controller()
        look = await served.claimctl("uninstall", "run", "--dry-run")
        assert look.code == 3, look
        answer = await run("kubectl apply -f deploy/controller.yaml", served.kubeconfig)
        assert answer.code == 0, answer
        assert "CustomResourceDefinition claimreservations.claimctl.io would be deleted" in look.err
        prepared = await served.claimctl("uninstall", "prepare")
        assert prepared.code == 0, prepared
        verified = await served.claimctl("uninstall", "verify")
        assert verified.code == 0
        assert "installed: " in verified.err
        assert "more; `claimctl uninstall run` deletes them" in verified.err
        refused = await served.claimctl("uninstall", "run")
        assert (refused.code, refused.err.count("\n")) == (2, 1), refused
        assert refused.err.startswith("error: uninstall run: --yes is needed where nobody ")
        done = await served.claimctl("uninstall", "run", "--yes")
        assert done.code == 0, done
        assert done.err.endswith("claimctl is uninstalled\n")
        served.stage.look()
        assert {pod.metadata.uid for pod in acts.pods(TRAIN)} == pods
        assert acts.workloads(TRAIN) == ()
        again = await served.claimctl("uninstall", "run", "--yes")
        assert (again.code, "Definition" in again.err) == (0, False), again
