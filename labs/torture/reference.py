"""The reference runs: the whole life of one workload of each kind, in each dialect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, get_args

from kube_in_process.options import ClusterOptions, Preset, Timings
from kube_in_process.storage.requests import DeleteOptions

from claimctl.controller.settings import Settings
from labs.runs import to_its_end
from labs.torture import moments
from labs.torture.faulty_transport import FaultPlan
from labs.torture.final_checks import FinalChecks
from labs.torture.stored import PLURALS, log_lines
from labs.torture.testbed import (
    BINDING,
    GRACE,
    RunVerdict,
    Testbed,
    judge,
    opened,
    views,
)
from labs.torture.train import ReferenceRun, force_delete_all, running, want, without_pods
from tests.e2e import manifests
from tests.e2e.harness import NAMESPACE

KINDS = ("Deployment", "StatefulSet", "Job")
TIMINGS = Timings(node_monitor_grace=4.0, pod_eviction=1.0, job_backoff=1.0)
REALLOCATE = 5
"""reallocateTimeoutSeconds of every ClaimReservation."""
LIMIT = 20_000.0
"""Virtual seconds after which a run fails."""


def dialects() -> dict[str, ClusterOptions]:
    """The clusters of all dialects."""
    base = ClusterOptions(
        preset=Preset.RESERVED_FOR_ANY_POD, nodes=2, devices_per_node=2, timings=TIMINGS
    )
    known = get_args(Settings.model_fields["dialect"].annotation)
    options = {
        "native": replace(base, preset=Preset.RESERVED_FOR_ANY_POD),
        "hold-1.34": replace(base, preset=Preset.PLAIN, kubernetes_version=(1, 34)),
        "hold-1.36": replace(base, preset=Preset.PLAIN),
        "podgroup": replace(base, preset=Preset.POD_GROUPS),
    }
    return {name: cluster for name, cluster in options.items() if name in known or "hold" in name}


def workload(dialect: str, kind: str, pods: int, **annotations: str) -> dict[str, Any]:
    """A workload named train; in ``podgroup`` its pods are in a PodGroup."""
    if kind == "Deployment":
        body = manifests.deployment(replicas=pods, **annotations)
    elif kind == "StatefulSet":
        body = manifests.stateful_set(replicas=pods, **annotations)
    else:
        body = manifests.job(pods=max(pods, 1), seconds=4, **annotations)
    if dialect == "podgroup":
        group = {"podGroupName": f"train-{kind.lower()}"}
        body["spec"]["template"]["spec"]["schedulingGroup"] = group
    return body


def reservation(kind: str, **spec: Any) -> dict[str, Any]:
    values = {
        "kind": kind,
        "resourceClaimTemplateName": "template",
        "idleTimeoutSeconds": 1,
        "forceDeletedPodGraceSeconds": GRACE,
        "reallocateTimeoutSeconds": REALLOCATE,
        **spec,
    }
    return manifests.reservation(**values)


async def begin(testbed: Testbed, reference: ReferenceRun) -> None:
    kind = reference.kind
    admin = testbed.cluster.admin
    admin.create("resourceclaimtemplates", manifests.claim_template())
    admin.create("claimreservations", reservation(kind))
    admin.create(PLURALS[kind], workload(reference.dialect, kind, 2))
    await testbed.until(lambda: running(testbed) == 2, 20, step=0.25)
    await testbed.sleep(1.0)


async def idle(testbed: Testbed, reference: ReferenceRun) -> None:
    """Scale to 0 or suspend, for long enough to release the claim."""
    want(testbed, reference.kind, 0)
    await testbed.sleep(12.0)


async def back(testbed: Testbed, reference: ReferenceRun) -> None:
    want(testbed, reference.kind, 2)
    await testbed.until(lambda: running(testbed) == 2, 20, step=0.25)
    await testbed.sleep(0.5)


async def vanish(testbed: Testbed, reference: ReferenceRun) -> None:
    """Force-delete a pod, and scale to 0 or suspend at once."""
    for pod in testbed.objects("pods")[:1]:
        testbed.cluster.force_delete(NAMESPACE, pod["metadata"]["name"])
    want(testbed, reference.kind, 0)
    await testbed.sleep(8.0)


async def end(testbed: Testbed, reference: ReferenceRun) -> None:
    testbed.cluster.admin.delete(PLURALS[reference.kind], NAMESPACE, "train")
    await testbed.sleep(2.0)


async def withdraw(testbed: Testbed, reference: ReferenceRun) -> None:
    """Delete the ClaimReservation while a slow scheduler is about to bind pods on an older view."""
    await without_pods(testbed, reference)
    testbed.cluster.set_lag(moments.LAG)
    want(testbed, reference.kind, 2)
    await testbed.sleep(0.1)
    testbed.cluster.admin.delete("claimreservations", NAMESPACE, "train-slice")
    await testbed.sleep(12.0)
    testbed.cluster.set_lag(0.0)


async def trap(testbed: Testbed, reference: ReferenceRun) -> None:
    """Cordon the node with the devices, and delete all of its pods."""
    pods = testbed.objects("pods")
    for node in sorted({pod["spec"].get("nodeName", "") for pod in pods} - {""}):
        testbed.cluster.cordon(node)
    for pod in pods:
        testbed.cluster.admin.delete("pods", NAMESPACE, pod["metadata"]["name"])
    old = {pod["metadata"]["uid"] for pod in pods}
    # at worst, the end of a pod is learned late, the pod counts as force-deleted until then, and
    # the claim is given up after all of that
    within = FaultPlan().withheld_seconds + GRACE + REALLOCATE + BINDING + 5.0
    if not await testbed.until(lambda: running(testbed, but=old) == 2, within, step=0.25):
        testbed.unmet.append("pods that could run elsewhere do not")


async def part_slowly(testbed: Testbed, reference: ReferenceRun) -> None:
    """Delete the ClaimReservation while pods are bound more slowly than the settle time."""
    await _begin_slowly(testbed, reference)
    testbed.cluster.admin.delete("claimreservations", NAMESPACE, "train-slice")
    await _end_slowly(testbed)


async def delete_slowly(testbed: Testbed, reference: ReferenceRun) -> None:
    """Delete the claim while pods are bound slowly."""
    await _begin_slowly(testbed, reference)
    testbed.cluster.admin.delete("resourceclaims", NAMESPACE, "slice")
    await _end_slowly(testbed)


async def recreate_slowly(testbed: Testbed, reference: ReferenceRun) -> None:
    """Recreate the workload under its name while its new pods are bound slowly."""
    testbed.cluster.slow_scheduler(lambda _: (0.0, moments.SLOWLY))
    plural, pods = PLURALS[reference.kind], 2
    testbed.cluster.admin.delete(
        plural, NAMESPACE, "train", DeleteOptions(propagation="Background")
    )
    testbed.cluster.admin.create(plural, workload(reference.dialect, reference.kind, pods))
    await _end_slowly(testbed)


async def trap_slowly(testbed: Testbed, reference: ReferenceRun) -> None:
    """Cordon the nodes: some pods find no node while others are being bound."""
    await _begin_slowly(testbed, reference)
    for node in testbed.cluster.admin.list("nodes"):
        testbed.cluster.cordon(node["metadata"]["name"])
    want(testbed, reference.kind, 3)
    await _end_slowly(testbed)
    for node in testbed.cluster.admin.list("nodes"):
        testbed.cluster.cordon(node["metadata"]["name"], unschedulable=False)


async def _begin_slowly(testbed: Testbed, reference: ReferenceRun) -> None:
    """Create pods for a held claim; the scheduler binds each slowly."""
    await without_pods(testbed, reference)
    testbed.cluster.slow_scheduler(lambda _: (0.0, moments.SLOWLY))
    want(testbed, reference.kind, 2)
    await testbed.sleep(0.1)


async def _end_slowly(testbed: Testbed) -> None:
    await testbed.sleep(moments.SLOWLY + 5.0)
    testbed.cluster.slow_scheduler(None)


async def complete(testbed: Testbed, reference: ReferenceRun) -> None:
    """Let a Job complete; it stays with its pods."""
    if not await testbed.until(lambda: not testbed.unreleased(), 60, step=0.25):
        testbed.unmet.append("the claim of a finished Job is not released")


async def lose(testbed: Testbed, reference: ReferenceRun) -> None:
    """Cut the pods' nodes off; PodGC deletes pods whose containers run on."""
    for node in sorted({pod["spec"].get("nodeName", "") for pod in testbed.objects("pods")} - {""}):
        testbed.cluster.lose_node(node)
    want(testbed, reference.kind, 0)
    await testbed.sleep(22.0)


