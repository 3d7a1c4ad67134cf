"""A DRA driver, as kubelets and tests see it.

A test changes its habits at run time: ``cluster.driver("dra.net").wants_one_pod = True``. The
refusals are those of drivers that were tried beside real kubelets.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass

from kube_in_process.components.drivers.slices import Slices
from kube_in_process.components.objects import name, namespace, uid
from kube_in_process.components.pods import allocation_of, is_pod, reserved_for
from kube_in_process.objects import Object
from kube_in_process.runtime.component import Context
from kube_in_process.runtime.local import ApiFor
from kube_in_process.storage.requests import MASTERS, Actor

PREPARE, UNPREPARE = "prepare", "unprepare"
WITHDRAWN_AFTER = 30.0
"""Seconds after which a kubelet deletes the slices of a driver that is away."""

Answer = Generator[float, None, str]
"""A call: it yields seconds to wait for, and returns the error, or ''."""


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a kubelet that a driver has answered.

    Args:
        verb: 'prepare' (NodePrepareResources) or 'unprepare' (NodeUnprepareResources).
        claim: namespace/name.
        uid: the UID of the claim.
        node: the node of the kubelet.
        asked: when the kubelet called, in seconds of the cluster's clock.
        time: when the driver answered.
        error: the text of the refusal, or ''.
    """

    verb: str
    claim: str
    uid: str
    node: str
    asked: float
    time: float
    error: str = ""


