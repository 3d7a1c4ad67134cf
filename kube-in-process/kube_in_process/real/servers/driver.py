"""A stand-in for the DRA driver of a fleet: it has habits, and prepares no device.

Stand-ins for kubelets ask it for the first pod of a claim on a node, and after the last one. While
it is away, its slices stay.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from kube_in_process.components.kubelet.dra import drivers_of
from kube_in_process.components.objects import name, namespace, uid
from kube_in_process.components.pods import node_name
from kube_in_process.habits import deciding, registry
from kube_in_process.habits.call import Call
from kube_in_process.habits.habit import PREPARE, UNPREPARE, Checkpointed, Habit, Situation, Stage
from kube_in_process.habits.presence import Away
from kube_in_process.real.client import Document, DocumentClient, Version
from kube_in_process.real.servers.nodes import Fleet


@dataclass(slots=True)
class ClaimInUse:
    """A claim on a node.

    Attributes:
        claim: as it was when it was prepared.
        pods: by UID of each pod that uses it, whether its containers were created.
    """

    claim: Document
    pods: dict[str, bool] = field(default_factory=dict)


@dataclass(slots=True)
class StandInDriver:
    """The driver of a fleet's devices.

    Attributes:
        habits: what it does that a driver need not do; see ``take_up`` and ``drop``.
        calls: what stand-ins for kubelets have asked, oldest first.
    """

    client: DocumentClient
    fleet: Fleet
    habits: tuple[Habit, ...] = ()
    calls: list[Call] = field(default_factory=list)
    _uses: dict[tuple[str, str], ClaimInUse] = field(default_factory=dict)
    """By node and UID of the claim."""
    _checkpoints: defaultdict[str, dict[str, Checkpointed]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    """By node and UID of the claim."""
    _offered: dict[str, list[Document]] = field(default_factory=dict)
    """By slice: the devices that it has without habits, where they matter."""

    @property
    def name(self) -> str:
        return self.fleet.driver

    @property
    def prepared(self) -> list[tuple[str, str]]:
        """What is prepared now: each claim as namespace/name, with its node."""
        return [
            (f"{namespace(entry.claim)}/{name(entry.claim)}", node)
            for node, entries in self._checkpoints.items()
            for entry in entries.values()
            if entry.stage is Stage.COMPLETED and entry.boot == self._boot(node)
        ]

    # Habits

    def has(self, habit: str) -> bool:
        """Whether it has a habit of this name, on any node."""
        return any(wanted.name == habit for wanted in self.habits)

    async def take_up(self, *habits: Habit | str) -> None:
        """Have these habits from now on; one that is only named has its usual values."""
        for habit in habits:
            new = registry.habit(habit) if isinstance(habit, str) else habit
            self.habits = deciding.taken_up(self.habits, new)
        await self.offer()

    async def drop(self, *names: str, node: str = "") -> None:
        """Have these habits no more, on one node or anywhere; without names, have none."""
        was_away = {place for place in self.fleet.names if not self._is_there(place)}
        self.habits = deciding.dropped(self.habits, names, node)
        for place in was_away:
            if self._is_there(place):
                await self._begin(place)
        await self.offer()

    async def leave(self, node: str = "") -> None:
        """Go away from one node, or from all."""
        await self.take_up(Away(node=node))

    async def come_back(self, node: str = "") -> None:
        """Be there again, on one node or on all. It has been restarted."""
        await self.drop(Away.name, node=node)

    async def restart(self) -> None:
        """Be restarted on all nodes: it reads its checkpoint anew."""
        for node in self.fleet.names:
            await self._begin(node)

    async def _begin(self, node: str) -> None:
        claims = {uid(claim): claim for claim in await self.client.list(self.fleet.claims)}
        known = self._checkpoints[node]
        self._checkpoints[node] = deciding.restarted(self._on(node), known, claims)

    def boot(self, node: str) -> None:
        """A node was rebooted: nothing is prepared there."""
        known = self._checkpoints[node]
        self._checkpoints[node] = deciding.rebooted(self._on(node), known)
        for key in [key for key in self._uses if key[0] == node]:
            del self._uses[key]

    def _on(self, node: str) -> deciding.Habits:
        return deciding.on_node(self.habits, node)

    def _is_there(self, node: str) -> bool:
        return deciding.is_there(self._on(node))

    def _boot(self, node: str) -> str:
        return str(self.fleet.boots.get(node, 0))

    # Calls

    def seconds(self, pod: Document, claim: Document) -> float:
        """How long a prepare of the claim takes for the pod; 0 if none is needed."""
        node = node_name(pod)
        if not self._drives(claim) or (node, uid(claim)) in self._uses:
            return 0.0
        return deciding.seconds(self._on(node), PREPARE)

    def prepare(self, pod: Document, claim: Document) -> str:
        """Prepare a claim for a pod, unless that is done, and create its containers: the error."""
        node, key = node_name(pod), (node_name(pod), uid(claim))
        if not self._drives(claim):
            return ""
        if key not in self._uses:
            error = self._asked(node, claim, PREPARE)
            if error:
                return f"NodePrepareResources failed for ResourceClaim {name(claim)}: {error}"
            self._uses[key] = ClaimInUse(claim)
        use = self._uses[key]
        others = [other for other, created in use.pods.items() if created and other != uid(pod)]
        error = deciding.container_refusal(self._on(node), claim, uid(pod), others)
        use.pods[uid(pod)] = not error
        return error

    def unprepare(self, pod: Document) -> str:
        """The containers of a pod have ended: unprepare what no other pod uses; the error."""
        for key, use in list(self._uses.items()):
            if uid(pod) not in use.pods:
                continue
            if len(use.pods) == 1:
                error = self._asked(key[0], use.claim, UNPREPARE)
                if error:
                    return error
                del self._uses[key]
            use.pods.pop(uid(pod))
        return ""

    def _asked(self, node: str, claim: Document, verb: str) -> str:
        if not self._is_there(node):
            return f"DRA driver {self.name} is not registered"
        known = self._checkpoints[node]
        situation = Situation(claim, known, time.monotonic(), self._boot(node))
        if verb == PREPARE:
            reply = deciding.prepared(self._on(node), situation, self._lacking(node, claim))
        else:
            reply = deciding.unprepared(self._on(node), situation)
        known.pop(uid(claim), None)
        if reply.entry is not None:
            known[uid(claim)] = reply.entry
        shown = f"{namespace(claim)}/{name(claim)}"
        now = time.time()
        self.calls.append(Call(verb, shown, uid(claim), node, now, now, reply.error))
        return reply.error

    def _drives(self, claim: Document) -> bool:
        return self.name in drivers_of(claim)

    def _lacking(self, node: str, claim: Document) -> str:
        offered = [
            device
            for plain, devices in self._offered.items()
            if plain.startswith(f"{node}-{self.name}-")
            for device in devices
        ]
        there = {device["name"] for device in deciding.has(self._on(node), offered)}
        mine = claim["status"]["allocation"]["devices"]["results"]
        gone = [x["device"] for x in mine if x["driver"] == self.name and x["device"] not in there]
        return str(gone[0]) if offered and gone else ""

    # Devices

    async def publish(self, node: str, devices: Sequence[str | Document]) -> None:
        """Offer these devices on a node from now on, as a new generation of its pool."""
        (first, *_) = [x for x in await self._slices() if x["spec"]["nodeName"] == node]
        before = self._offered.get(first["metadata"]["name"], first["spec"].get("devices") or [])
        known = {device["name"]: device for device in before}
        bodies = [known.get(x, {"name": x}) if isinstance(x, str) else x for x in devices]
        self._offered[first["metadata"]["name"]] = bodies
        await self._write(first, bodies)

    async def offer(self) -> None:
        """Publish what the habits make of the devices, where that is something else now."""
        publishing = any(habit.publishes for habit in self.habits)
        for body in await self._slices() if publishing or self._offered else ():
            plain = body["metadata"]["name"]
            await self._write(body, self._offered.setdefault(plain, body["spec"]["devices"]))

    async def _slices(self) -> list[Document]:
        kind: Version = (self.fleet.resource_api, "ResourceSlice")
        bodies = await self.client.list(kind)
        return [body for body in bodies if body["spec"]["driver"] == self.name]

    async def _write(self, body: Document, devices: Sequence[Document]) -> None:
        spec, node = body["spec"], body["spec"]["nodeName"]
        habits = self._on(node)
        used = {
            str(result["device"])
            for entry in self._checkpoints[node].values()
            if entry.stage is Stage.COMPLETED
            for result in entry.claim["status"]["allocation"]["devices"]["results"]
        }
        shown = deciding.shows(habits, devices, used)
        if shown != spec.get("devices"):
            generation = spec["pool"]["generation"] + 1
            patch: dict[str, Any] = {
                "devices": shown,
                "pool": {**spec["pool"], "generation": generation},
            }
            kind: Version = (self.fleet.resource_api, "ResourceSlice")
            await self.client.patch(kind, "", body["metadata"]["name"], {"spec": patch})
