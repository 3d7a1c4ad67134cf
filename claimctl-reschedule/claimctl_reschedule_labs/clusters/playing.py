"""Plays a random cluster: a dry run, the real run, what became of it, and a second run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import yaml
from kube_in_process.cluster import Cluster
from kube_in_process.storage.store import Revision

from claimctl.kube.retry import Backoff
from claimctl.wire.traces import is_own
from claimctl_reschedule.plan.plan import Plan
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.run.execution import RunSettings
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.run.run import Runner
from claimctl_reschedule.run.steps import MoveStep, Result, RunReport
from claimctl_reschedule.shapes.records import MoveOutcome
from claimctl_reschedule_labs.clusters.gpus import most_emptied
from claimctl_reschedule_labs.clusters.making import EMPTYING, GPUS, Made, made
from claimctl_reschedule_labs.clusters.names import SPACES, SYSTEM, Body
from claimctl_reschedule_labs.clusters.workloads import Workload
from claimctl_reschedule_tests.e2e.rescheduling import runner
from tests.e2e.harness import NAMESPACE, Stage, embedded_stage

QUIET = 20.0
"""Seconds without a write after which a cluster has settled: longer than any back-off."""
PATIENCE = 60.0
"""Seconds after which a cluster that writes on and on is taken as it is."""
ROUNDS = 6
SETTINGS = RunSettings(deadline=300.0, landing=60.0, poll=1.0, retry=Backoff(first=1.0, cap=10.0))
_HINDERED = frozenset(
    {
        Ground.BUDGET_SPENT,
        Ground.BUDGET_NOT_OBSERVED,
        Ground.LIMIT_PER_NODE,
        Ground.LIMIT_TOTAL,
    }
)
"""Reasons that end with the run: what was left for one of them may move in the next one."""
_NO_PART = frozenset({"leases", "events", "reschedulerecords"})
"""Kinds whose writes do not show that a cluster is still busy."""


@dataclass
class Played:
    """What a seed showed. Each list has one line for each finding; none is expected.

    Attributes:
        moves: evictions that were planned, over all rounds.
        rescued: critical pods that got a node.
        homeless: replacements of a critical pod's victims that found no node: none was promised.
        emptied: nodes that HighNodeUtilization has left without pods.
    """

    seed: int
    strategy: str
    moves: int = 0
    rounds: int = 0
    rescued: int = 0
    homeless: int = 0
    emptied: int = 0
    restless: bool = False
    """Whether the cluster never settled, so that nothing was tried on it."""
    differing: list[str] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    bounced: list[str] = field(default_factory=list)
    again: list[str] = field(default_factory=list)
    other: list[str] = field(default_factory=list)

    @property
    def findings(self) -> list[str]:
        """All of them, each with its kind."""
        kinds = ("differing", "pending", "bounced", "again", "other")
        return [f"{kind}: {text}" for kind in kinds for text in getattr(self, kind)]


async def played(seed: int, strategy: str = "") -> Played:
    """Play the cluster of a seed."""
    cluster = made(seed, strategy)
    result = Played(seed, cluster.strategy)
    async with embedded_stage(cluster.options) as stage:
        if not await build(stage, cluster):
            result.restless = True
            return result
        best = most_emptied(stage.embedded) if cluster.strategy == GPUS else 0
        await _rounds(stage, cluster, result)
        if result.emptied < best - 1:
            result.other.append(f"of {best} nodes {result.emptied} were emptied")
        result.other += [f"a taint stays on {node}" for node in _tainted(stage.embedded)]
        result.other += [f"a request stays on {name}" for name in _asked(stage.embedded)]
    return result


# The cluster


async def build(stage: Stage, cluster: Made) -> bool:
    """Make the cluster; whether it settled."""
    api = stage.embedded.admin
    for index, body in enumerate(cluster.nodes):
        name = f"node-{index}"
        spec = {"spec": {"taints": body["taints"] or None}}
        api.patch("nodes", "", name, {"metadata": {"labels": body["labels"]}, **spec})
        room = {"capacity": body["room"], "allocatable": body["room"]}
        api.patch("nodes", "", name, {"status": room}, "status")
    for space in SPACES:
        if space != NAMESPACE:
            api.create("namespaces", {"metadata": {"name": space}})
    _delete_class(stage)
    for plural, body in cluster.objects:
        api.create(plural, body)
    await stage.started()
    for wave in cluster.waves:
        await _cordon(stage, wave.closed, closed=True)
        for workload in wave.workloads:
            await _start(stage, workload)
        if not await settled(stage.embedded):
            return False
        await _cordon(stage, wave.closed, closed=False)
    await _cordon(stage, cluster.cordoned, closed=True)
    for plural, body in cluster.late:
        api.create(plural, body)
    return await settled(stage.embedded)


def _delete_class(stage: Stage) -> None:
    """The embedded cluster makes a DeviceClass of its own; the random ones take its place."""
    stage.embedded.admin.delete("deviceclasses", "", stage.embedded.options.device_class)


async def _cordon(stage: Stage, nodes: Sequence[int], *, closed: bool) -> None:
    for index in nodes:
        stage.embedded.cordon(f"node-{index}", unschedulable=closed)
    await stage.clock.sleep(2.0)


async def _start(stage: Stage, workload: Workload) -> None:
    for plural, body in workload.objects:
        stage.embedded.admin.create(plural, body)
    if workload.replicas is not None:
        await settled(stage.embedded, quiet=3.0)
        scale = {"spec": {"replicas": workload.replicas}}
        stage.embedded.admin.patch(workload.plural, workload.namespace, workload.name, scale)


async def settled(cluster: Cluster, quiet: float = QUIET) -> bool:
    """Wait until nothing has been written for a while; False if that does not come."""
    clock, last = cluster.clock, cluster.clock.monotonic()
    until = last + PATIENCE

    def note(revision: Revision) -> None:
        nonlocal last
        if revision.plural not in _NO_PART:
            last = clock.monotonic()

    cluster.subscribe(note)
    while clock.monotonic() < min(last + quiet, until):
        await clock.sleep(1.0)
    return clock.monotonic() >= last + quiet


# The runs


async def _rounds(stage: Stage, cluster: Made, result: Played) -> None:
    """Run until a plan is not cut short by budgets or limits; then one run more.

    If a pod that waited before a run has a node after it, there is another run, too: nobody has
    planned for that pod. Each run has a new record, so that no cooldown hides a move.
    """
    for number in range(ROUNDS):
        result.rounds += 1
        waiting = _waiting(stage.embedded)
        report = await _one(stage, cluster, result, number)
        hindered = any(skip.reason in _HINDERED for skip in report.plan.skipped)
        hindered = hindered or any(map(_was_judged_again, report.steps))
        if not report.plan.moves or not (hindered or waiting - _waiting(stage.embedded)):
            break
    process = _process(stage, cluster, ROUNDS)
    again = await process.plan()
    result.again += [_shown(step) for step in map(MoveStep, again.moves)]


async def _one(stage: Stage, cluster: Made, result: Played, number: int) -> RunReport:
    process = _process(stage, cluster, number)
    dry = await process.plan()
    before = stage.embedded.store.revision
    report = await process.run()
    deleted = _deleted(stage.embedded, before)
    if not await settled(stage.embedded):
        result.other.append("the cluster does not settle after the run")
    result.moves += len(dry.moves)
    _compare(dry, report, deleted, result)
    _follow(stage.embedded, report, result)
    _empty(stage.embedded, report, result)
    return report


def _process(stage: Stage, cluster: Made, number: int) -> Runner:
    process = runner(stage, yaml.safe_dump(cluster.policy), settings=SETTINGS)
    process.records = Records(process.client, f"round-{number}")
    process.settings = replace(
        SETTINGS, max_unavailable=process.policy.max_unavailable_per_workload
    )
    return process


def _compare(dry: Plan, report: RunReport, deleted: dict[str, str], result: Played) -> None:
    """What the dry run said, and which pods went."""
    if dry.digest != report.plan.digest:
        result.differing.append("the plans differ")
    if report.failure:
        result.other.append(report.failure)
    for step in report.steps:
        if step.result is not Result.EVICTED and not _was_judged_again(step):
            text = f"{_shown(step)} stayed: {step.reason}: {step.detail}"
            result.differing.append(text)
    planned = {move.pod.uid for move in dry.moves}
    result.differing += [
        f"{name} went and was not planned" for uid, name in deleted.items() if uid not in planned
    ]


def _was_judged_again(step: MoveStep) -> bool:
    """Whether the pods of a node were left, because replacements of another node went elsewhere
    than expected. Which of the nodes that stay in use they take is left to the scheduler."""
    return step.move.strategy == EMPTYING and step.reason is Ground.CHANGED


def _follow(cluster: Cluster, report: RunReport, result: Played) -> None:
    """What became of the replacements, once the cluster has settled."""
    for step in report.steps:
        if step.outcome is MoveOutcome.BOUNCED:
            result.bounced.append(_shown(step))
    expected = {_owner(step): bool(step.move.destination) for step in report.steps}
    for pod in _pods(cluster):
        owner = _controller(pod)
        if owner in expected and not pod["spec"].get("nodeName"):
            name = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            if expected[owner]:
                result.pending.append(f"{name}: {_why_pending(pod)}")
            else:
                result.homeless += 1
    for taint in report.plan.taints:
        if taint.pod is not None:
            stored = cluster.admin.find("pods", taint.pod.namespace, taint.pod.name)
            if stored is not None and stored["spec"].get("nodeName"):
                result.rescued += 1
            else:
                result.other.append(f"{taint.pod} got no node: {_why_pending(stored or {})}")


def _empty(cluster: Cluster, report: RunReport, result: Played) -> None:
    """The nodes that were begun have no pods but those of DaemonSets."""
    emptying = (step for step in report.steps if step.move.strategy == EMPTYING)
    nodes = {step.move.pod.node for step in emptying if step.result is Result.EVICTED}
    for node in nodes:
        here = [pod for pod in _pods(cluster) if pod["spec"].get("nodeName") == node]
        staying = [pod for pod in here if not _is_of_node(pod) and not _has_ended(pod)]
        result.emptied += not staying
        names = ", ".join(pod["metadata"]["name"] for pod in staying)
        result.other += [f"{node} was to be emptied, and has {names}"] if names else []


def _is_of_node(pod: Body) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(owner["kind"] == "DaemonSet" for owner in owners)


def _has_ended(pod: Body) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")


def _shown(step: MoveStep) -> str:
    move = step.move
    where = f"{move.pod.node} -> {move.destination or '?'}"
    landed = f", landed on {step.landed}" if step.landed else ""
    return f"{move.strategy} {move.pod} {where}{landed}"


def _owner(step: MoveStep) -> str:
    return step.move.owner.uid if step.move.owner is not None else ""


def _controller(pod: Body) -> str:
    for owner in pod["metadata"].get("ownerReferences") or ():
        if owner.get("controller"):
            return str(owner["uid"])
    return "none"


def _why_pending(pod: Body) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition["type"] == "PodScheduled":
            return str(condition.get("message") or condition["status"])
    return "not seen by the scheduler"


def _pods(cluster: Cluster) -> list[Any]:
    return [pod for space in (*SPACES, SYSTEM) for pod in cluster.admin.list("pods", space)]


def _waiting(cluster: Cluster) -> set[str]:
    return {pod["metadata"]["uid"] for pod in _pods(cluster) if not pod["spec"].get("nodeName")}


def _deleted(cluster: Cluster, since: int) -> dict[str, str]:
    """The pods whose deletion began after a revision: UID and name."""
    deleted: dict[str, str] = {}
    waiting: set[str] = set()
    for revision in cluster.history():
        if revision.plural != "pods":
            continue
        meta = revision.object()["metadata"]
        if revision.number <= since:
            waiting.add(meta["uid"])
        elif meta.get("deletionTimestamp") or revision.type == "DELETED":
            deleted.setdefault(meta["uid"], f"{meta['namespace']}/{meta['name']}")
    return {uid: name for uid, name in deleted.items() if uid not in _preempted(cluster, waiting)}


def _preempted(cluster: Cluster, waiting: set[str]) -> set[str]:
    """The pods that the scheduler evicted for pods which waited already: no move is to blame."""
    victims: set[str] = set()
    for space in SPACES:
        for event in cluster.admin.list("events", space):
            words = str(event.get("message") or event.get("note") or "").split()
            if words[:3] == ["Preempted", "by", "pod"] and words[3] in waiting:
                victims.add((event.get("involvedObject") or event.get("regarding") or {})["uid"])
    return victims


def _tainted(cluster: Cluster) -> list[str]:
    return [
        node["metadata"]["name"]
        for node in cluster.admin.list("nodes")
        for taint in node["spec"].get("taints") or ()
        if is_own(taint["key"], str(taint.get("value") or ""))
    ]


def _asked(cluster: Cluster) -> list[str]:
    """ClaimReservations with a request to give the claim up."""
    return [
        reservation["metadata"]["name"]
        for space in SPACES
        for reservation in cluster.admin.list("claimreservations", space)
        if "claimctl.io/reallocate" in (reservation["metadata"].get("annotations") or {})
    ]