async def miss(testbed: Testbed, reference: ReferenceRun) -> None:
    """Create, bind and force-delete pods while the watches have a gap; then they begin anew."""
    await without_pods(testbed, reference)
    transport = testbed.processes["one"].transport
    transport.partitioned = True
    await _come_and_vanish(testbed, reference)
    testbed.cluster.store.compact()
    transport.partitioned = False
    await testbed.sleep(16.0)


async def sleep_through(testbed: Testbed, reference: ReferenceRun) -> None:
    """Do the same while no controller runs."""
    await testbed.kill("one")
    await _come_and_vanish(testbed, reference)
    testbed.start()
    await testbed.sleep(12.0)


async def _come_and_vanish(testbed: Testbed, reference: ReferenceRun) -> None:
    want(testbed, reference.kind, 2)
    await testbed.until(lambda: running(testbed) == 2, 5, step=0.05)
    force_delete_all(testbed)
    want(testbed, reference.kind, 0)
    force_delete_all(testbed)


async def downgrade(testbed: Testbed, reference: ReferenceRun) -> None:
    """Create a DowngradePlan, let it be carried out, and delete it."""
    await back(testbed, reference)
    testbed.cluster.admin.create(
        "downgradeplans", {"metadata": {"name": "claimctl"}, "spec": {"namespaces": []}}
    )
    await testbed.sleep(8.0)
    testbed.cluster.admin.delete("downgradeplans", "", "claimctl")
    await testbed.sleep(3.0)


