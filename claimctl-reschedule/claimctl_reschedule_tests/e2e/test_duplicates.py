"""Six clusters of 10 nodes, of which six were closed while the workloads came.

The policy and the sizes are those of the table in docs/descheduler.md. The seconds and requests of
each run are printed (``-s``); on a real control plane they compare with those of the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import pytest
from kube_in_process.options import ClusterOptions, Preset

from claimctl.wire.meta import ObjectHeader
from claimctl.wire.resources import DEPLOYMENTS, PODS, Resource
from claimctl.wire.seams import Query, Response, Transport
from claimctl_reschedule.run.execution import RunSettings
from claimctl_reschedule.run.steps import RunReport
from claimctl_reschedule_tests.e2e.rescheduling import budget, closed, runner, workload
from tests.e2e.harness import NAMESPACE, Stage
from tests.e2e.site import PEOPLE

OPTIONS = ClusterOptions(preset=Preset.PLAIN, kubernetes_version=(1, 36), nodes=10)
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: balance
  pluginConfig:
  - {name: DefaultEvictor, args: {}}
  - name: LowNodeUtilization
    args:
      thresholds: {cpu: 25, memory: 25, pods: 25}
      targetThresholds: {cpu: 50, memory: 50, pods: 50}
  plugins:
    balance: {enabled: [RemoveDuplicates, LowNodeUtilization]}
"""
BUDGETS = Resource("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget", ObjectHeader)
WORKLOADS = 8

pytestmark = pytest.mark.cluster(OPTIONS)


@dataclass
class CountedConnection:
    """A connection that counts its requests, and the evictions that the server refused."""

    inner: Transport
    requests: int = 0
    refused: int = 0

    async def send(
        self, method: str, path: str, query: Query, headers: Mapping[str, str], body: bytes | None
    ) -> Response:
        self.requests += 1
        answer = await self.inner.send(method, path, query, headers, body)
        self.refused += path.endswith("/eviction") and answer.status >= 400
        return answer


async def furnish(stage: Stage, rng: Random) -> int:
    """Eight Deployments on four of the nodes, two of them with a budget; how many pods."""
    shut = rng.sample(range(10), 6)
    await closed(stage, *shut)
    pods = 0
    for number in range(WORKLOADS):
        name, replicas = f"app-{number}", rng.randint(9, 13)
        cpu, memory = rng.choice(["250m", "500m", "1"]), rng.choice(["128Mi", "512Mi", "1Gi"])
        body = workload(name, replicas, requests={"cpu": cpu, "memory": memory})
        await stage.create(DEPLOYMENTS, body)
        if number < 2:
            await stage.create(BUDGETS, budget(name, maxUnavailable=1))
        pods += replicas
    await stage.until_running(pods)
    await closed(stage, *shut, unschedulable=False)
    return pods


async def balanced(stage: Stage, what: str) -> tuple[RunReport, CountedConnection]:
    """A run; it prints what it took."""
    link, began = CountedConnection(stage.site.connection(PEOPLE)), stage.clock.monotonic()
    report = await runner(stage, POLICY, link, RunSettings()).run()
    seconds = stage.clock.monotonic() - began
    print(f"{what}: {report.evicted} evictions, {seconds:.1f} s, {link.requests} requests")
    return report, link


@pytest.mark.parametrize("seed", range(6))
async def test_no_pod_comes_back_and_the_second_run_does_nothing(stage: Stage, seed: int) -> None:
    pods = await furnish(stage, Random(seed))
    report, link = await balanced(stage, f"seed {seed}, {pods} pods, first run")
    assert report.evicted == len(report.steps) >= 15
    assert [step for step in report.steps if step.landed == step.move.pod.node] == []
    assert link.refused == 0
    assert link.requests <= 35 + 3 * report.evicted
    there = (await stage.client.list(PODS, NAMESPACE)).items
    assert [pod for pod in there if not pod.spec.node_name] == []
    again, _ = await balanced(stage, f"seed {seed}, second run")
    assert again.evicted == 0
