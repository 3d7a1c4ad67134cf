"""Where a case is played: a cluster without kubelets, real or embedded.

The case makes nodes and pods, and rests. At each rest the stage notes what there is to see: where
each pod is, why it is nowhere, and the Events.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from kube_in_process.components.objects import (
    annotations_of,
    controller_of,
    deleting,
    name,
    uid,
)
from kube_in_process.components.pods import node_name
from kube_in_process.real.client import STRATEGIC, Document, DocumentClient, Refused, Version

SPACE = "case"
POD: Version = ("v1", "Pod")
NODE: Version = ("v1", "Node")
EVENT: Version = ("v1", "Event")
CLASS: Version = ("scheduling.k8s.io/v1", "PriorityClass")
DAEMON_SET: Version = ("apps/v1", "DaemonSet")
PRIORITIES = {"low": 10, "mid": 100, "high": 1000}
SHOWN_CONDITIONS = ("PodScheduled", "DisruptionTarget")
LONGEST_REST = 60.0
CHANCE = "a terminating pod on the nominated node"
"""Whether a pod is tried between the ends of two victims is chance."""
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Rest = dict[str, Any]


@dataclass
class CaseStage:
    """One case on one cluster. ``rests``: what was seen, by the name of the rest."""

    client: DocumentClient
    rests: dict[str, Rest] = field(default_factory=dict)
    quiet: float = 2.5
    """How long nothing may change at a rest, in seconds."""
    look: float = 0.3
    """Seconds between two looks."""
    _nodes: list[str] = field(default_factory=list)
    _classes: list[str] = field(default_factory=list)
    _names: dict[str, str] = field(default_factory=dict)

    # What a case makes

    async def node(self, plain: str, **given: Any) -> None:
        """Register a node; ``cpu``, ``memory``, ``pods`` and ``more`` are its allocatable."""
        allocatable = {"cpu": "4", "memory": "8Gi", "pods": "20", "ephemeral-storage": "10Gi"}
        for key in ("cpu", "memory", "pods"):
            allocatable[key] = given.get(key, allocatable[key])
        allocatable |= given.get("more", {})
        labels = {"kubernetes.io/hostname": plain, **given.get("labels", {})}
        kept = {key: value for key, value in labels.items() if value is not None}
        meta = {"name": plain, "labels": kept}
        await self.client.create({"apiVersion": "v1", "kind": "Node", "metadata": meta})
        self._nodes.append(plain)
        await self.allocatable(plain, allocatable)
        # the API server adds the taint not-ready to new nodes
        spec = {"taints": given.get("taints"), "unschedulable": given.get("unschedulable")}
        await self.client.patch(NODE, "", plain, {"spec": spec})

    async def allocatable(self, node: str, quantities: Document) -> None:
        now = _time(datetime.now(UTC))
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        times = {"lastHeartbeatTime": now, "lastTransitionTime": now}
        status = {
            "capacity": quantities,
            "allocatable": quantities,
            "conditions": [{**ready, **times}],
        }
        await self.client.patch_status(NODE, "", node, {"status": status})

    async def priorities(self) -> None:
        for plain, value in PRIORITIES.items():
            await self.priority_class(plain, value)

    async def priority_class(self, plain: str, value: int, **more: Any) -> None:
        head = {"apiVersion": CLASS[0], "kind": CLASS[1], "metadata": {"name": plain}}
        await self.client.create({**head, "value": value, **more})
        self._classes.append(plain)
        # the API server knows a new class only after a moment
        await asyncio.sleep(1.0)

    async def pod(self, plain: str, **given: Any) -> None:
        """Create a pod. ``cpu``, ``memory`` and ``more``: requests; ``spec``: further fields."""
        await self.client.create(pod_body(plain, **given))

    async def create(self, api_version: str, kind: str, plain: str, spec: Document) -> None:
        meta = {"name": plain, "namespace": SPACE}
        await self.client.create(
            {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec}
        )

    # What a case does

    async def refused(self, plain: str, **given: Any) -> None:
        """Create a pod that is refused, and note the answer."""
        try:
            await self.pod(plain, **given)
        except Refused as refused:
            self.rests[f"refused {plain}"] = {"code": refused.status, "message": refused.message}

    async def start(self, minutes: int = 1, only: str = "") -> None:
        """Report that bound pods run and are ready, since some minutes ago."""
        now = datetime.now(UTC)
        since = _time(now - timedelta(minutes=minutes))
        times = {"lastTransitionTime": _time(now)}
        conditions = [
            {"type": kind, "status": "True", **times}
            for kind in ("Initialized", "Ready", "ContainersReady")
        ]
        status = {"phase": "Running", "startTime": since, "conditions": conditions}
        for pod in await self.client.list(POD, SPACE):
            if node_name(pod) and not deleting(pod) and (not only or name(pod) == only):
                await self.client.patch_status(POD, SPACE, name(pod), {"status": status}, STRATEGIC)

    async def resize(self, pod: str, cpu: str) -> None:
        """Ask for another size of a pod."""
        container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
        await self.client.resize(SPACE, pod, {"spec": {"containers": [container]}})

    async def report(
        self, pod: str, allocated: str = "", actual: str = "", pending: str = ""
    ) -> None:
        """Report the sizes that a kubelet has admitted and given, and that a resize waits."""
        status: Document = {"phase": "Running", "conditions": []}
        now = _time(datetime.now(UTC))
        main: Document = {"name": "main", "image": "x", "imageID": "x", "ready": True}
        main |= {"restartCount": 0, "started": True, "state": {"running": {"startedAt": now}}}
        if allocated:
            main["allocatedResources"] = {"cpu": allocated}
        if actual:
            main["resources"] = {"requests": {"cpu": actual}}
        status["containerStatuses"] = [main]
        if pending:
            condition = {"type": "PodResizePending", "status": "True", "reason": pending}
            status["conditions"] = [{**condition, "lastTransitionTime": now}]
        await self.client.patch_status(POD, SPACE, pod, {"status": status}, STRATEGIC)

    async def end_terminating(self) -> None:
        """Remove the pods that are being deleted, as their kubelets would."""
        for pod in await self.client.list(POD, SPACE):
            if deleting(pod):
                await self.delete(name(pod), force=True)

    async def delete(self, pod: str, *, force: bool = False) -> None:
        await self.client.delete(POD, SPACE, pod, {"gracePeriodSeconds": 0} if force else {})

    async def patch_node(self, node: str, spec: Document, labels: Document | None = None) -> None:
        body: Document = {"spec": spec}
        if labels is not None:
            body["metadata"] = {"labels": labels}
        await self.client.patch(NODE, "", node, body)

    async def remove_node(self, node: str) -> None:
        self._nodes.remove(node)
        await self.client.delete(NODE, "", node)

    async def patch(self, kind: Version, plain: str, body: Document) -> None:
        await self.client.patch(kind, SPACE, plain, body)

    # Rests

    async def rest(self, title: str, seconds: float = 0.0) -> None:
        """Wait until nothing changes any more, and note what there is."""
        loop = asyncio.get_running_loop()
        begun = since = loop.time()
        last = await self._look()
        while loop.time() - since < max(self.quiet, seconds) and loop.time() - begun < LONGEST_REST:
            await asyncio.sleep(self.look)
            now = await self._look()
            if now != last:
                last, since = now, loop.time()
        self.rests[title] = last

    async def _look(self) -> Rest:
        pods = await self.client.list(POD, SPACE)
        self._names |= {uid(pod): name(pod) for pod in pods}
        bare = [pod for pod in pods if controller_of(pod) is None]
        rest: Rest = {"pods": {name(pod): _shown(pod) for pod in sorted(bare, key=name)}}
        owned = [pod for pod in pods if controller_of(pod) is not None]
        if owned:
            rest["owned"] = _owned(owned)
        sets = await self.client.list(DAEMON_SET, SPACE)
        if sets:
            rest["daemonSets"] = {name(daemon_set): daemon_set.get("status") for daemon_set in sets}
        rest["events"] = await self._events()
        return rest

    async def _events(self) -> list[str]:
        texts = set()
        for event in await self.client.list(EVENT, SPACE):
            about = event["involvedObject"]
            plain = about["name"] if about["kind"] != "Pod" else self._plain(about)
            text = self._without_uids(event.get("message", ""))
            if CHANCE in text:
                continue
            texts.add(f"{event['type']} {event['reason']} {plain}: {text}")
        return sorted(texts)

    def _plain(self, about: Document) -> str:
        return _unnumbered(about["name"])

    def _without_uids(self, text: str) -> str:
        return _UID.sub(
            lambda pair: f"<{_unnumbered(self._names.get(pair.group(), 'uid'))}>", _stable(text)
        )

    # The end

    async def clear(self) -> None:
        """Remove everything, for the next case on the same cluster."""
        for kind in (DAEMON_SET, ("apps/v1", "ReplicaSet"), ("policy/v1", "PodDisruptionBudget")):
            for body in await self.client.list(kind, SPACE):
                await self.client.delete(kind, SPACE, name(body))
        for body in await self.client.list(("v1", "Service"), SPACE):
            await self.client.delete(("v1", "Service"), SPACE, name(body))
        for plain in self._classes:
            await self.client.delete(CLASS, "", plain)
        async with asyncio.timeout(LONGEST_REST):
            while await self._leftovers():  # noqa: ASYNC110 (only the server knows the answer)
                await asyncio.sleep(self.look)
        for event in await self.client.list(EVENT, SPACE):
            await self.client.delete(EVENT, SPACE, name(event))
        for plain in self._nodes:
            await self.client.delete(NODE, "", plain)

    async def _leftovers(self) -> bool:
        pods = await self.client.list(POD, SPACE)
        for pod in pods:
            await self.delete(name(pod), force=True)
        return bool(pods)


def pod_body(plain: str, **given: Any) -> Document:
    """A pod with one container."""
    meta: Document = {"name": plain, "namespace": SPACE, "labels": given.get("labels", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod_spec(**given)}


def pod_spec(**given: Any) -> Document:
    """``cpu``, ``memory``, ``more`` are requests; ``limits``; ``priority``: a class; ``spec``."""
    requests = {key: given[key] for key in ("cpu", "memory") if key in given}
    requests |= given.get("more", {})
    resources: Document = {"requests": requests}
    if "limits" in given or "more" in given:
        resources["limits"] = given.get("limits", given.get("more"))
    container = {"name": "main", "image": "registry.example/main:1", "resources": resources}
    container |= given.get("container", {})
    spec: Document = {"containers": [container], **given.get("spec", {})}
    if "priority" in given:
        spec["priorityClassName"] = given["priority"]
    return spec


def _shown(pod: Document) -> Rest:
    status, spec = pod.get("status") or {}, pod["spec"]
    conditions = {
        condition["type"]: " ".join(
            [
                condition["status"],
                condition.get("reason", ""),
                _stable(condition.get("message", "")),
            ]
        ).strip()
        for condition in status.get("conditions") or ()
        if condition["type"] in SHOWN_CONDITIONS
    }
    return {
        "node": node_name(pod),
        "nominated": status.get("nominatedNodeName", ""),
        "priority": spec.get("priority"),
        "preemption": spec.get("preemptionPolicy"),
        "quality": status.get("qosClass"),
        "leaves": deleting(pod),
        **conditions,
    }


def _owned(pods: list[Document]) -> Rest:
    """By owner: the number of pods on each node, and what their specs add to the template."""
    owners = sorted({f"{_owner(pod)}" for pod in pods})
    by_owner: Rest = {}
    for owner in owners:
        mine = [pod for pod in pods if _owner(pod) == owner]
        nodes = Counter(node_name(pod) or "none" for pod in mine)
        by_owner[owner] = {"nodes": dict(sorted(nodes.items()))}
        if owner.startswith("DaemonSet"):
            by_owner[owner]["pods"] = sorted((_daemon(pod) for pod in mine), key=_text)
    return by_owner


def _owner(pod: Document) -> str:
    owner = controller_of(pod)
    assert owner is not None
    return f"{owner['kind']} {owner['name']}"


def _text(rest: Rest) -> str:
    return json.dumps(rest, sort_keys=True)


def _daemon(pod: Document) -> Rest:
    labels = {**pod["metadata"].get("labels", {})}
    if "controller-revision-hash" in labels:
        labels["controller-revision-hash"] = "<hash>"
    # which pod of two is replaced first is chance
    affinity = json.dumps(pod["spec"].get("affinity"))
    return {
        "bound": bool(node_name(pod)),
        "leaves": deleting(pod),
        "labels": labels,
        "annotations": annotations_of(pod),
        "affinity": json.loads(affinity.replace(f'["{node_name(pod)}"]', '["<its node>"]')),
        "tolerations": pod["spec"].get("tolerations"),
    }


def _unnumbered(plain: str) -> str:
    """Without the random end of a generated name."""
    return re.sub(r"-[bcdfghjklmnpqrstvwxz2-9]{5}$", "-<random>", plain)


def _stable(text: str) -> str:
    return re.sub(r"-[bcdfghjklmnpqrstvwxz2-9]{5}\b", "-<random>", text)


def _time(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


Case = Callable[[CaseStage], Any]
