"""One pod on a node: its worker admits, starts, runs and stops it, and reports its status."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kube_in_process.components.kubelet.admission import injected
from kube_in_process.components.kubelet.kubelet import EXIT_CODE, PREPARE_FAILED, RUN_SECONDS
from kube_in_process.components.kubelet.sizes import Sizes
from kube_in_process.components.kubelet.statuses import (
    failed,
    finished,
    rejected,
    running,
    stopped,
)
from kube_in_process.components.objects import (
    annotations_of,
    controller_of,
    deleting,
    key_of,
    name,
    namespace,
    uid,
)
from kube_in_process.components.pods import (
    allocation_of,
    ended,
    group_name,
    is_group,
    node_name,
    pod_claims,
    reserved_for,
)
from kube_in_process.real.client import (
    STRATEGIC,
    Document,
    DocumentClient,
    Refused,
    RequestFailed,
    Version,
)
from kube_in_process.real.servers.driver import StandInDriver

POD: Version = ("v1", "Pod")
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
class Host:
    """What the workers of all pods share.

    Attributes:
        claims: the served version of ResourceClaims.
        slots: limits the number of concurrent requests.
        pod_groups: whether a listed PodGroup admits the pods that name it.
        lost: names of the nodes that are cut off.
        findings: events that must not happen.
        refused: by ``namespace/pod``, why the last attempt to start the pod failed.
        driver: the driver of the fleet's devices.
    """

    client: DocumentClient
    claims: Version
    slots: asyncio.Semaphore
    pace: Pace
    pod_groups: bool
    lost: set[str]
    findings: list[Finding]
    refused: dict[str, str]
    driver: StandInDriver


@dataclass(slots=True)
class PodWorker:
    """One pod on a node."""

    pod: Document
    host: Host
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
    sizes: Sizes | None = None
    """What the node has admitted; None before that."""

    def take(self, pod: Document) -> None:
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

    def find(self, rule: str, claim: str, message: str) -> None:
        finding = Finding(rule, "/".join(key_of(self.pod)), claim, message)
        if finding not in self.host.findings:
            self.host.findings.append(finding)

    async def run(self) -> None:
        """Play the pod from its binding until its object is gone."""
        await asyncio.sleep(self.host.pace.start)
        while not self.gone:
            try:
                await self._step()
            except (RequestFailed, OSError):
                # the API server is away, or another client wrote the pod: try again
                await asyncio.sleep(_RETRY_SECONDS)

    async def _step(self) -> None:
        await self._in_touch()
        if deleting(self.pod):
            await self._stop()
            # a finalizer, or a second deletion with a longer grace, may keep the object
            await self.until(lambda: self.gone)
        elif ended(self.pod):
            await self.until(self.released)
        elif self.booted:
            await self._boot()
        elif not self.ran and (refusal := self._refusal()) is not None:
            await self.report(rejected(self.pod, now(), *refusal))
        elif await self._started():
            await self._run()
        else:
            await self.until(lambda: self.leaving, _RETRY_SECONDS)

    def _refusal(self) -> tuple[str, str] | None:
        """Why the node refuses the pod, as an annotation of the pod asks; None if it does not."""
        return injected(self.pod, {"metadata": {"name": node_name(self.pod)}})

    async def _in_touch(self) -> None:
        node = node_name(self.pod)
        await self.until(lambda: self.gone or node not in self.host.lost)

    async def _started(self) -> bool:
        """Start the containers unless a claim forbids it; return whether they run."""
        if not self.runs and not await self._admitted():
            return False
        if not self.reported:
            await self.report(running(self.pod, now(), self.restarts, self.sizes))
            self.reported = True
        return True

    async def _admitted(self) -> bool:
        """Try to start the containers; return whether they were started."""
        missing = await self._missing()
        plain = "/".join(key_of(self.pod))
        if missing and self.host.refused.get(plain) != missing:
            self.host.refused[plain] = missing
            await self._warn(missing)
        if missing or self.leaving:
            return False
        self.host.refused.pop(plain, None)
        self.runs, self.ran, self.reported = True, True, False
        self.sizes = self.sizes or Sizes.wanted(self.pod)
        return True

    async def _missing(self) -> str:
        """Why the devices of the pod cannot be prepared, or ''."""
        pod = self.pod
        for pod_claim in pod_claims(pod):
            if pod_claim.claim == "":
                continue
            shown = f"{namespace(pod)}/{pod_claim.claim or pod_claim.template}"
            claim = await self._claim(namespace(pod), pod_claim.claim) if pod_claim.claim else None
            if claim is None:
                return f"failed to fetch ResourceClaim {shown}: not found"
            if allocation_of(claim) is None:
                self.find("BoundWithoutAllocation", shown, "bound on an unallocated claim")
                return f"resource claim {shown} is not allocated"
            if not self._may_use(claim):
                return f"pod {name(pod)} ({uid(pod)}) is not allowed to use ResourceClaim {shown}"
            await asyncio.sleep(self.host.driver.seconds(pod, claim))
            if refusal := self.host.driver.prepare(pod, claim):
                return refusal
        await self.host.driver.offer()
        return ""

    async def _claim(self, space: str, plain: str) -> Document | None:
        try:
            async with self.host.slots:
                return await self.host.client.get(self.host.claims, space, plain)
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def _may_use(self, claim: Document) -> bool:
        """Whether the claim lists the pod or its PodGroup.

        The kubelet compares PodGroups by name, because a pod does not have its group's UID.
        """
        listed = reserved_for(claim)
        if any(reference["uid"] == uid(self.pod) for reference in listed):
            return True
        if not self.host.pod_groups or not group_name(self.pod):
            return False
        return any(
            is_group(reference) and reference["name"] == group_name(self.pod)
            for reference in listed
        )

    async def _run(self) -> None:
        """Run until the containers end, the pod is deleted, or the node is rebooted."""
        if await self.until(self.interrupted, self._run_seconds()):
            return
        await self._in_touch()
        code = int(annotations_of(self.pod).get(EXIT_CODE, "0"))
        policy = self.pod["spec"].get("restartPolicy", "Always")
        if policy == "Always" or (policy == "OnFailure" and code):
            self.restarts += 1
            await self.report(running(self.pod, now(), self.restarts, self.sizes))
        elif not self.leaving:
            await self._end(code)

    async def _end(self, code: int) -> None:
        """End the containers, then report it.

        In this order, no other pod can get the devices while the containers run.
        """
        self.runs = False
        await self._unprepared()
        try:
            await self.report(finished(self.pod, now(), code, self.restarts))
        except (RequestFailed, OSError):
            # the next step reports the end again, and does not start the containers again
            self.runs = True
            raise

    def _run_seconds(self) -> float | None:
        """Seconds until the containers end; None if they run until the pod is deleted."""
        given = annotations_of(self.pod).get(RUN_SECONDS)
        if given is not None:
            return float(given)
        owner = controller_of(self.pod)
        return self.host.pace.job if owner is not None and owner["kind"] == "Job" else None

    async def _boot(self) -> None:
        """Handle a reboot of the node: the restart policy decides if the pod starts again."""
        self.runs = False
        if self.pod["spec"].get("restartPolicy", "Always") == "Never":
            await self.report(failed(self.pod, now()))
        self.booted = False
        self.restarts += 1

    async def _stop(self) -> None:
        """Stop the containers, report a terminal phase, and then delete the object."""
        await asyncio.sleep(self.host.pace.stop)
        await self._in_touch()
        self.runs = False
        await self._unprepared()
        started = self.ran or (self.pod.get("status") or {}).get("phase") != "Pending"
        if not ended(self.pod):
            # since Kubernetes 1.27, a pod that was never started gets a terminal phase too
            await self.report(stopped(self.pod, now()) if started else {"phase": "Failed"})
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid(self.pod)}}
        async with self.host.slots:
            await self.host.client.delete(POD, *key_of(self.pod), options)

    async def _unprepared(self) -> None:
        """Wait until the driver has unprepared what no other pod uses."""
        while not self.gone and self.host.driver.unprepare(self.pod):
            await self.until(lambda: self.gone, _RETRY_SECONDS)
        await self.host.driver.offer()

    async def report(self, status: Document) -> None:
        """Write the pod's status."""
        patch = {"metadata": {"uid": uid(self.pod)}, "status": status}
        async with self.host.slots:
            told = await self.host.client.patch_status(POD, *key_of(self.pod), patch, STRATEGIC)
        # the watch may have brought the deletion before this answer
        if deleting(told) or not deleting(self.pod):
            self.pod = told

    async def _warn(self, message: str) -> None:
        moment, pod = now(), self.pod
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
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }
        with suppress(Refused):
            await self.host.client.create(body)


def now() -> str:
    """The time as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
