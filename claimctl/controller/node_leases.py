"""Watches nodes for signs of life while ghosts wait for them: reads their Leases, one by one.

A watch of all Leases would bring 100 events a second in a cluster of 1,000 nodes. So only the
nodes of ghosts are read, and a node with none costs nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

import structlog

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.observations import Observations
from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden, KubeError, NotFound, UnreadableObject
from claimctl.wire.nodes import NODE_LEASES
from claimctl.wire.resources import LEASES, NODES, RESOURCESLICES
from claimctl.wire.seams import Clock

log = structlog.get_logger(__name__)

LOOK_SECONDS = 1.0
"""The time between two reads of a node that shows signs of life."""
SILENT_LOOK_SECONDS = 10.0
"""The time between two reads of a node that shows none."""
NO_LEASE_LOOK_SECONDS = 60.0
READ_SECONDS = 5.0


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
        self._due: dict[str, float] = {}
        self._since: dict[str, float] = {}
        self._silent: set[str] = set()
        self._slices: dict[str, set[str]] = {}
        """By node: the UIDs of its ResourceSlices at the last look at them."""
        self._forbidden = False

    async def run(self) -> None:
        """Watch until cancelled; at rest while there is no ghost."""
        ghosts = self._seen.ghosts
        while True:
            await ghosts.news.wait()
            ghosts.news.clear()
            while nodes := frozenset(ghosts.nodes_to_watch()):
                now = self._clock.monotonic()
                self._due = {name: self._due.get(name, now) for name in nodes}
                self._since = {name: self._since.get(name, now) for name in nodes}
                self._slices = {name: self._slices[name] for name in nodes & self._slices.keys()}
                self._silent &= nodes
                for name in sorted(nodes):
                    if self._due[name] <= self._clock.monotonic():
                        await self._look(name)
                # a new ghost may be on another node: the first look shows the rhythm before it
                pause = min(self._due.values()) - self._clock.monotonic()
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(max(pause, 0.0), LOOK_SECONDS)):
                        await ghosts.news.wait()
                ghosts.news.clear()

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
        self._due[name] = self._clock.monotonic() + pause
        if is_new:
            await self._read_node(name)
        self._tell(name)

    async def _read_node(self, name: str) -> None:
        """Read the Node and its slices before a renewal counts.

        The cache of nodes may be late: the container runtime may be down. And a start may keep to
        the rhythm of the renewals by chance. A kubelet that starts deletes the ResourceSlices of
        its node, and the drivers publish new ones.
        """
        kubelets, on_node = self._seen.kubelets, f"spec.nodeName={name}"
        try:
            nodes = (await self._client.list(NODES, field_selector=f"metadata.name={name}")).items
            slices = (await self._client.list(RESOURCESLICES, field_selector=on_node)).items
        except KubeError as error:
            log.info("node not read", node=name, error=str(error))
            kubelets.unknown(name)
            return
        there = {piece.metadata.uid for piece in slices}
        if self._slices.get(name, there) - there:
            kubelets.unknown(name, started=True)
        self._slices[name] = there
        for node in nodes:
            kubelets.observe(node)
        if not nodes:
            kubelets.unknown(name)

    def _is_silent(self, name: str) -> bool:
        last = self._seen.kubelets.last_renewal(name)
        since = max(self._since[name], last or 0.0)
        return self._clock.monotonic() - since > self._seen.kubelets.silent_seconds(name)

    def _tell(self, name: str) -> None:
        """Reconcile the claims of ghosts that have ended, and those of a node that falls silent."""
        silent = self._is_silent(name)
        turned = silent is not (name in self._silent)
        (self._silent.add if silent else self._silent.discard)(name)
        changed = set(self._seen.ghosts.judge_signs(name))
        if turned:
            changed.update(self._seen.ghosts.claims_on(name))
        for key in sorted(changed):
            self._changed(key)
