"""A stand-in for the kubelets of a fleet: it admits, starts and stops pods, and reports findings.

As a kubelet does, the stand-in reads every claim live before it starts a pod. It refuses a pod if
the claim is not allocated or does not list the pod. It also watches claims, and reports a finding
if a claim loses its allocation while a pod runs on it. It shares no code with claimctl's decisions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from claimctl.controlplane.following import Follower
from claimctl.controlplane.nodes import Fleet, join, report
from claimctl.embedded.components.kubelet.kubelet import EXIT_CODE, PREPARE_FAILED, RUN_SECONDS
from claimctl.embedded.components.kubelet.statuses import failed, finished, running, stopped
from claimctl.embedded.components.objects import (
    annotations_of,
    controller_of,
    deleting,
    key_of,
    name,
    namespace,
    uid,
)
from claimctl.embedded.components.pods import (
    allocation_of,
    claims_used,
    ended,
    group_name,
    is_group,
    node_name,
    pod_claims,
    reserved_for,
)
from claimctl.kube.documents import STRATEGIC, DocumentClient, Refused, Version
from claimctl.kube.errors import KubeError
from claimctl.wire.base import Object
from claimctl.wire.seams import Transport

POD: Version = ("v1", "Pod")
_AT_A_TIME = 16
"""The greatest number of concurrent requests."""
_RETRY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How long things take on a node, in seconds."""

    start: float = 0.05
    stop: float = 0.05
    job: float = 1.0
    """How long a pod of a Job runs if it has no annotation for that."""


@dataclass(frozen=True, slots=True)
class Finding:
    """An event on a node that must not happen."""

    rule: str
    """BoundWithoutAllocation (the pod was bound on an unallocated claim), or LostAllocation (the
    claim lost its allocation while the pod ran)."""
    pod: str
    claim: str
    message: str


@dataclass(slots=True)
class _LocalPod:
    """One pod on a node."""

    pod: Object
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    gone: bool = False
    runs: bool = False
    """Whether the containers run now. The API server may not know it yet."""
    ran: bool = False
    """Whether the containers ever ran here."""
    reported: bool = False
    """Whether the kubelet has reported to the API server that the containers run."""
    booted: bool = False
    """Whether the node was rebooted, so that the containers are gone."""
    restarts: int = 0

    def take(self, pod: Object) -> None:
        self.pod = pod
        self.changed.set()

    @property
    def leaving(self) -> bool:
        return self.gone or deleting(self.pod) or ended(self.pod)

    async def until(self, holds: Callable[[], bool], seconds: float | None = None) -> bool:
        """Wait until ``holds`` returns true; False if it did not within ``seconds``."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self.changed.clear()
                    await self.changed.wait()
        except TimeoutError:
            return False
        return True

    def interrupted(self) -> bool:
        """Whether the containers have to end, or have ended with a reboot."""
        return self.leaving or self.booted

    def released(self) -> bool:
        """Whether the pod's object is being deleted or is gone."""
        return self.gone or deleting(self.pod)


