"""Watches nodes for signs of life while ghosts wait for them: reads their Leases.

A watch of all Leases would bring 100 events a second in a cluster of 1,000 nodes. So only the
nodes of ghosts are read, and a node with none costs nothing.

A node has to be read within the rhythm of its renewals, or the wait of its ghosts begins anew. So
there is an order for when many nodes are due. Nodes that live come before silent ones, and before
those whose ghosts all wait for a driver that is away. Then the nodes of namespaces with few such
nodes come first: a namespace with ghosts on all nodes delays no other. If there are more
than ``MOST_WATCHED``, ``_in_turn`` chooses which are read at all: of the nodes that live, those
that are watched for the longest time, until their ghosts have ended; those that can wait take
turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from math import inf

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.observations import Observations
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, KubeError, NotFound, UnreadableObject
from claimctl.telemetry.face import LateLogger
from claimctl.wire.nodes import NODE_LEASES
from claimctl.wire.resources import LEASES, NODES, RESOURCESLICES
from claimctl.wire.seams import Clock

log = LateLogger(__name__)

LOOK_SECONDS = 1.0
"""The time between two reads of a node that shows signs of life."""
SILENT_LOOK_SECONDS = 10.0
"""The time between two reads of a node that shows none."""
LACKING_LOOK_SECONDS = 5.0
"""The time between two reads of a node while each of its ghosts waits for a driver: short enough to
see every renewal."""
NO_LEASE_LOOK_SECONDS = 60.0
READ_SECONDS = 5.0
READS_AT_ONCE = 8
CAN_WAIT_PER_SECOND = 50.0
"""The most reads in a second of nodes that can wait: silent ones, and those that wait for a driver.
They may be many, for days."""
READS_PER_SECOND = 100.0
"""The most Leases that are read in a second."""
MOST_WATCHED = 500
"""The most nodes that are read in turn: each of them within five seconds."""


@dataclass(slots=True)
class _Watched:
    """A node on which a ghost may run."""

    since: float
    """Since when it is watched."""
    due: float
    """When it is read next."""
    silent: bool = False
    lacking: bool = False
    """Whether each ghost on it waits for a driver that is away."""

    @property
    def can_wait(self) -> bool:
        return self.silent or self.lacking


class NodeLeases:
    """Reads the Leases of the nodes on which ghosts may run.

    Args:
        changed: called with a claim when what a ghost of it waits for has changed.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        observations: Observations,
        changed: Callable[[ClaimKey], None],
    ) -> None:
        self._client = client.without_retries(READ_SECONDS)
        self._clock = clock
        self._seen = observations
        self._changed = changed
        self._nodes: dict[str, _Watched] = {}
        self._forbidden = False
        self._reading: dict[str, asyncio.Task[None]] = {}
        self._lanes = asyncio.Semaphore(READS_AT_ONCE)
        self._allowed, self._counted_at = READS_PER_SECOND, clock.monotonic()

    async def run(self) -> None:
        """Watch until cancelled; at rest while there is no ghost."""
        news = self._seen.ghosts.news
        try:
            while True:
                await news.wait()
                news.clear()
                while crowds := self._seen.ghosts.signs.nodes_to_watch():
                    # a new ghost may be on another node: the first look shows the rhythm before it
                    pause = await self._round(crowds)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(pause):
                            await news.wait()
                    news.clear()
        finally:
            for task in self._reading.values():
                task.cancel()

    async def _round(self, crowds: Mapping[str, int]) -> float:
        """Read the nodes that are due, in order; return the seconds until the next round.

        Args:
            crowds: the nodes to watch, each with the number of nodes on which ghosts of its
                namespace wait: the least number, if there are several namespaces.
        """
        now = self._clock.monotonic()
        nodes = {name: self._nodes.get(name) or _Watched(now, now) for name in crowds}
        self._nodes = nodes
        self._seen.slices.keep(crowds)
        free = [name for name in self._in_turn(crowds) if name not in self._reading]
        due = [name for name in free if nodes[name].due <= now]
        due.sort(key=lambda name: (nodes[name].can_wait, crowds[name], nodes[name].due, name))
        for name in due[: self._take(len(due), now)]:
            self._reading[name] = asyncio.create_task(self._read(name), name=f"Lease of {name}")
        if self._reading:
            # one that is slow does not delay the others
            await asyncio.wait(self._reading.values(), timeout=LOOK_SECONDS)
        for name in [name for name, task in self._reading.items() if task.done()]:
            self._reading.pop(name).result()
        if any(nodes[name].due <= now for name in due):
            return LOOK_SECONDS
        pause = min((nodes[name].due for name in free), default=inf) - self._clock.monotonic()
        return min(max(pause, 0.0), LOOK_SECONDS)

    def _in_turn(self, crowds: Mapping[str, int]) -> list[str]:
        """The nodes that are read in turn."""

        def order(name: str) -> tuple[bool, int, float, str]:
            node = self._nodes[name]
            if node.can_wait:
                # each in its turn, or nobody would see that the others live again
                return True, 0, node.due, name
            return False, crowds[name], node.since, name

        return sorted(crowds, key=order)[:MOST_WATCHED] if len(crowds) > MOST_WATCHED else [*crowds]

    def _take(self, wanted: int, now: float) -> int:
        """How many of so many reads may begin now."""
        passed, self._counted_at = now - self._counted_at, now
        self._allowed = min(self._allowed + passed * READS_PER_SECOND, READS_PER_SECOND)
        taken = min(wanted, int(self._allowed))
        self._allowed -= taken
        return taken

    async def _read(self, name: str) -> None:
        async with self._lanes:
            await self._look(name)

    async def _look(self, name: str) -> None:
        began, kubelets = self._clock.monotonic(), self._seen.kubelets
        pause, is_new = LOOK_SECONDS, False
        try:
            lease = await self._client.get(LEASES, name, NODE_LEASES)
        except (NotFound, Forbidden, UnreadableObject) as error:
            # the wait is fixed where nothing is known
            if not isinstance(error, NotFound) and not self._forbidden:
                self._forbidden = True
                log.warning("signs of life of nodes are not read", error=str(error))
            kubelets.read_lease(name, None, began)
            pause = NO_LEASE_LOOK_SECONDS
        except KubeError as error:
            log.info("Lease of a node not read", node=name, error=str(error))
            pause = SILENT_LOOK_SECONDS
        else:
            is_new = kubelets.read_lease(name, lease, began)
            if self._is_silent(name):
                pause = SILENT_LOOK_SECONDS
            elif name in self._nodes and self._nodes[name].lacking:
                pause = LACKING_LOOK_SECONDS
            if pause > LOOK_SECONDS:
                waiting = sum(node.can_wait for node in self._nodes.values())
                pause = max(pause, waiting / CAN_WAIT_PER_SECOND)
        if name in self._nodes:
            self._nodes[name].due = self._clock.monotonic() + pause
        before = self._seen.slices.drivers(name)
        if is_new:
            await self._read_node(name)
        self._tell(name, is_new=is_new, moved=self._seen.slices.drivers(name) != before)

    async def _read_node(self, name: str) -> None:
        """Read the Node and its slices before a renewal counts.

        The cache of nodes may be late: the container runtime may be down. And a start may keep to
        the rhythm of the renewals by chance. A kubelet that starts deletes the ResourceSlices of
        its node, and the drivers publish new ones.
        """
        kubelets, on_node = self._seen.kubelets, f"spec.nodeName={name}"
        try:
            nodes = (await self._client.list(NODES, field_selector=f"metadata.name={name}")).items
            began = self._clock.monotonic()
            slices = await self._client.list(RESOURCESLICES, field_selector=on_node, partial=True)
        except KubeError as error:
            log.info("node not read", node=name, error=str(error))
            kubelets.unknown(name)
            return
        if self._seen.slices.look(name, slices.items, began, slices.unreadable):
            kubelets.unknown(name, started=True)
        for node in nodes:
            kubelets.observe(node)
        if not nodes:
            kubelets.unknown(name)

    def _is_silent(self, name: str) -> bool:
        kubelets, now = self._seen.kubelets, self._clock.monotonic()
        since = self._nodes[name].since if name in self._nodes else now
        silence = now - max(since, kubelets.last_renewal(name) or 0.0)
        return silence > kubelets.silent_seconds(name)

    def _tell(self, name: str, *, is_new: bool, moved: bool) -> None:
        """Reconcile the claims of ghosts that have ended, and those of a node that falls silent or
        whose drivers come or go.

        Args:
            is_new: whether the node has shown another sign of life. Without one, no ghost ends.
            moved: whether a driver has come or gone.
        """
        node, signs = self._nodes.get(name), self._seen.ghosts.signs
        if node is None:
            return
        silent = self._is_silent(name)
        turned, node.silent = silent is not node.silent, silent
        changed = set(signs.judge(name) if is_new else ())
        if is_new:
            node.lacking = signs.wait_for_drivers(name)
        if turned or moved:
            changed.update(self._seen.ghosts.claims_on(name))
        for key in sorted(changed):
            self._changed(key)
