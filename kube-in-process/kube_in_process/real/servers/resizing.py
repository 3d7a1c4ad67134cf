"""What the stand-in does when the size of a running pod changes: by the rules of the emulated
kubelet, which no server takes part in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from kube_in_process.components.kubelet.sizes import (
    PENDING,
    AdmittedPods,
    ResizeAnswer,
    Sizes,
    Verdict,
    is_resized,
    restarts,
)
from kube_in_process.components.kubelet.statuses import (
    resize_begins,
    resize_ends,
    resize_reverted,
    resize_waits,
)
from kube_in_process.components.objects import condition, uid
from kube_in_process.kinds.pod_requests import amounts
from kube_in_process.real.client import RequestFailed
from kube_in_process.real.servers.nodes import NODE
from kube_in_process.real.servers.pod_worker import Host, PodWorker, now

_RETRY_SECONDS = 1.0
"""A node with waiting resizes is looked at this often: the stand-in does not follow nodes."""


@dataclass(slots=True)
class Resizer:
    """Looks at the resizes of one node after the other.

    Args:
        on: the workers of the pods on a node.
        start: runs a task until the stand-in ends.
    """

    host: Host
    on: Callable[[str], Iterable[PodWorker]]
    start: Callable[[asyncio.Task[None]], None]
    _busy: set[str] = field(default_factory=set)
    """Nodes with a task."""
    _again: set[str] = field(default_factory=set)
    """Nodes on which something has changed since the last look."""

    def look(self, worker: PodWorker, node: str) -> None:
        """Look at the node if the pod has another size than its spec wants."""
        sizes = worker.sizes
        if sizes is not None and (
            is_resized(worker.pod, sizes) or condition(worker.pod, PENDING) is not None
        ):
            self._begin(node)

    def _begin(self, node: str) -> None:
        self._again.add(node)
        if node not in self._busy:
            self._busy.add(node)
            self.start(asyncio.create_task(self._run(node), name=f"resizes of {node}"))

    async def _run(self, node: str) -> None:
        try:
            while node in self._again:
                self._again.discard(node)
                if await self._turn(node):
                    self._again.add(node)
                    await asyncio.sleep(_RETRY_SECONDS)
        finally:
            self._busy.discard(node)

    async def _turn(self, node: str) -> bool:
        """Look once; whether something is left to look at."""
        try:
            return await self._retry(node)
        except (RequestFailed, OSError):
            # the API server is away, or the node or pod is gone: look again
            return any(worker.sizes is not None for worker in self.on(node))

    async def _retry(self, node: str) -> bool:
        if node in self.host.lost:
            return True
        async with self.host.slots:
            stored = await self.host.client.get(NODE, "", node)
        workers = {
            uid(worker.pod): worker
            for worker in self.on(node)
            if worker.sizes is not None and (worker.runs or not worker.leaving)
        }
        pods = {key: worker.pod for key, worker in workers.items()}
        here = AdmittedPods(pods, {key: _sizes(worker) for key, worker in workers.items()})
        for pod in list(here.reverted()):
            await workers[uid(pod)].report(resize_reverted(pod))
        waits = False
        for verdict in list(here.retry(amounts(stored["status"].get("allocatable")))):
            worker = workers[uid(verdict.pod)]
            if verdict.answer is ResizeAnswer.ADMITTED:
                await self._resize(worker, here.sizes[uid(verdict.pod)])
            else:
                waits = True
                await self._report_waiting(worker, verdict)
        return waits

    async def _resize(self, worker: PodWorker, admitted: Sizes) -> None:
        worker.sizes = admitted
        await worker.report(resize_begins(worker.pod, now(), admitted))
        await asyncio.sleep(self.host.pace.start)
        actual = Sizes(admitted.allocated, admitted.allocated)
        restarted = restarts(worker.pod, admitted)
        worker.sizes = actual
        await worker.report(resize_ends(worker.pod, actual, restarted))

    async def _report_waiting(self, worker: PodWorker, verdict: Verdict) -> None:
        reason, pod = str(verdict.answer), verdict.pod
        old = condition(pod, PENDING) or {}
        generation = pod["metadata"].get("generation", 0)
        told = (old.get("reason"), old.get("message"), old.get("observedGeneration"))
        if told != (reason, verdict.message, generation):
            await worker.report(resize_waits(pod, now(), reason, verdict.message))


def _sizes(worker: PodWorker) -> Sizes:
    return worker.sizes or Sizes.wanted(worker.pod)
