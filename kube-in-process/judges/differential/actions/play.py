"""Plays a story on a cluster, and acts as the kubelets of its nodes between the steps.

After every step and every round of the kubelets the player waits until the cluster is at rest. So
the compared states do not depend on speed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from kube_in_process.components.objects import (
    annotations_of,
    condition,
    controller_of,
    controller_uid,
    deleting,
    finalizers,
    is_true,
    labels,
    name,
    uid,
)
from kube_in_process.components.pods import (
    allocation_of,
    ended,
    group_name,
    is_group,
    node_name,
    phase,
    pod_claims,
    ready,
    reserved_for,
)

from judges.differential.actions.clusters import Seen, StoryStage, answer
from judges.differential.actions.story import KUBELETS, NODE, POD, SEND, WAIT, Story, StoryStep

Object = dict[str, Any]
ROUNDS = 25
"""The largest number of kubelet rounds after one step."""
_LOOPING_STEPS = 2
"""How many steps of a story are played while controllers write in a loop."""
BREATH = 0.08
"""Seconds between two writes of kubelets, at least: controllers see one after the other."""
_LOOK = 1.0
"""Seconds between two checks of a condition."""
LONGEST = 60.0
"""Seconds after which a cluster that does not come to rest is compared as it is."""
STRATEGIC = "application/strategic-merge-patch+json"
PATCHES = {
    "merge": "application/merge-patch+json",
    "strategic": STRATEGIC,
    "json": "application/json-patch+json",
    "apply": "application/apply-patch+yaml",
}
_UNDOES = {"uncordon": "cordon", "untaint": "taint"}
"""The change of a node that each action takes back."""
INDEX = "batch.kubernetes.io/job-completion-index"


@dataclass
class Action:
    """One request, as a recording shows it."""

    at: float
    note: str
    request: Object
    status: int
    message: str = ""


@dataclass
class Segment:
    """The events of one step until the next rest."""

    note: str
    answers: list[str] = field(default_factory=list)
    events: list[Seen] = field(default_factory=list)
    before: dict[tuple[str, str], Object] = field(default_factory=dict)
    rest: dict[tuple[str, str], Object] = field(default_factory=dict)


@dataclass
class PlayedStory:
    """All events and answers of a story on one cluster."""

    segments: list[Segment] = field(default_factory=list)
    messages: list[Object] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    begun: float = 0.0
    ended: float = 0.0
    failures: list[str] = field(default_factory=list)


class Player:
    def __init__(self, stage: StoryStage, namespace: str) -> None:
        self._stage = stage
        self._namespace = namespace
        self._log = stage.log
        self._starts = self._stops = True
        self._lost: set[str] = set()
        self._let_go: set[str] = set()
        self._stopped: set[str] = set()
        self._started = 0
        self._round = ""
        self._generations = 0
        self._tainted: list[str] = []
        self._changed: dict[str, list[str]] = {undone: [] for undone in _UNDOES.values()}
        self.played = PlayedStory()

    async def play(self, story: Story, *, to_the_end: bool = True) -> PlayedStory:
        """Play the story. Without ``to_the_end`` it ends early if controllers write for ever.

        The rest would be played beside 100 writes a second, which slow all other stories.
        """
        self.played.begun = self._log.now()
        await self._rest()
        looping = 0
        for step in story.steps:
            await self._segment(step)
            looping += self._log.loops
            if looping > _LOOPING_STEPS and not to_the_end:
                break
        await asyncio.sleep(self._stage.quiet)
        self.played.messages = list(self._log.messages.values())
        self.played.ended = self._log.now()
        return self.played

    async def _segment(self, step: StoryStep) -> None:
        first = self._log.begin()
        segment = Segment(step.note, before=dict(self._log.current))
        segment.answers = [action async for action in self._step(step)]
        await self._rest()
        for _ in range(ROUNDS):
            if not await self._kubelets():
                break
            await self._rest()
        segment.events = sorted(self._log.seen[first:], key=lambda change: change.version)
        segment.rest = dict(self._log.current)
        self.played.segments.append(segment)

    async def _rest(self) -> None:
        """Wait until nothing has happened for a while. A loop of controllers counts as rest."""
        end = self._log.now() + LONGEST
        self._log.last = max(self._log.last, self._log.now())
        while self._log.now() < end:
            left = self._log.last + self._quiet() - self._log.now()
            if left > 0:
                # The awaited controller may act long before its time is over.
                await asyncio.sleep(min(left, _LOOK))
            elif self._stage.witnessed(self._log.last):
                return
            else:
                await self._stage.witness(self._log.last, end)

    def _quiet(self) -> float:
        """The seconds without an event that mean rest; longer while a controller has work to do."""
        if any(deleting(namespace) for namespace in self._log.all("Namespace")):
            emptied = not self._log.all("Pod")
            return self._stage.quiet + (_NAMESPACE_EMPTIED if emptied else _NAMESPACE_GOES)
        behind = any(_behind(body) for kind in _OBSERVED for body in self._log.all(kind))
        behind = behind or any(self._uncounted(job) for job in self._log.all("Job"))
        behind = behind or any(self._unscheduled(pod) for pod in self._log.all("Pod"))
        if any(self._backs_off(job) for job in self._log.all("Job")):
            return self._stage.quiet + _BACKS_OFF
        if any(self._lacks_claims(pod) for pod in self._log.all("Pod")):
            return self._stage.quiet + _TEMPLATE_SEEN
        if any(self._lists_the_dead(claim) for claim in self._log.all("ResourceClaim")):
            return self._stage.quiet + _TRIED_AGAIN
        behind = behind or any(_waits_for_others(seen) for seen in self._log.current.values())
        if behind or any(_expires(job) for job in self._log.all("Job")):
            return self._stage.quiet + _BEHIND
        slow = self._log.all("Job") or any(_changed(node) for node in self._log.all("Node"))
        return self._stage.quiet - (0.0 if slow or self._lost else self._stage.spare)

    def _lists_the_dead(self, claim: Object) -> bool:
        """Whether the list has only pods, some of them gone: KCM will remove these."""
        alive = {uid(pod) for pod in self._log.all("Pod")}
        listed = reserved_for(claim)
        known = all(entry["resource"] in ("pods", "podgroups") for entry in listed)
        dead = (
            entry for entry in listed if entry["resource"] == "pods" and entry["uid"] not in alive
        )
        return known and any(dead)

    def _lacks_claims(self, pod: Object) -> bool:
        """Whether the pod waits for a generated claim; KCM retries with longer and longer
        pauses."""
        return not deleting(pod) and any(
            claim.claim is None and ("ResourceClaimTemplate", claim.template) in self._log.current
            for claim in pod_claims(pod)
        )

    def _unscheduled(self, pod: Object) -> bool:
        """Whether the scheduler has not looked at a pod yet whose PodGroup exists."""
        waits = not node_name(pod) and not deleting(pod) and condition(pod, "PodScheduled") is None
        return waits and ("PodGroup", group_name(pod)) in self._log.current

    def _uncounted(self, job: Object) -> bool:
        """Whether the Job's status is behind its pods; the controller syncs it once a second."""
        status = job.get("status") or {}
        if is_true(job, "Complete") or is_true(job, "Failed"):
            return False
        pods = [pod for pod in self._log.all("Pod") if uid(job) in controller_uid(pod)]
        alive = [pod for pod in pods if not deleting(pod) and not ended(pod)]
        counts = [status.get(count, 0) for count in ("active", "ready", "terminating")]
        going = sum(1 for pod in pods if deleting(pod) and not ended(pod))
        seen = [len(alive), sum(1 for pod in alive if ready(pod)), going]
        return counts != seen or any(ended(pod) and finalizers(pod) for pod in pods)

    def _backs_off(self, job: Object) -> bool:
        """Whether the Job backs off: it creates the next pod 10 or 20 s after a failure."""
        spec, status = job["spec"], job.get("status") or {}
        if is_true(job, "Complete") or is_true(job, "Failed") or spec.get("suspend"):
            return False
        pods = [pod for pod in self._log.all("Pod") if uid(job) in controller_uid(pod)]
        failed = any(phase(pod) == "Failed" or deleting(pod) for pod in pods)
        missing = spec.get("completions", 1) - status.get("succeeded", 0)
        alive = sum(1 for pod in pods if not ended(pod) and not deleting(pod))
        lost = failed or status.get("failed", 0) > 0
        return lost and not deleting(job) and alive < min(spec["parallelism"], missing)

    # Steps

    async def _step(self, step: StoryStep) -> Any:
        args = step.args
        if step.do == SEND:
            yield await self._send(step.note, args)
        elif step.do == POD:
            for pod in self._chosen(args):
                yield await self._befall(step.note, args, pod)
                await (asyncio.sleep(BREATH) if args["what"] == "patch" else self._breathe())
        elif step.do == NODE:
            async for action in self._node(step.note, args):
                yield action
            # Evictions after tolerated seconds belong to this step.
            await asyncio.sleep(args.get("lasts", 0))
        elif step.do == KUBELETS:
            self._starts = args.get("start", self._starts)
            self._stops = args.get("stop", self._stops)
        elif step.do == WAIT:
            await asyncio.sleep(args["seconds"])

    async def _send(self, note: str, args: Object) -> str:
        path = self._filled(args["path"])
        body = args.get("body")
        if body is not None:
            body = json.loads(self._filled(json.dumps(body)))
        query = tuple((args.get("query") or {}).items())
        kind = PATCHES.get(args.get("patch", ""), "application/json")
        begun = self._log.now()
        status, document = await answer(
            self._stage.transport, args["method"], path, query, body, kind
        )
        shown = path + ("?" + "&".join(f"{k}={v}" for k, v in query) if query else "")
        request = {"method": args["method"], "path": shown}
        if kind != "application/json":
            request["content-type"] = kind
        if body is not None:
            request["body"] = body
        message = str(document.get("message", "")) if status >= 400 else ""
        action = Action(begun - self.played.begun, note, request, status, message)
        self.played.actions.append(action)
        return f"{status} {document.get('reason', '') if status >= 400 else ''} {message}".strip()

    def _rank(self, pod: Object) -> tuple[str, int]:
        return _ordinal(pod), self._log.born[uid(pod)]

    def _now(self) -> str:
        return self._stage.wall().strftime("%Y-%m-%dT%H:%M:%SZ")

    def _filled(self, text: str) -> str:
        """Replace ``{ns}`` and ``{uid Kind/name}`` by the values of this cluster."""
        text = text.replace("{ns}", self._namespace)
        for (kind, plain), obj in self._log.current.items():
            text = text.replace(f"{{uid {kind}/{plain}}}", uid(obj))
        return text

    def _chosen(self, args: Object) -> Iterator[Object]:
        """The pods that ``args`` describes; their names differ in each run."""
        pods = [
            pod
            for pod in self._log.all("Pod")
            if name(pod).startswith(args["of"]) and _is(pod, args.get("state", "any"))
        ]
        pods.sort(key=self._rank)
        if args.get("last"):
            pods.reverse()
        yield from pods[: args.get("count", 1)]

    async def _befall(self, note: str, args: Object, pod: Object) -> str:
        base = f"/api/v1/namespaces/{{ns}}/pods/{name(pod)}"
        what = args["what"]
        if what in ("delete", "force"):
            query = {"gracePeriodSeconds": "0"} if what == "force" else {}
            self._let_go.discard(uid(pod))
            return await self._send(note, {"method": "DELETE", "path": base, "query": query})
        if what == "evict":
            meta = {"name": name(pod), "namespace": "{ns}"}
            body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": meta}
            return await self._send(
                note, {"method": "POST", "path": f"{base}/eviction", "body": body}
            )
        if what == "patch":
            args = {"method": "PATCH", "path": base, "patch": "merge", "body": args["body"]}
            return await self._send(note, args)
        status = (
            _ended(pod, args.get("code", 0), self._now())
            if what == "end"
            else {"conditions": _ready("False", self._now(), "ContainersNotReady")}
        )
        return await self._report(note, pod, status)

    async def _node(self, note: str, args: Object) -> Any:
        node = self._chosen_node(args)
        if node is None:
            yield "no such node"
            return
        what = args["what"]
        self._note(what, node)
        path = f"/api/v1/nodes/{node}"
        if what == "lose":
            self._lost.add(node)
            self._stage.lose(node)
        elif what == "restore":
            for action in sorted(self._lost):
                await self._stage.restore(action)
            self._lost.clear()
        elif what == "delete":
            yield await self._send(note, {"method": "DELETE", "path": path})
        elif what == "taint devices":
            self._tainted.append(node)
            yield await self._publish(note, node, args["taints"])
        elif what == "untaint devices":
            self._tainted.remove(node)
            yield await self._publish(note, node, [])
        else:
            spec = {
                "cordon": {"unschedulable": True},
                "uncordon": {"unschedulable": None},
                "taint": {"taints": args.get("taints")},
                "untaint": {"taints": None},
            }[what]
            body = {"spec": spec}
            yield await self._send(
                note, {"method": "PATCH", "path": path, "patch": "merge", "body": body}
            )

    def _note(self, what: str, node: str) -> None:
        """Remember which nodes are changed. Their names do not say which of them was changed first:
        each run has pods on other nodes."""
        if what in self._changed and node not in self._changed[what]:
            self._changed[what].append(node)
        elif what in _UNDOES:
            self._changed[_UNDOES[what]].remove(node)

    async def _publish(self, note: str, node: str, taints: list[Object]) -> str:
        """Publish the node's devices again as the driver does, all with ``taints``."""
        fleet = self._stage.fleet
        self._generations += 1
        pool = {"name": node, "generation": 1 + self._generations, "resourceSliceCount": 1}
        devices = [{"name": f"dev-{n}", "taints": taints or None} for n in range(fleet.devices)]
        path = f"/apis/{fleet.resource_api}/resourceslices/{node}-{fleet.driver}-0"
        body = {"spec": {"pool": pool, "devices": devices}}
        return await self._send(
            note, {"method": "PATCH", "path": path, "patch": "merge", "body": body}
        )

    def _chosen_node(self, args: Object) -> str | None:
        """The node that ``args`` describes: that of a workload's first bound pod, one without
        pods and taints, one by number, or the first one whose change ``args`` undoes."""
        if "of" in args:
            bound = [pod for pod in self._log.all("Pod") if name(pod).startswith(args["of"])]
            names = [node_name(pod) for pod in sorted(bound, key=self._rank) if node_name(pod)]
            return names[0] if names else None
        if args.get("free"):
            used = {node_name(pod) for pod in self._log.all("Pod")}
            used |= set(self._tainted)
            return next((name for name in self._stage.fleet.names if name not in used), None)
        if args["what"] == "untaint devices":
            return next(iter(self._tainted), None)
        if args["what"] == "restore":
            return min(self._lost, default=None)
        if args["what"] in _UNDOES:
            return next(iter(self._changed[_UNDOES[args["what"]]]), None)
        return self._stage.fleet.names[args.get("index", 0)]

    # Kubelets

    async def _kubelets(self) -> bool:
        """Let the kubelets act once on all pods; returns whether they wrote anything."""
        written = False
        self._round = self._now()
        for pod in sorted(self._log.all("Pod"), key=self._rank):
            if node_name(pod) not in self._stage.fleet.names or node_name(pod) in self._lost:
                continue
            written = await self._look(pod) or written
        return written

    async def _look(self, pod: Object) -> bool:
        if deleting(pod):
            return self._stops and await self._stop(pod)
        if phase(pod) != "Pending" or not self._starts or not self._admitted(pod):
            return False
        since = self._ready_since(pod)
        await self._report("node agent: the pod runs and is ready", pod, _running(since))
        return True

    def _ready_since(self, pod: Object) -> str:
        """The time since which a pod is ready. Pods of Jobs get different times: a Job deletes the
        youngest first, and equal ones at random.

        Other pods that start together are ready in the same second, and so available together.
        """
        owner = controller_of(pod)
        if owner is None or owner["kind"] != "Job":
            return self._round
        self._started += 1
        since = self._stage.wall() - timedelta(seconds=1000 - self._started)
        return since.strftime("%Y-%m-%dT%H:%M:%SZ")

    async def _stop(self, pod: Object) -> bool:
        if uid(pod) in self._let_go:
            return False
        if phase(pod) == "Running" and uid(pod) not in self._stopped:
            self._stopped.add(uid(pod))
            await self._report(
                "node agent: the containers have stopped", pod, _stopped(pod, self._now())
            )
            return True
        self._let_go.add(uid(pod))
        path = f"/api/v1/namespaces/{{ns}}/pods/{name(pod)}"
        query = {"gracePeriodSeconds": "0"}
        note = "node agent: the deletion is confirmed"
        await self._send(note, {"method": "DELETE", "path": path, "query": query})
        await self._breathe()
        return True

    async def _report(self, note: str, pod: Object, status: Object) -> str:
        path = f"/api/v1/namespaces/{{ns}}/pods/{name(pod)}/status"
        body = {"status": status}
        answer = await self._send(
            note, {"method": "PATCH", "path": path, "patch": "strategic", "body": body}
        )
        await self._breathe()
        return answer

    async def _breathe(self) -> None:
        """Wait until controllers have answered the writes: which pods they delete may depend on
        it."""
        await asyncio.sleep(max(BREATH, self._stage.lag))

    def _admitted(self, pod: Object) -> bool:
        for use in pod_claims(pod):
            if use.claim == "":
                continue
            claim = self._log.current.get(("ResourceClaim", use.claim or ""))
            if claim is None or allocation_of(claim) is None or not _lists(claim, pod):
                return False
        return True