@dataclass(slots=True)
class Kubelets:
    """The kubelets of all nodes of a fleet.

    Attributes:
        namespace: if set, only the pods of this namespace are played, on any node.
        pod_groups: whether a listed PodGroup admits the pods that name it (a feature gate of the
            kubelet).
        findings: events that must not happen.
        refused: by ``namespace/pod``, why the last attempt to start the pod failed.
    """

    transport: Transport
    fleet: Fleet
    pod_groups: bool = False
    namespace: str = ""
    pace: Pace = field(default_factory=Pace)
    findings: list[Finding] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    _pods: dict[str, _LocalPod] = field(default_factory=dict)
    _lost: set[str] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_AT_A_TIME))
    client: DocumentClient = field(init=False)

    def __post_init__(self) -> None:
        self.client = DocumentClient(self.transport, "kubelet")

    async def run(self, joined: asyncio.Event | None = None) -> None:
        """Register the nodes, then play their kubelets until cancelled.

        Args:
            joined: set as soon as all nodes are registered.
        """
        await join(self.client, self.fleet)
        if joined is not None:
            joined.set()
        pods = Follower(self.transport, self.client, POD, self._pod_changed, self.namespace)
        claims = Follower(
            self.transport, self.client, self.fleet.claims, self._claim_changed, self.namespace
        )
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(pods.run())
                group.create_task(claims.run())
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def lose(self, node: str) -> None:
        """Cut the node off: its containers go on running, and its kubelet reports nothing."""
        self._lost.add(node)

    def in_touch(self) -> list[str]:
        """The nodes that are not cut off."""
        return [node for node in self.fleet.names if node not in self._lost]

    async def recover(self, node: str, *, rebooted: bool) -> None:
        """Connect the node again. After a reboot, it has a new boot ID and no containers."""
        if rebooted:
            self.fleet.boots[node] = self.fleet.boots.get(node, 0) + 1
        self._lost.discard(node)
        await report(self.client, self.fleet, node)
        for local in self._on(node):
            local.booted = rebooted and local.runs
            local.changed.set()

    def _on(self, node: str) -> list[_LocalPod]:
        return [local for local in self._pods.values() if node_name(local.pod) == node]

    # Changes of pods and claims

    def _pod_changed(self, change: str, pod: Object) -> None:
        node = node_name(pod)
        if not node or not (self.namespace or node in self.fleet.names):
            return
        local = self._pods.get(uid(pod))
        if change == "DELETED":
            if local is not None:
                local.gone = True
                local.take(pod)
                # a kubelet that is not cut off stops the containers
                if node_name(pod) not in self._lost:
                    self._forget(local)
        elif local is None:
            local = self._pods[uid(pod)] = _LocalPod(pod)
            self._begin(local)
        else:
            local.take(pod)

    def _forget(self, local: _LocalPod) -> None:
        local.runs = False
        self._pods.pop(uid(local.pod), None)
        self.refused.pop("/".join(key_of(local.pod)), None)

    def _claim_changed(self, change: str, claim: Object) -> None:
        if change != "DELETED" and allocation_of(claim) is not None:
            return
        key = "/".join(key_of(claim))
        for local in self._pods.values():
            if local.runs and not local.gone and key in claims_used(local.pod):
                self._find("LostAllocation", local, key, "the claim lost its allocation")

    def _find(self, rule: str, local: _LocalPod, claim: str, message: str) -> None:
        finding = Finding(rule, "/".join(key_of(local.pod)), claim, message)
        if finding not in self.findings:
            self.findings.append(finding)

    def _begin(self, local: _LocalPod) -> None:
        task = asyncio.create_task(self._live(local), name=f"pod {name(local.pod)}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # The life of a pod on its node

    async def _live(self, local: _LocalPod) -> None:
        """Play the pod from its binding until its object is gone."""
        await asyncio.sleep(self.pace.start)
        while not local.gone:
            try:
                await self._step(local)
            except (KubeError, Refused, OSError):
                # the API server is away, or another client wrote the pod: try again
                await asyncio.sleep(_RETRY_SECONDS)

    async def _step(self, local: _LocalPod) -> None:
        await self._in_touch(local)
        if deleting(local.pod):
            await self._stop(local)
            # a finalizer, or a second deletion with a longer grace, may keep the object
            await local.until(lambda: local.gone)
        elif ended(local.pod):
            await local.until(local.released)
        elif local.booted:
            await self._boot(local)
        elif await self._started(local):
            await self._run(local)
        else:
            await local.until(lambda: local.leaving, _RETRY_SECONDS)

    async def _in_touch(self, local: _LocalPod) -> None:
        node = node_name(local.pod)
        await local.until(lambda: local.gone or node not in self._lost)

    async def _started(self, local: _LocalPod) -> bool:
        """Start the containers unless a claim forbids it; return whether they run."""
        if not local.runs and not await self._admitted(local):
            return False
        if not local.reported:
            await self._report(local, running(local.pod, _now(), local.restarts))
            local.reported = True
        return True

    async def _admitted(self, local: _LocalPod) -> bool:
        """Try to start the containers; return whether they were started."""
        missing = await self._missing(local)
        plain = "/".join(key_of(local.pod))
        if missing and self.refused.get(plain) != missing:
            self.refused[plain] = missing
            await self._warn(local.pod, missing)
        if missing or local.leaving:
            return False
        self.refused.pop(plain, None)
        local.runs, local.ran, local.reported = True, True, False
        return True

    async def _missing(self, local: _LocalPod) -> str:
        """Why the devices of the pod cannot be prepared, or ''."""
        pod = local.pod
        for each in pod_claims(pod):
            if each.claim == "":
                continue
            shown = f"{namespace(pod)}/{each.claim or each.template}"
            claim = await self._claim(namespace(pod), each.claim) if each.claim else None
            if claim is None:
                return f"failed to fetch ResourceClaim {shown}: not found"
            if allocation_of(claim) is None:
                self._find("BoundWithoutAllocation", local, shown, "bound on an unallocated claim")
                return f"resource claim {shown} is not allocated"
            if not self._may_use(pod, claim):
                return f"pod {name(pod)} ({uid(pod)}) is not allowed to use ResourceClaim {shown}"
        return ""

    async def _claim(self, space: str, plain: str) -> Object | None:
        try:
            async with self._slots:
                return await self.client.get(self.fleet.claims, space, plain)
        except Refused as refused:
            if refused.code == 404:
                return None
            raise

    def _may_use(self, pod: Object, claim: Object) -> bool:
        """Whether the claim lists the pod or its PodGroup.

        The kubelet compares PodGroups by name, because a pod does not have its group's UID.
        """
        listed = reserved_for(claim)
        if any(each["uid"] == uid(pod) for each in listed):
            return True
        if not self.pod_groups or not group_name(pod):
            return False
        return any(is_group(each) and each["name"] == group_name(pod) for each in listed)

    async def _run(self, local: _LocalPod) -> None:
        """Run until the containers end, the pod is deleted, or the node is rebooted."""
        if await local.until(local.interrupted, self._run_seconds(local.pod)):
            return
        await self._in_touch(local)
        code = int(annotations_of(local.pod).get(EXIT_CODE, "0"))
        policy = local.pod["spec"].get("restartPolicy", "Always")
        if policy == "Always" or (policy == "OnFailure" and code):
            local.restarts += 1
            await self._report(local, running(local.pod, _now(), local.restarts))
        elif not local.leaving:
            await self._end(local, code)

    async def _end(self, local: _LocalPod, code: int) -> None:
        """End the containers, then report it.

        In this order, no other pod can get the devices while the containers run.
        """
        local.runs = False
        try:
            await self._report(local, finished(local.pod, _now(), code, local.restarts))
        except (KubeError, Refused, OSError):
            # the next step reports the end again, and does not start the containers again
            local.runs = True
            raise

    def _run_seconds(self, pod: Object) -> float | None:
        """Seconds until the containers end; None if they run until the pod is deleted."""
        given = annotations_of(pod).get(RUN_SECONDS)
        if given is not None:
            return float(given)
        owner = controller_of(pod)
        return self.pace.job if owner is not None and owner["kind"] == "Job" else None

    async def _boot(self, local: _LocalPod) -> None:
        """Handle a reboot of the node: the restart policy decides if the pod starts again."""
        local.runs = False
        if local.pod["spec"].get("restartPolicy", "Always") == "Never":
            await self._report(local, failed(local.pod, _now()))
        local.booted = False
        local.restarts += 1

    async def _stop(self, local: _LocalPod) -> None:
        """Stop the containers, report a terminal phase, and then delete the object."""
        await asyncio.sleep(self.pace.stop)
        await self._in_touch(local)
        local.runs = False
        started = local.ran or (local.pod.get("status") or {}).get("phase") != "Pending"
        if not ended(local.pod):
            # since Kubernetes 1.27, a pod that was never started gets a terminal phase too
            await self._report(
                local, stopped(local.pod, _now()) if started else {"phase": "Failed"}
            )
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid(local.pod)}}
        async with self._slots:
            await self.client.delete(POD, *key_of(local.pod), options)

    async def _report(self, local: _LocalPod, status: Object) -> None:
        patch = {"metadata": {"uid": uid(local.pod)}, "status": status}
        async with self._slots:
            local.pod = await self.client.patch_status(POD, *key_of(local.pod), patch, STRATEGIC)

    async def _warn(self, pod: Object, message: str) -> None:
        now = _now()
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{name(pod)}.", "namespace": namespace(pod)},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": name(pod),
                "namespace": namespace(pod),
                "uid": uid(pod),
            },
            "reason": PREPARE_FAILED,
            "message": message,
            "type": "Warning",
            "source": {"component": "kubelet", "host": node_name(pod)},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        with suppress(Refused):
            await self.client.create(body)


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
