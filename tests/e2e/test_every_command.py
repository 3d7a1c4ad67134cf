"""Every command as a process, on every version of Kubernetes, with a look at what it prints.

Other files try the options of single commands. Here nothing but the version of the cluster differs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from kube_in_process.http.listener import serve
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.serving.kubeconfig import Access, write_kubeconfig

from claimctl.cli.registry import BY_NAME, entry_of
from claimctl.wire.resources import DEPLOYMENTS
from claimctl_demo.story.acts import Acts
from claimctl_demo.story.objects import Workload
from claimctl_demo.story.stage import Stage as DemoStage
from tests.e2e.commands import CommandAnswer, ServedCluster, cluster, command_line
from tests.e2e.harness import HOLD_134, NAMESPACE, NewStage, Stage
from tests.e2e.real_cluster import RealSite
from tests.e2e.runbooks import run
from tests.e2e.scenes import hold_for_deployment

LEFT_OUT = {
    "demo": "it starts clusters of its own: test_demo.py",
    "demo cluster": "it is a cluster of its own: test_kubectl.py",
    "upgrade status": "it follows a plan of upgrade prepare: test_upgrade_command.py",
    "upgrade restore": "the same",
    "uninstall run": "it takes everything away: test_uninstall_command.py",
}
TRAIN = Workload("ml", "train", "slice", 3)
VERSIONS = [
    ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 32)),
    ClusterOptions(preset=Preset.POD_GROUPS, kubernetes_version=(1, 36), nodes=1),
]
POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: spread
  plugins: {balance: {enabled: [RemoveDuplicates]}}
"""
IMAGE = "registry.example.com/claimctl:1"
QUICK = "--settle-seconds 0.1 --force-deleted-pod-grace-seconds 1"


@dataclass
class CommandShell:
    """Runs commands as a user does, and notes which ones."""

    kubeconfig: Path
    played: set[str] = field(default_factory=set)

    async def says(self, line: str, *words: str, code: int = 0) -> CommandAnswer:
        """Run a line; it must print all words and end with this exit code."""
        entry = entry_of(line.split())
        assert entry is not None
        self.played.add(entry.name)
        answer = await run(f"claimctl {line}", self.kubeconfig)
        missing = [each for each in words if each not in answer.out + answer.err]
        assert (answer.code, missing) == (code, []), f"claimctl {line}: {answer}"
        return answer


@pytest.mark.alone
@pytest.mark.real_time(600)
@pytest.mark.parametrize("options", VERSIONS, ids=["1.32", "podgroup"])
async def test_every_command_does_its_work(options: ClusterOptions, tmp_path: Path) -> None:
    async with cluster(options, tmp_path) as served:
        acts = Acts(served.stage, native=False, groups=options.preset is Preset.POD_GROUPS)
        shell = CommandShell(served.kubeconfig)
        # the scheduler may bind the pods of a group to several nodes (kubernetes/kubernetes#140087)
        async with acts.only_node():
            await acts.room("ml")
            await acts.held(TRAIN, retentionPolicy="Persistent", forceDeletedPodGraceSeconds=1)
            await acts.recorded(TRAIN)
            await _read(shell, acts, tmp_path)
            await _downgrade(shell, acts)
            await _upgrade(shell, groups=acts.groups)
            await _free_an_orphan(shell, served)
            await served.stage.dismiss_controller()
            async with _controller(shell, served.stage, tmp_path / "log"):
                await _release(shell, acts)
                under_pods = not served.stage.resource_api.endswith("beta1")
                await _uninstall(shell, acts, under_pods=under_pods)
        assert shell.played | LEFT_OUT.keys() == BY_NAME.keys()


async def _read(shell: CommandShell, acts: Acts, directory: Path) -> None:
    pod = acts.pods(TRAIN)[0].metadata.name
    (directory / "policy.yaml").write_text(POLICY)
    await shell.says("version", "Kubernetes:", "Mode:")
    await shell.says("doctor", "no problems")
    if acts.groups:  # it takes some seconds
        line = "doctor driver gpu.example.com -n ml --node node-0 -o yaml"
        await shell.says(line, "driver: gpu.example.com", "complete: true", "habits: []")
    else:
        await shell.says("doctor driver nope -n ml", "no ResourceSlice is of this driver", code=2)
    await shell.says("reserve deploy/train -n ml --dry-run", "claim slice would be reserved")
    await shell.says(
        "reserve deploy/train -n ml --wait", "claim slice reserved for deployment/train"
    )
    await shell.says("get -n ml", "slice", "Held", "deployments/train")
    await shell.says("explain slice -n ml", "deployments/train is listed (claimctl's)")
    await shell.says(f"explain pod/{pod} -n ml", "slice")
    await shell.says("tree deploy/train -n ml", "ResourceClaim/slice (Held", pod)
    await shell.says("timeline slice -n ml", "deployments/train")
    await shell.says("downgrade status", "next step")
    await shell.says(f"reschedule --policy-config-file {directory}/policy.yaml --dry-run=client")
    await shell.says(f"install --image {IMAGE} --dry-run -o yaml", "kind: Deployment")
    await shell.says("completion bash", "claimctl")


