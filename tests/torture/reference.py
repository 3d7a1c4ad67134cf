"""The reference runs: the whole life of one workload of each kind, in each dialect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container
from dataclasses import dataclass, replace
from typing import Any, get_args

from claimctl.controller.settings import Settings
from claimctl.embedded.options import ClusterOptions, Dialect, Timings
from claimctl.embedded.storage.requests import DeleteOptions
from tests.e2e import manifests
from tests.e2e.harness import NAMESPACE
from tests.support.virtual import run
from tests.torture.arena import GRACE, Arena, Verdict, closed, history, judge, opened, views
from tests.torture.epilogue import conclude
from tests.torture.line import Plan

KINDS = ("Deployment", "StatefulSet", "Job")
PLURALS = {"Deployment": "deployments", "StatefulSet": "statefulsets", "Job": "jobs"}
TIMINGS = Timings(node_monitor_grace=4.0, pod_eviction=1.0, job_backoff=1.0)
LAG = 4.4
"""Lag of the scheduler's cache in seconds; just below the settle time."""
SLOWLY = 18.0
"""Seconds until a slow bind; below the binding time, above every other wait of a release."""
LIMIT = 20_000.0
"""Virtual seconds after which a run fails."""


def dialects() -> dict[str, ClusterOptions]:
    """The clusters of all dialects."""
    base = ClusterOptions(nodes=2, devices_per_node=2, timings=TIMINGS)
    known = get_args(Settings.model_fields["dialect"].annotation)
    found = {
        "native": replace(base, dialect=Dialect.NATIVE),
        "hold-1.34": replace(base, dialect=Dialect.HOLD, kubernetes_version=(1, 34)),
        "hold-1.36": replace(base, dialect=Dialect.HOLD),
        "podgroup": replace(base, dialect=Dialect.PODGROUP),
    }
    return {name: each for name, each in found.items() if name in known or "hold" in name}


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
        "reallocateTimeoutSeconds": 5,
        **spec,
    }
    return manifests.reservation(**values)


async def begin(arena: Arena, reference: Reference) -> None:
    kind = reference.kind
    admin = arena.cluster.admin
    admin.create("resourceclaimtemplates", manifests.claim_template())
    admin.create("claimreservations", reservation(kind))
    admin.create(PLURALS[kind], workload(reference.dialect, kind, 2))
    await arena.until(lambda: _running(arena) == 2, 20, step=0.25)
    await arena.sleep(1.0)


async def idle(arena: Arena, reference: Reference) -> None:
    """Scale to 0 or suspend, for long enough to release the claim."""
    _want(arena, reference.kind, 0)
    await arena.sleep(12.0)


async def back(arena: Arena, reference: Reference) -> None:
    _want(arena, reference.kind, 2)
    await arena.until(lambda: _running(arena) == 2, 20, step=0.25)
    await arena.sleep(0.5)


async def vanish(arena: Arena, reference: Reference) -> None:
    """Force-delete a pod, and scale to 0 or suspend at once."""
    for pod in arena.objects("pods")[:1]:
        arena.cluster.force_delete(NAMESPACE, pod["metadata"]["name"])
    _want(arena, reference.kind, 0)
    await arena.sleep(8.0)


async def end(arena: Arena, reference: Reference) -> None:
    arena.cluster.admin.delete(PLURALS[reference.kind], NAMESPACE, "train")
    await arena.sleep(2.0)


async def withdraw(arena: Arena, reference: Reference) -> None:
    """Delete the ClaimReservation while a slow scheduler is about to bind pods on an older view."""
    _want(arena, reference.kind, 0)
    await arena.until(lambda: not arena.objects("pods"), 20, step=0.05)
    arena.cluster.set_lag(LAG)
    _want(arena, reference.kind, 2)
    await arena.sleep(0.1)
    arena.cluster.admin.delete("claimreservations", NAMESPACE, "train-slice")
    await arena.sleep(12.0)
    arena.cluster.set_lag(0.0)


async def trap(arena: Arena, reference: Reference) -> None:
    """Cordon the node with the devices, and delete all of its pods."""
    pods = arena.objects("pods")
    for node in sorted({pod["spec"].get("nodeName", "") for pod in pods} - {""}):
        arena.cluster.cordon(node)
    for pod in pods:
        arena.cluster.admin.delete("pods", NAMESPACE, pod["metadata"]["name"])
    old = {pod["metadata"]["uid"] for pod in pods}
    if not await arena.until(lambda: _running(arena, but=old) == 2, 60, step=0.25):
        arena.unmet.append("pods that could run elsewhere do not")


