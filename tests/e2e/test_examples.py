"""The examples in the help of the commands, run word for word by a shell on a cluster."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.cli.main import examples_of
from claimctl.cli.registry import COMMANDS
from claimctl_demo.story import objects
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from tests.e2e.commands import CommandAnswer, ServedCluster, cluster
from tests.e2e.runbooks import programs

pytestmark = pytest.mark.alone

NOT_RUN = {
    "doctor driver": "it needs a driver, and pods that start: test_driver_check.py",
    "demo cluster": "it serves until a signal: test_kubectl.py",
    "demo": "it takes a minute: test_demo.py",
    "controller": "it runs until a signal: test_controller_command.py",
    "install": "it needs an image: test_install.py plays it",
    "uninstall run": "it takes claimctl away: test_uninstall_command.py plays it",
    "upgrade prepare": "it needs a cluster with PodGroups: test_upgrade_command.py",
}
NOT_PLAYED = {
    "claimctl release train-slice --node-is-off node-3  # its vanished pods do not run any more": (
        "it needs a node that died: tests/e2e/nodes/test_signs_of_life.py"
    ),
}
WATCH_SECONDS = 5
POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: spread
  plugins: {balance: {enabled: [RemoveDuplicates]}}
"""
HERE, THERE = (Workload(place, "train", "train-slice", 1) for place in ("default", "ml"))


async def furnished(served: ServedCluster) -> None:
    """What the examples name: a held claim in two namespaces, idle in ``ml``, and a pod."""
    acts = Acts(served.stage, native=False)
    await acts.room("ml")
    for each in (HERE, THERE):
        await acts.held(each, retentionPolicy="Persistent")
    await acts.change(THERE, {"replicas": 0})
    await served.stage.until(lambda: not acts.pods(THERE), "its pods are gone")
    template = objects.deployment(HERE)["spec"]["template"]
    meta = {"name": "train-0", "namespace": "default"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": template["spec"]}
    await served.stage.user.create(pod)


async def by_shell(line: str, served: ServedCluster, directory: Path) -> CommandAnswer:
    """Run a line as a user does, with ``claimctl`` in the PATH; a watch for some seconds."""
    watches = " -w" in line
    shell = ("timeout", "--signal=INT", str(WATCH_SECONDS), "bash") if watches else ("bash",)
    process = await asyncio.create_subprocess_exec(
        *(*shell, "-o", "pipefail", "-c", line),
        cwd=directory,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={
            **os.environ,
            "PATH": programs(signals=watches),
            "KUBECONFIG": str(served.kubeconfig),
            "HOME": str(directory),
        },
    )
    async with asyncio.timeout(120):
        out, err = await process.communicate()
    assert process.returncode is not None
    return CommandAnswer(process.returncode, out.decode(), err.decode())


def examples() -> list[str]:
    """A downgrade comes before an upgrade, which takes its plan, and the uninstall comes last."""
    late = ("upgrade", "uninstall")
    ordered = sorted(COMMANDS, key=lambda entry: entry.name.startswith(late))
    return [
        line
        for entry in sorted(ordered, key=lambda entry: entry.name.startswith("uninstall"))
        if entry.name not in NOT_RUN
        for line in examples_of(entry)
        if line not in NOT_PLAYED
    ]


@pytest.mark.real_time(400)
async def test_every_example_does_what_it_says(tmp_path: Path) -> None:
    (tmp_path / ".config/fish/completions").mkdir(parents=True)
    (tmp_path / "policy.yaml").write_text(POLICY)
    failed = {}
    async with cluster(ClusterOptions(preset=Preset.PLAIN), tmp_path) as served:
        await furnished(served)
        for line in examples():
            answer = await by_shell(line, served, tmp_path)
            expected = {0, 3} if " -w" not in line else {0, 124, 130}
            if answer.code not in expected or "error:" in answer.err:
                failed[line] = answer
    assert failed == {}
