"""``claimctl reschedule`` runs beside a schedule of torture, and is killed at times.

The witness judges the cluster as always. In addition nothing of claimctl's may stay behind once a
last run has swept, and no pod may wait for ever because of the brake.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from itertools import count
from random import Random
from typing import Any

import yaml

from claimctl.kube.client import Client
from claimctl.kube.errors import KubeError
from claimctl.kube.events import EventRecorder
from claimctl.kube.leases import LeaderElection, LeaderElectionSettings, LeadershipLost
from claimctl.kube.retry import Backoff
from claimctl.wire.reservations import REALLOCATE_FOR_ANNOTATION
from claimctl.wire.traces import CRITICAL_TAINT, is_own
from claimctl_reschedule.plan.planning import plan
from claimctl_reschedule.plan.refusals import AVOIDS
from claimctl_reschedule.policyfile.reading import check
from claimctl_reschedule.run.execution import RunSettings
from claimctl_reschedule.run.loop import LEASE, Loop
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.run.run import Runner
from claimctl_reschedule.run.signs import Signs
from claimctl_reschedule.run.steps import Result
from claimctl_reschedule_labs.torture import refusing
from labs.findings import RunFindings
from labs.torture.faulty_transport import FaultPlan, FaultyTransport
from labs.torture.final_checks import FinalChecks
from labs.torture.testbed import Testbed
from tests.e2e.harness import DEVICE_CLASS, NAMESPACE

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
  - name: UnplaceablePods
    args:
      stuckSeconds: 1
      budget: {refusals: 3, windowSeconds: 60}
      keepRefused: 1
      brake: true
  plugins:
    deschedule: {enabled: [CriticalPods, DeferredResizes, UnplaceablePods]}
    balance: {enabled: [RemoveDuplicates, LowNodeUtilization]}
"""
WITHOUT_UNPLACEABLE = POLICY.replace("DeferredResizes, UnplaceablePods]", "DeferredResizes]")


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
LOOPS = (3.0, 6.0, 12.0)
"""Seconds after which a loop ends."""
LEASE_TIMES = {"lease_duration": 2.0, "renew_deadline": 1.5, "retry_period": 0.5}
RELEASED = 600.0
"""Seconds within which no pod is braked any more once all nodes are well; probes come at least
every five minutes."""