async def _downgrade(shell: CommandShell, acts: Acts) -> None:
    await shell.says("downgrade prepare -n ml", "Expanded", "1 of 1 claims are listed pod by pod")
    await acts.stage.look_closely()
    acts.expect_exactly_its_pods(TRAIN)
    await shell.says("downgrade restore", "1 of 1 claims have their workload references again")
    await acts.stage.look_closely()
    acts.expect_held(TRAIN)


async def _upgrade(shell: CommandShell, *, groups: bool) -> None:
    """Only PodGroups have to be prepared."""
    said, code = ("1 PodGroups would be prepared", 0) if groups else ("does not serve", 2)
    await shell.says("upgrade prepare --to 1.37 --dry-run", said, code=code)


async def _free_an_orphan(shell: CommandShell, served: ServedCluster) -> None:
    await served.create_allocated("emptied")
    await shell.says("doctor orphans -n ml", "emptied", "AllocatedToNobody", code=3)
    await shell.says(f"doctor orphans -n ml --yes {QUICK}", "ml/emptied: freed")
    claim = await served.stage.user.get(served.claims, "ml", "emptied")
    assert "allocation" not in claim.get("status", {})


@asynccontextmanager
async def _controller(shell: CommandShell, stage: DemoStage, log: Path) -> AsyncIterator[None]:
    """``claimctl controller`` as a process. It must end well on SIGTERM."""
    flags = ("--bind-address", "", "--settle-seconds", "0.3", "--binding-seconds", "10")
    shell.played.add("controller")
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *command_line("controller", "--kubeconfig", str(shell.kubeconfig), *flags),
            stdout=output,
            stderr=output,
        )
    told = log.read_text
    try:
        await stage.until(lambda: "leading" in told(), "the process leads")
        yield
        process.terminate()
        assert await process.wait() == 0, told()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _release(shell: CommandShell, acts: Acts) -> None:
    await shell.says("release slice -n ml --dry-run", "would be asked", "3 pods use the claim")
    await asyncio.gather(
        shell.says("release slice -n ml --wait", "claim ml/slice is released"),
        acts.change(TRAIN, {"replicas": 0}),
    )
    await acts.stage.look_closely()
    assert acts.allocation(TRAIN) is None
    await acts.change(TRAIN, {"replicas": TRAIN.pods})
    await acts.runs(TRAIN)
    await acts.held_again(TRAIN)


async def _uninstall(shell: CommandShell, acts: Acts, *, under_pods: bool) -> None:
    """``under_pods``: whether a hold can be withdrawn while pods run."""
    await shell.says(f"install --image {IMAGE}", "Deployment claimctl-system/claimctl-controller")
    await shell.says(
        "uninstall verify",
        "NotWithdrawn",
        "holds until `claimctl uninstall",
        code=3,
    )
    if not under_pods:
        why = "3 pods use claim slice", "in Kubernetes before 1.34", "stays until they have ended"
        await shell.says("uninstall prepare --timeout 2", *why, code=3)
        await acts.change(TRAIN, {"replicas": 0})
    await shell.says("uninstall prepare", "claimctl can be deleted")
    await shell.says("uninstall verify", "claimctl can be deleted")
    await acts.stage.look_closely()
    assert len(acts.pods(TRAIN)) == (TRAIN.pods if under_pods else 0)


@pytest.mark.core
@pytest.mark.real_time(120)
async def test_one_command_reads_and_one_writes(new_stage: NewStage, tmp_path: Path) -> None:
    async with new_stage(HOLD_134) as stage, _shell(stage, tmp_path) as (shell, namespace):
        await stage.started()
        await hold_for_deployment(stage, 2, retention_policy="Persistent")
        await shell.says(f"get -n {namespace}", "slice", "Held", "deployments/train, 2 pods")
        await stage.patch(DEPLOYMENTS, "train", {"spec": {"replicas": 0}})
        await shell.says(f"release slice -n {namespace} --wait", "is released")
        await stage.until_released()


@asynccontextmanager
async def _shell(stage: Stage, directory: Path) -> AsyncIterator[tuple[CommandShell, str]]:
    """A shell for the cluster of a scenario, and the scenario's namespace there."""
    if isinstance(stage.site, RealSite):
        yield CommandShell(Path(stage.site.cluster.kubeconfig)), stage.site.places.namespace
        return
    server = await serve(stage.embedded.transport())
    write_kubeconfig(directory / "kubeconfig", Access(server.url))
    try:
        yield CommandShell(directory / "kubeconfig"), NAMESPACE
    finally:
        await server.close()