async def part_slowly(arena: Arena, reference: Reference) -> None:
    """Delete the ClaimReservation while pods are bound more slowly than the settle time."""
    await _begin_slowly(arena, reference)
    arena.cluster.admin.delete("claimreservations", NAMESPACE, "train-slice")
    await _end_slowly(arena)


async def delete_slowly(arena: Arena, reference: Reference) -> None:
    """Delete the claim while pods are bound slowly."""
    await _begin_slowly(arena, reference)
    arena.cluster.admin.delete("resourceclaims", NAMESPACE, "slice")
    await _end_slowly(arena)


async def recreate_slowly(arena: Arena, reference: Reference) -> None:
    """Recreate the workload under its name while its new pods are bound slowly."""
    arena.cluster.slow_scheduler(lambda _: (0.0, SLOWLY))
    plural, pods = PLURALS[reference.kind], 2
    arena.cluster.admin.delete(plural, NAMESPACE, "train", DeleteOptions(propagation="Background"))
    arena.cluster.admin.create(plural, workload(reference.dialect, reference.kind, pods))
    await _end_slowly(arena)


async def trap_slowly(arena: Arena, reference: Reference) -> None:
    """Cordon the nodes: some pods find no node while others are being bound."""
    await _begin_slowly(arena, reference)
    for node in arena.cluster.admin.list("nodes"):
        arena.cluster.cordon(node["metadata"]["name"])
    _want(arena, reference.kind, 3)
    await _end_slowly(arena)
    for node in arena.cluster.admin.list("nodes"):
        arena.cluster.cordon(node["metadata"]["name"], unschedulable=False)


async def _begin_slowly(arena: Arena, reference: Reference) -> None:
    """Create pods for a held claim; the scheduler binds each slowly."""
    _want(arena, reference.kind, 0)
    await arena.until(lambda: not arena.objects("pods"), 20, step=0.05)
    arena.cluster.slow_scheduler(lambda _: (0.0, SLOWLY))
    _want(arena, reference.kind, 2)
    await arena.sleep(0.1)


async def _end_slowly(arena: Arena) -> None:
    await arena.sleep(SLOWLY + 5.0)
    arena.cluster.slow_scheduler(None)


async def complete(arena: Arena, reference: Reference) -> None:
    """Let a Job complete; it stays with its pods."""
    if not await arena.until(lambda: not arena.unreleased(), 60, step=0.25):
        arena.unmet.append("the claim of a finished Job is not released")


async def lose(arena: Arena, reference: Reference) -> None:
    """Cut the pods' nodes off; PodGC deletes pods whose containers run on."""
    for node in sorted({pod["spec"].get("nodeName", "") for pod in arena.objects("pods")} - {""}):
        arena.cluster.lose_node(node)
    _want(arena, reference.kind, 0)
    await arena.sleep(22.0)


async def miss(arena: Arena, reference: Reference) -> None:
    """Create, bind and force-delete pods while the watches have a gap; then they begin anew."""
    _want(arena, reference.kind, 0)
    await arena.until(lambda: not arena.objects("pods"), 20, step=0.05)
    line = arena.processes["one"].line
    line.partitioned = True
    await _come_and_vanish(arena, reference)
    arena.cluster.store.compact()
    line.partitioned = False
    await arena.sleep(16.0)


async def sleep_through(arena: Arena, reference: Reference) -> None:
    """Do the same while no controller runs."""
    await arena.kill("one")
    await _come_and_vanish(arena, reference)
    arena.start()
    await arena.sleep(12.0)


async def _come_and_vanish(arena: Arena, reference: Reference) -> None:
    _want(arena, reference.kind, 2)
    await arena.until(lambda: _running(arena) == 2, 5, step=0.05)
    for pod in arena.objects("pods"):
        arena.cluster.force_delete(NAMESPACE, pod["metadata"]["name"])
    _want(arena, reference.kind, 0)
    for pod in arena.objects("pods"):
        arena.cluster.force_delete(NAMESPACE, pod["metadata"]["name"])


