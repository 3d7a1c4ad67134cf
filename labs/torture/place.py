"""The place of a schedule: a namespace with nodes of its own, on kube-in-process or real servers.

Users and the end of a schedule are the same in both. A place has what differs: its time, how its
objects and its history are read, and how nodes are lost and come back.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kube_in_process.errors import StatusError
from kube_in_process.real.client import RequestFailed, Version
from kube_in_process.real.servers.nodes import NODE
from kube_in_process.storage.store import Revision

from claimctl.kube.errors import KubeError, NotServed
from claimctl.wire.base import Object
from claimctl_demo.documents import DocumentClient
from labs.torture.bodies import TAINT_RULE, Bodies
from labs.torture.drivers import DEVICE, Driver

TROUBLE = (KubeError, RequestFailed, StatusError, OSError, TimeoutError)
"""Errors that a request may have: a refusal, or servers that are killed."""
DRIVER_SECONDS = 0.5
"""The time between two looks of the driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long the end of a schedule waits, in seconds, and how often it looks again.

    Attributes:
        pods: until users help pods that do not run.
        release: until claimctl has given up a claim that keeps pods waiting or that nobody uses.
        still: before writes to claims count.
        quiet, watched: before claimctl may write nothing any more, and how long that is watched.
        rounds: how often writes may be seen before they count as writing without an end.
    """

    pods: float
    release: float
    still: float
    quiet: float
    watched: float
    rounds: int


@dataclass
class TorturePlace(ABC):
    """All requests of users go through ``client``."""

    client: DocumentClient
    bodies: Bodies
    pod_groups: bool
    """Whether the cluster has PodGroups."""
    patience: Patience
    driver: Driver | None = field(default=None, init=False)
    """The driver of the devices, if pods wait for its reports."""
    driving: asyncio.Task[None] | None = field(default=None, init=False)

    @property
    def namespace(self) -> str:
        return self.bodies.namespace

    # -- time

    @abstractmethod
    def now(self) -> float:
        """Seconds, as in the history."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None:
        """Let time pass."""

    async def until(self, holds: Callable[[], bool], within: float, step: float = 0.5) -> bool:
        """Wait for a condition on the server."""
        end = self.now() + within
        while not holds():
            if self.now() >= end:
                return False
            await self.sleep(step)
        return True

    # -- what is there

    @abstractmethod
    def objects(self, plural: str) -> list[Object]:
        """The objects of the namespace as they are stored, without a request."""

    def find(self, plural: str, name: str) -> Object | None:
        named = (body for body in self.objects(plural) if body["metadata"]["name"] == name)
        return next(named, None)

    @property
    @abstractmethod
    def revision(self) -> int:
        """The number of the last write."""

    @abstractmethod
    def written(self, since: int = 0) -> list[Revision]:
        """The writes in the namespace after a revision."""

    # -- faults and nodes

    @abstractmethod
    async def calm(self) -> None:
        """End all faults. Nodes may stay lost and closed, and devices broken."""

    @abstractmethod
    async def leave(self) -> list[str]:
        """End everything; returns what stays nevertheless."""

    @property
    @abstractmethod
    def lost(self) -> Collection[str]:
        """The nodes that are cut off."""

    @abstractmethod
    def lose(self, node: str) -> None:
        """Cut a node off. Its containers run on."""

    @abstractmethod
    async def restore(self, node: str, *, rebooted: bool) -> None:
        """Connect a node again. After a reboot, it has a new boot ID and no containers."""

    def refused(self, pod: str) -> str:
        """Why the last attempt to start the pod failed, as far as that is known."""
        return ""

    # -- devices

    @property
    def _slices(self) -> Version:
        return (self.bodies.fleet.resource_api, "ResourceSlice")

    async def slices(self) -> list[Object]:
        """The ResourceSlices of the place's nodes."""
        names, slices = self.bodies.fleet.names, await self.client.list(self._slices)
        return [body for body in slices if body["spec"].get("nodeName") in names]

    async def taint_rules(self) -> list[Object]:
        """The DeviceTaintRules for the place's devices."""
        with suppress(NotServed):
            rules = await self.client.list(TAINT_RULE)
            driver = self.bodies.fleet.driver
            return [rule for rule in rules if rule["spec"]["deviceSelector"]["driver"] == driver]
        return []

    async def taint(self, node: str, effect: str, only: str = "") -> None:
        """Taint the devices of a node, or one of them; remove their taints if ``effect`` is ""."""
        for body in await self.slices():
            if body["spec"]["nodeName"] == node:
                devices = body["spec"]["devices"]
                for device in devices:
                    if only in ("", device["name"]):
                        device.pop("taints", None)
                        if effect:
                            device["taints"] = [{"key": "broken", "effect": effect}]
                await self._publish(body, devices)

    async def mend(self) -> None:
        """Bring all nodes and devices back."""
        for node in sorted(self.lost):
            await tried(self.restore(node, rebooted=False))
        for node in self.bodies.fleet.names:
            await tried(self.client.patch(NODE, "", node, {"spec": {"unschedulable": None}}))
            await tried(self.taint(node, ""))
        for rule in await self.taint_rules():
            await tried(self.client.delete(TAINT_RULE, "", rule["metadata"]["name"]))

    async def bind_devices(self, rng: Random) -> None:
        """From now on, the scheduler waits for a driver's reports before it binds pods."""
        for body in await self.slices():
            await self._publish(body, [device | DEVICE for device in body["spec"]["devices"]])
        self.driver = Driver(rng)
        self.driving = asyncio.create_task(self._drive(self.driver), name="driver")

    async def _publish(self, body: Object, devices: list[Object]) -> None:
        name = body["metadata"]["name"]
        await self.client.patch(self._slices, "", name, {"spec": {"devices": devices}})

    async def _drive(self, driver: Driver) -> None:
        while True:
            for claim, patch in driver.reports(self.objects("resourceclaims"), self.now()):
                await self.report(claim, patch)
            await asyncio.sleep(DRIVER_SECONDS)

    async def report(self, claim: Object, patch: Object) -> None:
        """Patch a claim's status as its driver."""
        kind, name = self.bodies.fleet.claims, claim["metadata"]["name"]
        await tried(self.client.patch_status(kind, self.namespace, name, patch))

    async def put_status(self, claim: Object, status: Object) -> None:
        """Replace a claim's status, if the claim is as it was when it was read."""
        served = await self.client.served(*self.bodies.fleet.claims)
        path = f"{served.at(self.namespace, claim['metadata']['name'])}/status"
        self.client.document(await self.client.ask("PUT", path, {**claim, "status": status}))


async def tried(action: Awaitable[Any]) -> None:
    """Do one action. Refusals show in the end."""
    with suppress(*TROUBLE):
        await action
