"""``claimctl reschedule`` as people run it: each command is a process."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kube_in_process.options import ClusterOptions, Preset
from kube_in_process.storage.requests import Fault, FaultPoint

from claimctl_reschedule_tests.e2e.moving import plain_deployment
from tests.e2e.commands import SECONDS, CommandAnswer, ServedCluster, cluster, command_line

OPTIONS = ClusterOptions(preset=Preset.RESERVED_FOR_ANY_POD, nodes=3)
POLICY = """\
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: spread
  plugins: {balance: {enabled: [RemoveDuplicates]}}
"""
NAMESPACE = "team"


async def crowded(served: ServedCluster, directory: Path) -> str:
    """Six replicas on two of three nodes; the policy file that spreads them."""
    path = directory / "policy.yaml"
    path.write_text(POLICY)
    admin = served.embedded.admin
    admin.create("namespaces", {"metadata": {"name": NAMESPACE}})
    served.embedded.cordon("node-2")
    admin.create("deployments", plain_deployment(replicas=6))
    await until(lambda: len(running(served)) == 6)
    served.embedded.cordon("node-2", unschedulable=False)
    await until(lambda: not admin.get("nodes", "", "node-2")["spec"].get("taints"))
    return str(path)


def running(served: ServedCluster) -> list[dict[str, Any]]:
    return [
        pod
        for pod in served.embedded.admin.list("pods", NAMESPACE)
        if pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
    ]


def spread(served: ServedCluster) -> list[int]:
    """How many running pods each node has."""
    nodes = [pod["spec"]["nodeName"] for pod in running(served)]
    return sorted(map(nodes.count, set(nodes)))


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SECONDS):
        while not holds():  # noqa: ASYNC110 - the state is in the cluster
            await asyncio.sleep(0.05)


async def reschedule(served: ServedCluster, policy: str, *arguments: str) -> CommandAnswer:
    return await served.claimctl("reschedule", "--policy-config-file", policy, *arguments)


@pytest.mark.real_time(SECONDS)
async def test_a_plan_is_made_reviewed_and_executed(tmp_path: Path) -> None:
    async with cluster(OPTIONS, tmp_path) as served:
        policy = await crowded(served, tmp_path)
        file = str(tmp_path / "plan.json")
        made = await reschedule(served, policy, "--dry-run", "--plan-out", file, "-o", "json")
        assert (made.code, made.err) == (0, "2 evictions planned; nothing was evicted\n")
        moves = made.document["moves"]
        assert {each["result"] for each in moves} == {"Planned"}
        asked = await reschedule(served, policy, "--dry-run=server")
        assert "Allowed" in asked.out
        assert len(running(served)) == 6
        name = moves[0]["pod"]["name"]
        why = await reschedule(served, policy, "--why", f"{NAMESPACE}/{name}")
        assert "RemoveDuplicates moves it from" in why.out
        done = await reschedule(served, policy, "--plan", file, "-o", "json")
        assert done.code == 0
        assert done.err == "2 evictions planned, 2 pods evicted\n"
        assert [each["pod"] for each in done.document["moves"]] == [each["pod"] for each in moves]
        twice = await reschedule(served, policy, "--plan", file)
        assert twice.code == 3
        assert "PODS THAT STAY" not in twice.out
        assert twice.err.endswith("2 left alone, since they changed; make a new plan\n")
        again = await reschedule(served, policy, "-o", "wide")
        assert (again.code, again.out) == (0, "")
        assert again.err.startswith("No pod is to be moved.\n")
        assert spread(served) == [2, 2, 2]


@pytest.mark.real_time(SECONDS)
async def test_ctrl_c_ends_a_run_in_order(tmp_path: Path) -> None:
    """A disruption budget allows nothing, so the run waits until its deadline."""
    async with cluster(OPTIONS, tmp_path) as served:
        policy = await crowded(served, tmp_path)
        command = command_line(
            *("reschedule", "--policy-config-file", policy),
            *("--kubeconfig", str(served.kubeconfig)),
        )
        refused = _refusing(served)
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(SECONDS):
            await refused.wait()
            process.send_signal(signal.SIGINT)
            _, err = await process.communicate()
        assert process.returncode == 130
        assert b"interrupted" in err
        assert b"Traceback" not in err
        assert len(running(served)) == 6


def _refusing(served: ServedCluster) -> asyncio.Event:
    """Refuse every eviction, as a disruption budget does; the event of the first."""
    seen = asyncio.Event()

    def fault(point: FaultPoint) -> Fault | None:
        if point.subresource != "eviction":
            return None
        seen.set()
        return Fault(status=429, reason="TooManyRequests")

    served.embedded.handler.fault = fault
    return seen


@pytest.mark.real_time(SECONDS)
async def test_a_loop_serves_metrics_and_ends_in_order(tmp_path: Path) -> None:
    async with cluster(OPTIONS, tmp_path) as served:
        policy = await crowded(served, tmp_path)
        command = command_line(
            *("reschedule", "--policy-config-file", policy, "--descheduling-interval", "1s"),
            *("--lease-namespace", "default", "--bind-address", "127.0.0.1:0"),
            *("--kubeconfig", str(served.kubeconfig)),
        )
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        await until(lambda: spread(served) == [2, 2, 2])
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
        assert process.returncode == 0, err
        told = (out + err).decode()
        assert "serving health and metrics" in told
        assert "Traceback" not in told
        lease = served.embedded.admin.get("leases", "default", "claimctl-rescheduler")
        assert not lease["spec"].get("holderIdentity")