class Driver:
    """A DRA driver that runs on every node, with its habits.

    ``calls`` has the calls that it has answered, oldest first. A kubelet cannot call a driver that
    is away.
    """

    wants_one_pod: bool = False
    """It refuses a claim unless ``status.reservedFor`` has one entry and that is a pod."""
    hides_used_devices: bool = False
    """It takes the devices of a claim out of its slices while the claim is prepared."""
    prepare_seconds: float = 0.0
    """How long a prepare takes."""
    unprepare_seconds: float = 0.0
    """How long an unprepare takes."""
    refuses: str = ""
    """It refuses every prepare with this text; '' means that it does not."""
    refuses_unprepare: str = ""
    """It refuses every unprepare with this text; '' means that it does not."""

    def __init__(self, name: str, context: Context, left: Callable[[str, str], None]) -> None:
        """``left`` is called with the driver's name and a node (or '') when it goes away."""
        self.name = name
        self.calls: list[Call] = []
        api = ApiFor(
            context.api, Actor(f"system:serviceaccount:kube-system:{name}", (MASTERS,), name)
        )
        self._slices = Slices(name, api, context.views["resourceslices"])
        self._context = context
        self._left = left
        self._away: dict[str, float] = {}
        """By node, or '' for all nodes: since when it is away."""
        self._prepared: dict[tuple[str, str], Object] = {}

    @property
    def prepared(self) -> list[tuple[str, str]]:
        """What is prepared now: each claim as namespace/name, with its node."""
        return [(_shown(claim), node) for (node, _), claim in self._prepared.items()]

    # Being there

    @property
    def away(self) -> bool:
        """Whether it is away from all nodes, so that no kubelet has it registered.

        Prepare and unprepare fail meanwhile. After 30 s its slices are withdrawn; when it is back,
        it publishes them again.
        """
        return "" in self._away

    @away.setter
    def away(self, away: bool) -> None:
        if away:
            self.leave()
        else:
            self.come_back()

    def leave(self, node: str = "") -> None:
        """Go away from one node, or from all."""
        if node not in self._away:
            self._away[node] = self._context.clock.monotonic()
            self._left(self.name, node)

    def come_back(self, node: str = "") -> None:
        """Be there again, on one node that it had left, or on all nodes."""
        for each in [node] if node else list(self._away):
            self._away.pop(each, None)
        for each in [node] if node else self._slices.nodes():
            self.publish_again(each)

    def is_registered(self, node: str) -> bool:
        """Whether the node's kubelet can call it."""
        return "" not in self._away and node not in self._away

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
        known = {each["name"]: each for each in self._slices.devices(node)}
        bodies = [
            known.get(each, {"name": each}) if isinstance(each, str) else each for each in devices
        ]
        self._slices.replace(node, bodies)
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
        for each in [node] if node else self._slices.nodes():
            self._slices.withdraw(each)

    def taint(self, node: str, device: str, key: str, effect: str = "NoSchedule") -> None:
        """Add a taint to a device in its slice. ``effect``: None, NoSchedule or NoExecute."""

        def tainted(body: Object) -> Object:
            return {**body, "taints": [*_taints(body, key), {"key": key, "effect": effect}]}

        self._slices.change(node, device, tainted)

    def untaint(self, node: str, device: str, key: str) -> None:
        """Remove the taints with a key from a device."""

        def freed(body: Object) -> Object:
            left = _taints(body, key)
            kept = {name: each for name, each in body.items() if name != "taints"}
            return {**kept, "taints": left} if left else kept

        self._slices.change(node, device, freed)

    # Calls of kubelets

    def prepare(self, claim: Object, node: str) -> Answer:
        """NodePrepareResources for one claim, as the API server has it now."""
        error = self._refusal(claim)
        yield from self._answer(PREPARE, claim, node, self.prepare_seconds, error)
        if not error:
            self._prepared[node, uid(claim)] = claim
            if self.hides_used_devices:
                for result in self._results(claim):
                    self._slices.hide(result["pool"], result["device"])
        return error

    def unprepare(self, claim: Object, node: str) -> Answer:
        """NodeUnprepareResources for one claim, as it was prepared."""
        error = self.refuses_unprepare
        yield from self._answer(UNPREPARE, claim, node, self.unprepare_seconds, error)
        if not error:
            self._prepared.pop((node, uid(claim)), None)
            for result in self._results(claim):
                self._slices.show(result["pool"], result["device"])
        return error

    def boot(self, node: str) -> None:
        """A node was rebooted: nothing is prepared there."""
        for key in [each for each in self._prepared if each[0] == node]:
            del self._prepared[key]

    def _refusal(self, claim: Object) -> str:
        if self.refuses:
            return self.refuses
        listed = reserved_for(claim)
        if self.wants_one_pod and len(listed) != 1:
            return f"driver only supports one pod per claim, got {len(listed)}"
        if self.wants_one_pod and not is_pod(listed[0]):
            return f"driver only supports Pods, unsupported reference {listed[0]['resource']}"
        for result in self._results(claim):
            if self._slices.lacks(result["pool"], result["device"]):
                return f"prepare failed: requested device is not allocatable: {result['device']}"
        return ""

    def _answer(
        self, verb: str, claim: Object, node: str, seconds: float, error: str
    ) -> Iterator[float]:
        asked = self._context.clock.monotonic()
        if seconds > 0:
            yield seconds
        answered = self._context.clock.monotonic()
        self.calls.append(Call(verb, _shown(claim), uid(claim), node, asked, answered, error))

    def _results(self, claim: Object) -> list[Object]:
        results = ((allocation_of(claim) or {}).get("devices") or {}).get("results") or ()
        return [each for each in results if each["driver"] == self.name]


class Drivers(dict[str, Driver]):
    """The drivers by name. One that nobody has asked for yet is made when it is asked for."""

    def __init__(self, context: Context, left: Callable[[str, str], None]) -> None:
        super().__init__()
        self._context = context
        self._left = left

    def __missing__(self, name: str) -> Driver:
        made = self[name] = Driver(name, self._context, self._left)
        return made


def _shown(claim: Object) -> str:
    return f"{namespace(claim)}/{name(claim)}"


def _taints(body: Object, but: str) -> list[Object]:
    """The taints of a device, without those of one key."""
    return [each for each in body.get("taints") or () if each["key"] != but]
