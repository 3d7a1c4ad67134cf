"""A DRA driver, as kubelets and tests see it.

A test gives it habits at run time: ``cluster.driver("dra.net").take_up("wants-one-pod")``. What
they do is said once for all drivers, in ``kube_in_process.habits``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Generator, Iterator, Sequence

from kube_in_process.components.drivers.slices import Slices
from kube_in_process.components.objects import name, namespace, uid
from kube_in_process.components.pods import allocation_of
from kube_in_process.habits import deciding
from kube_in_process.habits.call import Call
from kube_in_process.habits.habit import (
    PREPARE,
    UNPREPARE,
    Checkpointed,
    Habit,
    Situation,
    Stage,
)
from kube_in_process.habits.presence import Away
from kube_in_process.habits.registry import habit as habit_of
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Context
from kube_in_process.runtime.local import ApiFor
from kube_in_process.storage.requests import MASTERS, Actor

WITHDRAWN_AFTER = 30.0
"""Seconds after which a kubelet deletes the slices of a driver that is away."""

Answer = Generator[float, None, str]
"""A call: it yields seconds to wait for, and returns the error, or ''."""


class Driver:
    """A DRA driver that runs on every node, with its habits.

    ``calls`` has the calls that it has answered, oldest first. A kubelet cannot call a driver that
    is away.
    """

    def __init__(self, name: str, context: Context, left: Callable[[str, str], None]) -> None:
        """``left`` is called with the driver's name and a node (or '') when it goes away."""
        self.name = name
        self.calls: list[Call] = []
        self.habits: tuple[Habit, ...] = ()
        """What it does that a driver need not do; see ``take_up`` and ``drop``."""
        self.abandoned: list[tuple[str, str]] = []
        """What it has set up and does not know any more: each claim as namespace/name, with its
        node."""
        api = ApiFor(
            context.api, Actor(f"system:serviceaccount:kube-system:{name}", (MASTERS,), name)
        )
        self._slices = Slices(name, api, context.views["resourceslices"])
        self._context = context
        self._left = left
        self._away: dict[str, float] = {}
        """By node, or '' for all nodes: since when it is away."""
        self._checkpoints: defaultdict[str, dict[str, Checkpointed]] = defaultdict(dict)
        """By node and UID of a claim."""
        self._boots: defaultdict[str, int] = defaultdict(int)
        self._offered: dict[str, list[Object]] = {}
        """By node: the devices that it would publish without its habits, where they matter."""

    @property
    def prepared(self) -> list[tuple[str, str]]:
        """What is prepared now: each claim as namespace/name, with its node."""
        return [
            (_shown(entry.claim), node)
            for node, checkpoint in self._checkpoints.items()
            for entry in checkpoint.values()
            if entry.stage is Stage.COMPLETED and entry.boot == self._boot(node)
        ]

    # Habits

    def take_up(self, *habits: Habit | str) -> None:
        """Have these habits from now on; one that is only named has its usual values."""
        for habit in habits:
            new = habit_of(habit) if isinstance(habit, str) else habit
            self._change(deciding.taken_up(self.habits, new), new)

    def drop(self, *names: str, node: str = "") -> None:
        """Have these habits no more, on one node or anywhere; without names, have none."""
        left = deciding.dropped(self.habits, names, node)
        gone = [habit for habit in self.habits if habit not in left]
        for habit in gone:
            self._change(tuple(x for x in self.habits if x != habit), habit)

    def has(self, name: str) -> bool:
        """Whether it has a habit of this name, on any node."""
        return any(habit.name == name for habit in self.habits)

    def _change(self, habits: tuple[Habit, ...], changed: Habit) -> None:
        self.habits = habits
        nodes = [changed.node] if changed.node else self._slices.nodes()
        if changed.publishes:
            for node in nodes:
                self._offer(node)
        if not changed.is_there():
            self._moved(changed.node)

    def _on(self, node: str) -> deciding.Habits:
        return deciding.on_node(self.habits, node)

    # Being there

    def leave(self, node: str = "") -> None:
        """Go away from one node, or from all.

        Prepare and unprepare fail meanwhile. After 30 s its slices are withdrawn; when it is back,
        it publishes them again.
        """
        self.take_up(Away(node=node))

    def come_back(self, node: str = "") -> None:
        """Be there again, on one node that it had left, or on all nodes. It has been restarted."""
        self.drop(Away.name, node=node)

    def restart(self, node: str = "") -> None:
        """Be restarted on one node, or on all: it reads its checkpoint anew."""
        claims = {uid(claim): claim for claim in self._context.views["resourceclaims"].items()}
        for place in [node] if node else list(self._checkpoints):
            old = self._checkpoints[place]
            new = deciding.restarted(self._on(place), old, claims)
            self._checkpoints[place] = new
            self.abandoned += [
                (_shown(entry.claim), place)
                for key, entry in old.items()
                if key not in new and entry.stage is Stage.COMPLETED
            ]

    def _moved(self, node: str) -> None:
        """It has gone away, or come back; ``node`` is '' for all nodes."""
        gone = any(not habit.is_there() and habit.node == node for habit in self.habits)
        if gone and node not in self._away:
            self._away[node] = self._context.clock.monotonic()
            self._left(self.name, node)
        elif not gone and node in self._away:
            del self._away[node]
            self.restart(node)
            for place in [node] if node else self._slices.nodes():
                self.publish_again(place)

    def is_registered(self, node: str) -> bool:
        """Whether the node's kubelet can call it."""
        return deciding.is_there(self._on(node))

    def overdue(self, node: str) -> float:
        """Seconds until the slices of a node (or of all nodes: '') are withdrawn.

        0 if they are due now; negative if the driver is there.
        """
        since = self._away.get(node)
        if since is None:
            return -1.0
        return max(0.0, since + WITHDRAWN_AFTER - self._context.clock.monotonic())

    # Slices

    def publish(self, node: str, devices: Sequence[str | Object]) -> None:
        """Offer these devices on a node from now on, as a new generation of its pool.

        A device that is only named keeps the body that it has. A driver that is away publishes them
        when it is back.
        """
        now = self._offered[node] if node in self._offered else self._slices.devices(node)
        known = {device["name"]: device for device in now}
        bodies = [
            known.get(device, {"name": device}) if isinstance(device, str) else device
            for device in devices
        ]
        if node in self._offered:
            self._offered[node] = bodies
        used = self._used(node)
        here = self._on(node)
        self._slices.replace(node, deciding.has(here, bodies), deciding.shows(here, bodies, used))
        self.publish_again(node)

    def withdraw(self, node: str) -> None:
        """Take the slices of a node away, as its kubelet does when it is restarted."""
        self._slices.withdraw(node)

    def publish_again(self, node: str) -> None:
        """Publish what was withdrawn, unless the driver is away."""
        if self.is_registered(node):
            self._slices.publish(node)

    def withdraw_all(self, node: str) -> None:
        """Withdraw the slices of one node, or of all nodes ('')."""
        for place in [node] if node else self._slices.nodes():
            self._slices.withdraw(place)

    def _offer(self, node: str) -> None:
        """Publish what the habits make of the node's devices, if that is something else now."""
        here = self._on(node)
        if node not in self._offered:
            self._offered[node] = self._slices.look(node)
        bodies = self._offered[node]
        known, shown = deciding.has(here, bodies), deciding.shows(here, bodies, self._used(node))
        if self._slices.knows(node, known):
            self._slices.edit(node, shown)
        else:
            self._slices.replace(node, known, shown)
            self.publish_again(node)
        if not any(habit.publishes for habit in here):
            del self._offered[node]

    def _used(self, node: str) -> set[str]:
        """The names of the devices that are prepared on a node."""
        return {
            result["device"]
            for entry in self._checkpoints[node].values()
            if entry.stage is Stage.COMPLETED
            for result in self._results(entry.claim)
        }

    def _lacking(self, claim: Object, node: str) -> str:
        """A device of the claim that the driver does not have, or ''."""
        offered = self._offered.get(node)
        for result in self._results(claim):
            device = str(result["device"])
            if offered is None:
                gone = self._slices.lacks(result["pool"], device)
            else:
                known = deciding.has(self._on(node), offered)
                gone = device not in {body["name"] for body in known}
            if gone:
                return device
        return ""

    # Calls of kubelets

    def prepare(self, claim: Object, node: str) -> Answer:
        """NodePrepareResources for one claim, as the API server has it now."""
        reply = deciding.prepared(
            self._on(node), self._situation(claim, node), self._lacking(claim, node)
        )
        yield from self._answer(PREPARE, claim, node, reply.error)
        self._note(claim, node, reply)
        return reply.error

    def unprepare(self, claim: Object, node: str) -> Answer:
        """NodeUnprepareResources for one claim, as it was prepared."""
        reply = deciding.unprepared(self._on(node), self._situation(claim, node))
        yield from self._answer(UNPREPARE, claim, node, reply.error)
        self._note(claim, node, reply)
        return reply.error

    def refuses_container(self, claim: Object, node: str, pod: str, pods: Collection[str]) -> str:
        """Why no container of a pod (UID) may be created beside those of other pods, or ''."""
        return deciding.container_refusal(self._on(node), claim, pod, pods)

    def boot(self, node: str) -> None:
        """A node was rebooted: nothing is prepared there."""
        self._boots[node] += 1
        self._checkpoints[node] = deciding.rebooted(self._on(node), self._checkpoints[node])
        self.abandoned = [held for held in self.abandoned if held[1] != node]

    def _situation(self, claim: Object, node: str) -> Situation:
        now = self._context.clock.monotonic()
        return Situation(claim, self._checkpoints[node], now, self._boot(node))

    def _boot(self, node: str) -> str:
        return str(self._boots[node])

    def _answer(self, verb: str, claim: Object, node: str, error: str) -> Iterator[float]:
        asked = self._context.clock.monotonic()
        seconds = deciding.seconds(self._on(node), verb)
        if seconds > 0:
            yield seconds
        answered = self._context.clock.monotonic()
        prepared = verb == PREPARE and not error
        devices = [f"{x['pool']}/{x['device']}" for x in self._results(claim) if prepared]
        version = int(claim["metadata"]["resourceVersion"]) if verb == PREPARE else 0
        self.calls.append(
            Call(
                verb,
                _shown(claim),
                uid(claim),
                node,
                asked,
                answered,
                error,
                tuple(devices),
                version,
            )
        )

    def _note(self, claim: Object, node: str, reply: deciding.Reply) -> None:
        """Remember the claim as the reply says, and publish what follows from that."""
        checkpoint = self._checkpoints[node]
        checkpoint.pop(uid(claim), None)
        if reply.entry is not None:
            checkpoint[uid(claim)] = reply.entry
            if reply.entry.stage is Stage.COMPLETED:
                held = (_shown(claim), node)
                self.abandoned = [other for other in self.abandoned if other != held]
        if any(habit.publishes for habit in self._on(node)):
            self._offer(node)

    def _results(self, claim: Object) -> list[Object]:
        results = ((allocation_of(claim) or {}).get("devices") or {}).get("results") or ()
        return [result for result in results if result["driver"] == self.name]


class Drivers(dict[str, Driver]):
    """The drivers by name. One that nobody has asked for yet is made when it is asked for."""

    def __init__(self, context: Context, left: Callable[[str, str], None]) -> None:
        super().__init__()
        self._context = context
        self._left = left

    def __missing__(self, name: str) -> Driver:
        driver = self[name] = Driver(name, self._context, self._left)
        return driver


def _shown(claim: Object) -> str:
    return f"{namespace(claim)}/{name(claim)}"
