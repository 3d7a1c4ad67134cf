"""What plays the nodes of a scenario on a real control plane: stand-ins, or real kubelets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Protocol

from kube_in_process.real.servers.kubelet import Kubelets

from claimctl_demo.documents import DocumentClient
from tests.e2e.habits import PlayedDriver, SiteDriver
from tests.e2e.heartbeats import beat
from tests.e2e.watched import History


class Machines(Protocol):
    """The nodes of one scenario."""

    @property
    def played(self) -> SiteDriver:
        """The driver of the nodes' devices."""
        ...

    async def lose(self, node: str) -> None:
        """Cut a node off: its containers run on, and its kubelet sends nothing."""
        ...

    async def switch_off(self, node: str) -> None:
        """Switch a node off for good: nothing is heard of it any more."""
        ...

    async def recover(self, node: str, *, rebooted: bool) -> None:
        """Bring a lost node back. After a reboot it has a new boot ID and no containers."""
        ...

    async def findings(self, watched: History) -> Sequence[Any]:
        """What happened on the nodes and must not happen."""
        ...


class StandIns:
    """Kubelets that are played, and that prepare no device."""

    def __init__(self, kubelets: Kubelets) -> None:
        self._kubelets = kubelets
        self.played = PlayedDriver(kubelets.driver)

    async def lose(self, node: str) -> None:
        self._kubelets.lose(node)

    async def switch_off(self, node: str) -> None:
        self._kubelets.lose(node)

    async def recover(self, node: str, *, rebooted: bool) -> None:
        await self._kubelets.recover(node, rebooted=rebooted)

    async def findings(self, watched: History) -> Sequence[Any]:
        return self._kubelets.findings


@asynccontextmanager
async def stand_ins(kubelets: Kubelets, *, beating: bool) -> AsyncIterator[StandIns]:
    """Play the kubelets of a fleet.

    Args:
        beating: whether to renew the Leases of the nodes.
    """
    joined = asyncio.Event()
    tasks = [asyncio.create_task(kubelets.run(joined), name="kubelets")]
    try:
        waits = asyncio.create_task(joined.wait())
        await asyncio.wait({tasks[0], waits}, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            waits.cancel()
            tasks[0].result()
        if beating:
            work = beat(DocumentClient(kubelets.transport, "kubelet"), kubelets.in_touch)
            tasks.append(asyncio.create_task(work, name="heartbeats"))
        yield StandIns(kubelets)
    finally:
        for task in reversed(tasks):
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