@asynccontextmanager
async def rescheduling(testbed: Testbed, seed: int, counts: Counter[str]) -> AsyncIterator[None]:
    """Run again and again until the end of the block; then sweep, and look for what is left.

    ``counts`` counts the runs and the pods that they evict; the victims of critical pods, and what
    was done for pods that nodes refuse, also if the run was killed.
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
    counts.update(refusing.counted(testbed, USER))
    await FinalChecks(testbed, RunFindings("reschedule")).calm()
    await testbed.mend()
    rng = Random(f"end {seed}")
    await _stop_avoiding(testbed, rng)
    await _runner(testbed, _transport(testbed), rng).sweep(everything=True)
    testbed.unmet += [f"a taint stays on {node}" for node in _tainted(testbed)]
    testbed.unmet += [f"a request stays on {name}" for name in _asked(testbed)]
    for name in _avoiding(testbed):
        testbed.cluster.admin.delete("pods", NAMESPACE, name)


async def _stop_avoiding(testbed: Testbed, rng: Random) -> None:
    """The strategy ends in one of three ways. Afterwards all nodes are well."""
    how = rng.choice(("well", "release", "unnamed"))
    if how == "well":
        refusing.mend(testbed)
        for name in await _still_braked(testbed, rng):
            testbed.unmet.append(f"{name} is braked for ever")
    if how == "unnamed":
        # the run forgets the avoidances, and the sweep of the next one removes their taints
        runner = _runner(testbed, _transport(testbed), rng, WITHOUT_UNPLACEABLE)
        await runner.run()
        await runner.sweep()
    else:
        await _runner(testbed, _transport(testbed), rng).sweep(everything=True)
    testbed.unmet += [f"{how}: {what}" for what in refusing.remains(testbed)]
    refusing.mend(testbed)


async def _still_braked(testbed: Testbed, rng: Random) -> list[str]:
    """Run until no pod is braked; the pods that still are."""
    end = testbed.cluster.clock.monotonic() + RELEASED
    while refusing.braked(testbed) and testbed.cluster.clock.monotonic() < end:
        await _runner(testbed, _transport(testbed), rng).run()
        await testbed.sleep(5.0)
    return refusing.braked(testbed)


async def _runs(testbed: Testbed, rng: Random, counts: Counter[str]) -> None:
    admin = testbed.cluster.admin
    admin.create("priorityclasses", {"metadata": {"name": "grows"}, "value": 1000})
    for workload in (WEB, GROWS):
        admin.create("deployments", workload)
    refusing.begin(testbed, rng)
    for number in count():
        if number % 3 == 0:
            _want_all_devices(testbed, f"vital-{number}", rng)
            await _crowd(testbed, rng)
        _resize(testbed, rng)
        refusing.strike(testbed, rng)
        await asyncio.sleep(rng.choice(PAUSES))
        if rng.random() < 0.4:
            await _loop(testbed, rng)
            counts["reschedule loop"] += 1
        else:
            await _once(testbed, rng, counts)


async def _once(testbed: Testbed, rng: Random, counts: Counter[str]) -> None:
    """One run, as of the CronJob."""
    plan_ = FaultPlan(dies_at=rng.choice([0, 0, rng.randint(1, 60)]))
    runner = _runner(testbed, _transport(testbed, plan_), rng)
    with suppress(KubeError, OSError):
        report = await runner.run()
        counts["reschedule run"] += 1
        done = [step.move for step in report.steps if step.result is Result.EVICTED]
        counts["moved pod"] += sum(not move.cleans for move in done)
        counts["room for a resize"] += len(report.plan.resizes)


async def _loop(testbed: Testbed, rng: Random) -> None:
    """The loop, as of the Deployment, for some seconds. It is stopped, or killed."""
    transport = _transport(testbed, FaultPlan(dies_at=rng.choice([0, 0, rng.randint(1, 200)])))
    runner = _runner(testbed, transport, rng)
    identity = f"loop-{rng.random()}"
    settings = LeaderElectionSettings(LEASE, "claimctl-system", **LEASE_TIMES)
    election = LeaderElection(runner.client, runner.clock, settings, identity, rng=rng)
    events = EventRecorder(runner.client, runner.clock, "claimctl.io/rescheduler", identity)
    task = asyncio.create_task(Loop(runner, election, 4.0, events).run(), name=identity)
    try:
        await asyncio.wait([task], timeout=rng.choice(LOOPS))
        if rng.random() < 0.5:
            runner.stop.set()
            await asyncio.wait([task], timeout=30.0)
    finally:
        transport.dead.set()
        task.cancel()
        await asyncio.wait([task])
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, LeadershipLost):
            raise error


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
    nodes = [node["metadata"]["name"] for node in testbed.cluster.admin.list("nodes")]
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
    node = _busy(testbed) or rng.choice([node["metadata"]["name"] for node in admin.list("nodes")])
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


def _transport(testbed: Testbed, faults: FaultPlan | None = None) -> FaultyTransport:
    inner = testbed.cluster.transport(USER)
    return FaultyTransport(testbed.cluster, inner, faults or FaultPlan())


def _runner(
    testbed: Testbed, transport: FaultyTransport, rng: Random, policy: str = POLICY
) -> Runner:
    client = Client(transport, testbed.cluster.clock, rng=rng)
    return Runner(
        client=client,
        clock=testbed.cluster.clock,
        policy=check(yaml.safe_load(policy)).policy,
        planner=plan,
        records=Records(client),
        settings=SETTINGS,
        signs=Signs(client.telemetry),
        rng=rng,
    )


def _victims(testbed: Testbed) -> int:
    """How many pods the runs evicted from nodes that were tainted for a critical pod."""
    rooms: set[str] = set()
    victims: set[str] = set()
    for revision in testbed.cluster.history():
        if revision.plural == "nodes":
            rooms.discard(revision.name)
            taints = revision.object()["spec"].get("taints") or ()
            if any(taint["key"] == CRITICAL_TAINT for taint in taints):
                rooms.add(revision.name)
        elif revision.plural == "pods" and revision.actor == USER:
            pod = revision.object()
            if pod["spec"].get("nodeName") in rooms:
                victims.add(pod["metadata"]["uid"])
    return len(victims)


def _asked(testbed: Testbed) -> list[str]:
    """The ClaimReservations with a request of a run to give the claim up."""
    return [
        reservation["metadata"]["name"]
        for reservation in testbed.cluster.admin.list("claimreservations", NAMESPACE)
        if REALLOCATE_FOR_ANNOTATION in (reservation["metadata"].get("annotations") or {})
    ]


def _avoiding(testbed: Testbed) -> list[str]:
    """The pods that wait since their owner avoided a node: their affinity stays."""
    return [
        pod["metadata"]["name"]
        for pod in testbed.objects("pods")
        if AVOIDS in (pod["metadata"].get("annotations") or {})
        and pod["status"].get("phase") == "Pending"
        and not pod["spec"].get("nodeName")
    ]


def _tainted(testbed: Testbed) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in testbed.cluster.admin.list("nodes")
        for taint in node["spec"].get("taints") or ()
        if is_own(taint["key"], str(taint.get("value") or ""))
    ]
