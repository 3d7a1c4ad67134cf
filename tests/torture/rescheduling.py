"""``RESCHEDULE=1``: ``claimctl reschedule`` runs beside a schedule, and is killed at times.

The witness judges the cluster as always. In addition no taint of claimctl may stay behind once a
last run has swept.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from random import Random
from typing import Any

import yaml

from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError
from claimctl.kube.retry import Backoff
from claimctl.rescheduler.policyfile.reading import checked
from claimctl.rescheduler.policyfile.translating import translated
from claimctl.rescheduler.records import Records
from claimctl.rescheduler.run import Runner
from claimctl.rescheduler.settings import RunSettings
from claimctl.rescheduler.signs import Signs
from claimctl.rescheduling.own_taints import CRITICAL_TAINT, is_own
from claimctl.rescheduling.planning import plan
from claimctl.wire.reservations import REALLOCATE_FOR_ANNOTATION
from tests.e2e.harness import DEVICE_CLASS, NAMESPACE
from tests.torture.faulty_transport import FaultPlan, FaultyTransport
from tests.torture.testbed import Testbed

USER = "system:serviceaccount:claimctl-system:claimctl-rescheduler"
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: torture
  pluginConfig:
  - {name: DefaultEvictor, args: {moveHeldClaims: WholeUnit}}
  - name: LowNodeUtilization
    args:
      thresholds: {pods: 0.3}
      targetThresholds: {pods: 0.4}
  - {name: CriticalPods, args: {unschedulableSeconds: 1, podScheduledTimeoutSeconds: 20}}
  - {name: DeferredResizes, args: {deferredSeconds: 0, settleSeconds: 5}}
  plugins:
    deschedule: {enabled: [CriticalPods, DeferredResizes]}
    balance: {enabled: [RemoveDuplicates, LowNodeUtilization]}
"""


def _sized(cpu: str) -> dict[str, Any]:
    return {"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}


WEB: dict[str, Any] = {
    "metadata": {"name": "web", "namespace": NAMESPACE},
    "spec": {
        "replicas": 6,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [_sized("8")]},
        },
    },
}
"""A workload without claims."""
GROWS: dict[str, Any] = {
    "metadata": {"name": "grows", "namespace": NAMESPACE},
    "spec": {
        "selector": {"matchLabels": {"app": "grows"}},
        "template": {
            "metadata": {"labels": {"app": "grows"}},
            "spec": {"containers": [_sized("16")], "priorityClassName": "grows"},
        },
    },
}
"""A workload whose pod wants other sizes at times, up to nearly a node."""
SETTINGS = RunSettings(deadline=10.0, landing=5.0, poll=0.5, retry=Backoff(first=0.5, cap=2.0))
PAUSES = (1.5, 2.0, 3.0, 8.0)


def wanted() -> bool:
    """Whether RESCHEDULE asks for it."""
    return os.environ.get("RESCHEDULE", "0") not in ("", "0")


@asynccontextmanager
async def rescheduling(testbed: Testbed, seed: int, counts: Counter[str]) -> AsyncIterator[None]:
    """Run again and again until the end of the block; then sweep, and look for taints.

    ``counts`` counts the runs and the pods that they evict; the victims of critical pods also if
    the run was killed.
    """
    runs = _runs(testbed, Random(f"reschedule {seed}"), counts)
    task = asyncio.create_task(runs, name="reschedule")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    counts["victim of a critical pod"] += _victims(testbed)
    testbed.cluster.handler.fault = None
    await _runner(testbed, FaultPlan(), Random(seed)).sweep(everything=True)
    testbed.unmet += [f"a taint stays on {node}" for node in _tainted(testbed)]
    testbed.unmet += [f"a request stays on {name}" for name in _asked(testbed)]


async def _runs(testbed: Testbed, rng: Random, counts: Counter[str]) -> None:
    admin = testbed.cluster.admin
    admin.create("priorityclasses", {"metadata": {"name": "grows"}, "value": 1000})
    for each in (WEB, GROWS):
        admin.create("deployments", each)
    for number in count():
        if number % 3 == 0:
            _want_all_devices(testbed, f"vital-{number}", rng)
            await _crowd(testbed, rng)
        _resize(testbed, rng)
        await asyncio.sleep(rng.choice(PAUSES))
        plan_ = FaultPlan(dies_at=rng.choice([0, 0, rng.randint(1, 60)]))
        runner = _runner(testbed, plan_, rng)
        with suppress(KubeError, OSError):
            report = await runner.run()
            counts["reschedule run"] += 1
            counts["moved pod"] += report.evicted
            counts["room for a resize"] += len(report.plan.resizes)