_OBSERVED = ("Deployment", "ReplicaSet", "StatefulSet", "PodDisruptionBudget")
_BEHIND = 4.8
"""Seconds. The scheduler backs off for 1 s; pods become available and Jobs expire after 3 s."""
_TEMPLATE_SEEN = 22.0
_TRIED_AGAIN = 45.0
"""Seconds. KCM 1.32 backs off for as long as it has failed before."""
_BACKS_OFF = 24.0
_NAMESPACE_GOES = 19.0
"""Seconds. The namespace controller begins after 5 s and looks for pods again after 16 s."""
_NAMESPACE_EMPTIED = 40.0
"""Seconds. A namespace without pods goes for certain; a busy namespace controller comes late."""


def _behind(workload: Object) -> bool:
    """Whether the workload's controller is behind, or waits until pods become available."""
    status = workload.get("status") or {}
    if status.get("readyReplicas", 0) > status.get("availableReplicas", 0):
        return bool(workload["spec"].get("minReadySeconds"))
    return bool(status.get("observedGeneration", 0) < workload["metadata"].get("generation", 0))


def _expires(job: Object) -> bool:
    """Whether the Job will be deleted some seconds after its end."""
    over = is_true(job, "Complete") or is_true(job, "Failed")
    return over and not deleting(job) and "ttlSecondsAfterFinished" in job["spec"]


