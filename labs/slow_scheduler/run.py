"""One cluster with all tries in it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field

from kube_in_process.real.servers.kubelet import Kubelets
from kube_in_process.real.servers.nodes import NODE, Fleet
from kube_in_process.real.servers.plane import ControlPlane
from kube_in_process.real.servers.programs import SCHEDULER

from claimctl.kube.transport import HttpTransport
from claimctl_demo.documents import DocumentClient
from labs import frame
from labs.slow_scheduler.binding import STORAGE_CLASS, Act, BindingTry
from labs.torture_real.controllers import Controllers

RATE, VOLUME = "rate", "volume"
"""Why the scheduler is slow: the rate limit of its client, or a volume that comes late."""
READY = 240.0
"""Seconds for every claim to be held, and for every claim to be freed in the end."""
REQUESTS_A_SECOND = 20
"""Of the slow scheduler."""
BUSY = 38.0
"""Seconds for which it is busy with other pods."""
BEGUN = 6.0
"""Seconds after which it has begun with the pods of the tries."""
VOLUMES_AFTER = 35.0
WATCHED = 110.0
"""Seconds in which all pods are bound that will be."""
AT_A_TIME = 16
ELSEWHERE = "a-busy-place"
"""Where the other pods are: a scheduler that starts takes pods by the names of their namespaces."""


@dataclass
class SlowRun:
    """All tries, on one cluster."""

    plane: ControlPlane
    transport: HttpTransport
    pod_groups: bool
    cause: str
    tries: list[BindingTry] = field(default_factory=list)
    forbidden: list[str] = field(default_factory=list)
    """What the stand-in for the kubelets saw that must not happen."""
    unreleased: list[str] = field(default_factory=list)
    _client: DocumentClient = field(init=False)

    def __post_init__(self) -> None:
        self._client = DocumentClient(self.transport, "people")

    async def play(self, controllers: Controllers, count: int) -> None:
        """Play ``count`` tries of each reason; raises TimeoutError if a claim is not held."""
        acts, late = list(Act), self.cause == VOLUME
        fleet = Fleet(self.plane.programs.version, count=count * len(acts) + 1, devices=1)
        self.tries = [
            BindingTry(self._client, self.pod_groups, late, fleet, acts[number % len(acts)], number)
            for number in range(count * len(acts))
        ]
        kubelets = Kubelets(self.transport, fleet, pod_groups=self.pod_groups)
        async with frame.nodes(kubelets):
            await controllers.install(self.transport)
            controllers.start("one")
            await self._prepare()
            await self._slow_down(fleet)
            await self._watch()
            self.forbidden = [f"{finding.pod}: {finding.rule}" for finding in kubelets.findings]
            await self._conclude()

    async def _prepare(self) -> None:
        if self.cause == VOLUME:
            await self._client.create(_storage_class())
        await self._in_each(BindingTry.prepare)
        if self.cause == VOLUME:
            await self._in_each(lambda each: self._client.create(each.volume_claim()))
        await self._until(BindingTry.is_held)
        await self._in_each(BindingTry.empty)
        await self._until(BindingTry.is_empty)
        await self._in_each(BindingTry.list_ahead)

    async def _slow_down(self, fleet: Fleet) -> None:
        """Make the scheduler slow, give it the pods of the tries, and release their claims."""
        if self.cause == VOLUME:
            await self._in_each(BindingTry.begin)
        else:
            server = self.plane.servers[SCHEDULER]
            rate = REQUESTS_A_SECOND
            limits = (f"--kube-api-qps={rate}", f"--kube-api-burst={rate}")
            server.command = (*server.command, *limits)
            await asyncio.to_thread(server.stop)
            meta = {"name": ELSEWHERE}
            await self._client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": meta})
            others = (_other_pod(number, fleet.names[-1]) for number in range(int(BUSY * rate)))
            await self._carry_out(self._client.create(pod) for pod in others)
            await self._in_each(BindingTry.begin)
            server.start()
        await asyncio.sleep(BEGUN)
        await self._in_each(lambda each: each.release(time.monotonic()))
        frame.say("the claims are to be released")

    async def _watch(self) -> None:
        """Note when each pod is bound, for as long as one may be."""
        began, delivered = time.monotonic(), self.cause != VOLUME
        while time.monotonic() - began < WATCHED:
            await asyncio.sleep(0.5)
            if not delivered and time.monotonic() - began > VOLUMES_AFTER:
                delivered = True
                await self._in_each(BindingTry.deliver)
            await self._in_each(lambda each: each.look(time.monotonic()))
            if all(attempt.bound for attempt in self.tries):
                break
        await asyncio.sleep(BEGUN)

    async def _conclude(self) -> None:
        """With the pods gone every claim is freed."""
        frame.say("the pods go")
        for attempt in self.tries:
            if attempt.act is Act.REALLOCATED:
                await self._client.patch(NODE, "", attempt.node, {"spec": {"unschedulable": None}})
        await self._in_each(BindingTry.clear)
        try:
            await self._until(BindingTry.is_free)
        except TimeoutError:
            self.unreleased = await self._lacking(BindingTry.is_free)

    # All of them

    async def _in_each(self, act: Callable[[BindingTry], Awaitable[object]]) -> None:
        await self._carry_out(act(attempt) for attempt in self.tries)

    async def _carry_out(self, acts: Iterable[Awaitable[object]]) -> None:
        await frame.together(acts, AT_A_TIME)

    async def _until(self, holds: Callable[[BindingTry], Awaitable[bool]]) -> None:
        await frame.until_none(lambda: self._lacking(holds), READY)

    async def _lacking(self, holds: Callable[[BindingTry], Awaitable[bool]]) -> list[str]:
        """The namespaces of the tries for which something does not hold."""
        answers = await frame.together((holds(attempt) for attempt in self.tries), AT_A_TIME)
        pairs = zip(self.tries, answers, strict=True)
        return [attempt.namespace for attempt, answer in pairs if not answer]


def _storage_class() -> dict[str, object]:
    """There is no provisioner: the scheduler waits until the test creates the volume."""
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": STORAGE_CLASS},
        "provisioner": "example.com/nobody",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _other_pod(number: int, node: str) -> dict[str, object]:
    """A pod that has nothing to do with any claim."""
    container = {"name": "main", "image": "other"}
    selector = {"kubernetes.io/hostname": node}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"other-{number}", "namespace": ELSEWHERE},
        "spec": {"containers": [container], "nodeSelector": selector},
    }