async def downgrade(arena: Arena, reference: Reference) -> None:
    """Create a DowngradePlan, let it be carried out, and delete it."""
    await back(arena, reference)
    arena.cluster.admin.create(
        "downgradeplans", {"metadata": {"name": "claimctl"}, "spec": {"namespaces": []}}
    )
    await arena.sleep(8.0)
    arena.cluster.admin.delete("downgradeplans", "", "claimctl")
    await arena.sleep(3.0)


async def meddle(arena: Arena, reference: Reference) -> None:
    """Create a plan while another writer holds the claim, and again after that hold is gone."""
    await back(arena, reference)
    admin = arena.cluster.admin
    thing = {"apiGroup": "example.com", "resource": "things", "name": "thing", "uid": "foreign"}
    _edit(arena, lambda listed: [*listed, thing])
    admin.create("downgradeplans", {"metadata": {"name": "claimctl"}, "spec": {"namespaces": []}})
    await arena.sleep(8.0)
    _edit(arena, lambda listed: [each for each in listed if each["uid"] != "foreign"])
    admin.patch("downgradeplans", "", "claimctl", {"status": {"phase": ""}}, "status")
    await arena.sleep(8.0)
    admin.delete("downgradeplans", "", "claimctl")
    await arena.sleep(3.0)


def _edit(arena: Arena, change: Callable[[list[Any]], list[Any]]) -> None:
    claim = arena.cluster.admin.get("resourceclaims", NAMESPACE, "slice")
    listed = change(claim.get("status", {}).get("reservedFor") or [])
    body = {"status": {"reservedFor": listed}}
    arena.cluster.admin.patch("resourceclaims", NAMESPACE, "slice", body, "status")


Step = Callable[[Arena, "Reference"], Awaitable[None]]
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
}


def _want(arena: Arena, kind: str, pods: int) -> None:
    admin = arena.cluster.admin
    plural = PLURALS[kind]
    if admin.find(plural, NAMESPACE, "train") is None:
        return
    spec = {"suspend": not pods} if kind == "Job" else {"replicas": pods}
    admin.patch(plural, NAMESPACE, "train", {"spec": spec})


def _running(arena: Arena, but: Container[str] = ()) -> int:
    return sum(
        pod["status"].get("phase") == "Running" and pod["metadata"]["uid"] not in but
        for pod in arena.objects("pods")
    )


@dataclass(frozen=True, slots=True)
class Reference:
    """One script on one cluster."""

    dialect: str
    kind: str
    script: str = "life"

    @property
    def name(self) -> str:
        return f"{self.dialect} {self.kind} {self.script}"

    @property
    def steps(self) -> tuple[Step, ...]:
        return SCRIPTS[self.script]


def references() -> list[Reference]:
    """All reference runs: every kind in every dialect, and further events for Deployments."""
    known = dialects()
    lives = [Reference(dialect, kind) for dialect in known for kind in KINDS]
    others = [script for script in SCRIPTS if script != "life"]
    kinds = {"completion": "Job"}
    return lives + [
        Reference(dialect, kinds.get(each, "Deployment"), each)
        for dialect in known
        for each in others
    ]


@dataclass(frozen=True, slots=True)
class Restart:
    """Before a step, replace the controller by one that sees an older revision."""

    step: int
    revision: int


def play(
    reference: Reference,
    plan: Plan | None = None,
    restart: Restart | None = None,
    *,
    keep: bool = False,
) -> Verdict:
    """Play the script once.

    Args:
        plan: the faults of the first process.
        keep: keep a fingerprint of every revision.
    """
    verdict = Verdict(reference.name, keep)
    run(_play(reference, plan, restart, verdict), limit=LIMIT)
    return verdict


async def _play(
    reference: Reference, plan: Plan | None, restart: Restart | None, verdict: Verdict
) -> None:
    arena = await opened(dialects()[reference.dialect])
    try:
        first = arena.cluster.store.revision
        arena.start(plan=plan)
        for number, step in enumerate(reference.steps):
            if restart is not None and restart.step == number:
                await arena.kill("one")
                arena.start(plan=Plan(stale_at=restart.revision))
            verdict.views.append(views(arena.cluster, first))
            await step(arena, reference)
        await conclude(arena, verdict)
        judge(arena, verdict)
        if not verdict.good:
            verdict.log += history(arena.cluster, first)
    finally:
        await closed(arena)