def _waits_for_others(obj: Object) -> bool:
    """Whether the garbage collector is at work, or the scheduler will retry after its back-off."""
    if deleting(obj):
        return bool({"foregroundDeletion", "orphan"} & set(finalizers(obj)))
    refused = condition(obj, "PodScheduled") or {}
    return refused.get("reason") in ("Unschedulable", "SchedulerError")


def _lists(claim: Object, pod: Object) -> bool:
    listed = reserved_for(claim)
    if any(entry["uid"] == uid(pod) for entry in listed):
        return True
    return any(is_group(entry) and entry["name"] == group_name(pod) for entry in listed)


def _is(pod: Object, state: str) -> bool:
    live = not deleting(pod) and not ended(pod)
    match state:
        case "running":
            return live and phase(pod) == "Running"
        case "ready":
            return live and ready(pod)
        case "pending":
            return live and phase(pod) == "Pending"
        case "live":
            return live
        case "ended":
            return ended(pod)
    return True


def _ordinal(pod: Object) -> str:
    """The pod's index in a form that sorts by number; "" without an index."""
    index = annotations_of(pod).get(INDEX) or labels(pod).get("apps.kubernetes.io/pod-index", "")
    return f"{index:>6}"


def _changed(node: Object) -> bool:
    spec = node.get("spec") or {}
    return bool(spec.get("unschedulable") or spec.get("taints"))


def _ready(status: str, now: str, reason: str = "") -> list[Object]:
    ready = {"status": status, "lastTransitionTime": now}
    if reason:
        ready["reason"] = reason
    return [{"type": "Ready", **ready}, {"type": "ContainersReady", **ready}]


def _running(now: str) -> Object:
    return {"phase": "Running", "conditions": _ready("True", now)}


def _stopped(pod: Object, now: str) -> Object:
    code = 0 if pod["spec"].get("restartPolicy", "Always") == "Always" else 143
    return _ended(pod, code, now)


def _ended(pod: Object, code: int, now: str) -> Object:
    reason = "Completed" if code == 0 else "Error"
    state = {
        "terminated": {"exitCode": code, "reason": reason, "startedAt": now, "finishedAt": now}
    }
    containers = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": container["image"],
            "ready": False,
            "restartCount": 0,
            "state": state,
        }
        for container in pod["spec"]["containers"]
    ]
    return {
        "phase": "Succeeded" if code == 0 else "Failed",
        "conditions": _ready("False", now, "PodCompleted" if code == 0 else "PodFailed"),
        "containerStatuses": containers,
    }