def _resize(testbed: Testbed, rng: Random) -> None:
    """The pods that grow want another size; a pod that is going does not mind."""
    admin = testbed.cluster.admin
    for pod in admin.list("pods", NAMESPACE):
        if pod["metadata"]["name"].startswith("grows-"):
            patch = {"spec": {"containers": [_sized(rng.choice(("16", "40", "60")))]}}
            admin.patch(
                "pods", NAMESPACE, pod["metadata"]["name"], patch, "resize", kind="strategic"
            )


async def _crowd(testbed: Testbed, rng: Random) -> None:
    """Let all pods without claims run on one node, and open the other again."""
    nodes = [each["metadata"]["name"] for each in testbed.cluster.admin.list("nodes")]
    node = rng.choice(nodes)
    testbed.cluster.cordon(node)
    for pod in testbed.cluster.admin.list("pods", NAMESPACE):
        if pod["metadata"]["name"].startswith("web-"):
            testbed.cluster.admin.delete("pods", NAMESPACE, pod["metadata"]["name"])
    await asyncio.sleep(1.0)
    testbed.cluster.cordon(node, unschedulable=False)


def _want_all_devices(testbed: Testbed, name: str, rng: Random) -> None:
    """A critical pod wants all devices of a node, so that others have to go; the last one ends."""
    admin = testbed.cluster.admin
    for pod in admin.list("pods", NAMESPACE):
        if pod["metadata"]["name"].startswith("vital-"):
            admin.delete("pods", NAMESPACE, pod["metadata"]["name"])
            admin.delete("resourceclaims", NAMESPACE, pod["metadata"]["name"])
    meta = {"name": name, "namespace": NAMESPACE}
    every = {"deviceClassName": DEVICE_CLASS, "allocationMode": "All"}
    requests = [{"name": "gpu", "exactly": every}]
    admin.create("resourceclaims", {"metadata": meta, "spec": {"devices": {"requests": requests}}})
    node = _busy(testbed) or rng.choice([each["metadata"]["name"] for each in admin.list("nodes")])
    spec = {
        "containers": [{"name": "main", "image": "x"}],
        "priorityClassName": "system-cluster-critical",
        "nodeSelector": {"kubernetes.io/hostname": node},
        "tolerations": [{"key": CRITICAL_TAINT, "operator": "Exists"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimName": name}],
    }
    admin.create("pods", {"metadata": meta, "spec": spec})


def _busy(testbed: Testbed) -> str:
    """A node with devices that a claim of the workloads has."""
    for claim in testbed.cluster.admin.list("resourceclaims", NAMESPACE):
        allocation = (claim.get("status") or {}).get("allocation") or {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            if not claim["metadata"]["name"].startswith("vital-"):
                return str(result["pool"])
    return ""


def _runner(testbed: Testbed, faults: FaultPlan, rng: Random) -> Runner:
    inner = testbed.cluster.transport(USER)
    client = Client(FaultyTransport(testbed.cluster, inner, faults), testbed.cluster.clock, rng=rng)
    return Runner(
        client=client,
        clock=testbed.cluster.clock,
        policy=translated(checked(yaml.safe_load(POLICY))),
        planner=plan,
        records=Records(client),
        settings=SETTINGS,
        signs=Signs(client.telemetry),
        rng=rng,
    )


def _victims(testbed: Testbed) -> int:
    """How many pods the runs evicted from nodes that were tainted for a critical pod."""
    rooms: set[str] = set()
    found: set[str] = set()
    for revision in testbed.cluster.history():
        if revision.plural == "nodes":
            rooms.discard(revision.name)
            taints = revision.object()["spec"].get("taints") or ()
            if any(each["key"] == CRITICAL_TAINT for each in taints):
                rooms.add(revision.name)
        elif revision.plural == "pods" and revision.actor == USER:
            pod = revision.object()
            if pod["spec"].get("nodeName") in rooms:
                found.add(pod["metadata"]["uid"])
    return len(found)


def _asked(testbed: Testbed) -> list[str]:
    """The ClaimReservations with a request of a run to give the claim up."""
    return [
        each["metadata"]["name"]
        for each in testbed.cluster.admin.list("claimreservations", NAMESPACE)
        if REALLOCATE_FOR_ANNOTATION in (each["metadata"].get("annotations") or {})
    ]


def _tainted(testbed: Testbed) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in testbed.cluster.admin.list("nodes")
        for taint in node["spec"].get("taints") or ()
        if is_own(taint["key"], str(taint.get("value") or ""))
    ]