async def meddle(testbed: Testbed, reference: ReferenceRun) -> None:
    """Create a plan while another writer holds the claim, and again after that hold is gone."""
    await back(testbed, reference)
    admin = testbed.cluster.admin
    thing = {"apiGroup": "example.com", "resource": "things", "name": "thing", "uid": "foreign"}
    _edit(testbed, lambda listed: [*listed, thing])
    admin.create("downgradeplans", {"metadata": {"name": "claimctl"}, "spec": {"namespaces": []}})
    await testbed.sleep(8.0)
    _edit(testbed, lambda listed: [entry for entry in listed if entry["uid"] != "foreign"])
    admin.patch("downgradeplans", "", "claimctl", {"status": {"phase": ""}}, "status")
    await testbed.sleep(8.0)
    admin.delete("downgradeplans", "", "claimctl")
    await testbed.sleep(3.0)


def _edit(testbed: Testbed, change: Callable[[list[Any]], list[Any]]) -> None:
    claim = testbed.cluster.admin.get("resourceclaims", NAMESPACE, "slice")
    listed = change(claim.get("status", {}).get("reservedFor") or [])
    body = {"status": {"reservedFor": listed}}
    testbed.cluster.admin.patch("resourceclaims", NAMESPACE, "slice", body, "status")


Step = Callable[[Testbed, ReferenceRun], Awaitable[None]]
LIFE: tuple[Step, ...] = (begin, idle, back, vanish, end)
SCRIPTS: dict[str, tuple[Step, ...]] = {
    "life": LIFE,
    "downgrade": (begin, downgrade, end),
    "meddled downgrade": (begin, meddle, end),
    "withdrawal": (begin, withdraw, end),
    "trap": (begin, trap, end),
    "slow withdrawal": (begin, part_slowly, end),
    "slow deletion": (begin, delete_slowly, end),
    "slow recreation": (begin, recreate_slowly, end),
    "slow trap": (begin, trap_slowly, end),
    "lost node": (begin, lose, end),
    "gap": (begin, miss, end),
    "released gap": (begin, idle, miss, end),
    "absence": (begin, sleep_through, end),
    "completion": (begin, complete, end),
    "late pods": (begin, moments.withdraw_before_pods, end),
    "listed ahead": (begin, moments.withdraw_listed_ahead, end),
    "slow driver": (
        moments.bind_devices,
        moments.make_claim,
        begin,
        moments.withdraw_beside_driver,
        end,
    ),
    "hand-over": (moments.make_claim, begin, moments.hand_over, end),
    "stranger": (begin, moments.come_elsewhere, end),
    "late watch": (begin, moments.stall, end),
    "early deletion": (begin, moments.delete_early, end),
    "allocation in halves": (moments.allocate_in_halves, begin, idle, end),
    "conflicts": (moments.contest, begin, idle, back, end),
}


def references() -> list[ReferenceRun]:
    """All reference runs: every kind in every dialect, and further events for Deployments."""
    known = dialects()
    lives = [ReferenceRun(dialect, kind) for dialect in known for kind in KINDS]
    others = [script for script in SCRIPTS if script != "life"]
    kinds = {"completion": "Job", "early deletion": "Job"}
    return lives + [
        ReferenceRun(dialect, kinds.get(other, "Deployment"), other)
        for dialect in known
        for other in others
    ]


@dataclass(frozen=True, slots=True)
class Restart:
    """Before a step, replace the controller by one that sees an older revision."""

    step: int
    revision: int


def play(
    reference: ReferenceRun,
    plan: FaultPlan | None = None,
    restart: Restart | None = None,
    *,
    keep: bool = False,
) -> RunVerdict:
    """Play the script once.

    Args:
        plan: the faults of the first process.
        keep: keep a fingerprint of every revision.
    """
    verdict = RunVerdict(reference.name, keeps=keep)
    to_its_end(_play(reference, plan, restart, verdict), verdict, LIMIT)
    return verdict


async def _play(
    reference: ReferenceRun, plan: FaultPlan | None, restart: Restart | None, verdict: RunVerdict
) -> None:
    async with opened(dialects()[reference.dialect]) as testbed:
        first = testbed.cluster.store.revision
        testbed.start(plan=plan)
        for number, step in enumerate(SCRIPTS[reference.script]):
            if restart is not None and restart.step == number:
                await testbed.kill("one")
                testbed.start(plan=FaultPlan(stale_at=restart.revision))
            verdict.views.append(views(testbed.cluster, first))
            await step(testbed, reference)
        await FinalChecks(testbed, verdict).conclude()
        judge(testbed, verdict)
        if not verdict.good:
            verdict.log += log_lines(testbed.written(first))
