"""Follows the replacements of evicted pods until they have a node, or long enough."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound
from claimctl.reschedule.plan.plan import Move, PodRef
from claimctl.reschedule.plan.record import Outcome
from claimctl.reservation.facts.pods import is_done
from claimctl.wire.pods import Pod
from claimctl.wire.resources import PODS
from claimctl.wire.seams import Clock


@dataclass(slots=True)
class Flight:
    """The move of one pod. Times are of the monotonic clock, in seconds."""

    move: Move
    until: float
    """When the replacement counts as pending."""
    landed: str = ""
    outcome: Outcome = Outcome.UNDER_WAY
    replacement: str = ""
    """The UID of the replacement, once it is seen."""

    @property
    def open(self) -> bool:
        return self.outcome is Outcome.UNDER_WAY


@dataclass(slots=True)
class Landings:
    client: Client
    clock: Clock
    flights: list[Flight] = field(default_factory=list)
    open: list[Flight] = field(default_factory=list)
    """The flights that are under way."""
    _in_flight: Counter[str] = field(default_factory=Counter)
    """How many of them each workload has."""
    _stuck: set[str] = field(default_factory=set)
    """Workloads with a replacement that has no node and was given up."""
    _known: dict[str, set[str]] = field(default_factory=dict)
    """By namespace: the UIDs of pods that are no replacements, or are taken for one already."""
    _ended: set[str] = field(default_factory=set)
    """The UIDs of evicted pods that have been seen to take up nothing any more."""

    async def prepare(self, move: Move) -> None:
        """Look at the namespace before the first pod in it is evicted."""
        namespace = move.pod.namespace
        if move.owner is not None and namespace not in self._known:
            self._known[namespace] = {pod.metadata.uid for pod in await self._pods(namespace)}

    def begin(self, move: Move, within: float) -> None:
        """Follow the replacement of a pod that was just evicted, for ``within`` seconds."""
        if move.owner is not None:
            flight = Flight(move, self.clock.monotonic() + within)
            self.flights.append(flight)
            self.open.append(flight)
            self._in_flight[_workload(move)] += 1

    def hurry(self, uids: Iterable[str], within: float) -> None:
        """Wait at most ``within`` more seconds for the replacements of these pods."""
        chosen, until = set(uids), self.clock.monotonic() + within
        for flight in self.open:
            if flight.move.pod.uid in chosen:
                flight.until = min(flight.until, until)

    def in_flight(self, workload: str) -> int:
        """How many moves of a workload are under way."""
        return self._in_flight[workload]

    def is_stuck(self, workload: str) -> bool:
        """Whether a replacement of the workload has no node and was given up."""
        return workload in self._stuck

    def is_under_way(self, uid: str) -> bool:
        """Whether the replacement of an evicted pod is still awaited."""
        return any(flight.move.pod.uid == uid for flight in self.open)

    async def has_ended(self, evicted: PodRef) -> bool:
        """Whether an evicted pod has ended, so that its room and its devices are free."""
        if evicted.uid not in self._ended:
            try:
                pod = await self.client.get(PODS, evicted.name, evicted.namespace)
            except NotFound:
                pod = None
            if pod is None or pod.metadata.uid != evicted.uid or is_done(pod):
                self._ended.add(evicted.uid)
        return evicted.uid in self._ended

    async def look(self) -> None:
        """Find the replacements that have a node now."""
        for namespace in sorted({flight.move.pod.namespace for flight in self.open}):
            pods = await self._pods(namespace)
            for flight in self.open:
                if flight.move.pod.namespace == namespace:
                    self._judge(flight, pods)
        for flight in self.open:
            if not flight.open:
                workload = _workload(flight.move)
                self._in_flight[workload] -= 1
                if flight.outcome is Outcome.PENDING:
                    self._stuck.add(workload)
        self.open = [flight for flight in self.open if flight.open]

    def _judge(self, flight: Flight, pods: Iterable[Pod]) -> None:
        found = self._replacement(flight, pods)
        if found is not None:
            flight.replacement = found.metadata.uid
            self._known[flight.move.pod.namespace].add(found.metadata.uid)
            if found.spec.node_name:
                flight.landed = found.spec.node_name
                back = flight.move.destination and flight.landed == flight.move.pod.node
                flight.outcome = Outcome.BOUNCED if back else Outcome.LANDED
                return
        if self.clock.monotonic() >= flight.until:
            flight.outcome = Outcome.PENDING if found is not None else Outcome.GONE

    def _replacement(self, flight: Flight, pods: Iterable[Pod]) -> Pod | None:
        """The replacement that was seen before, else the oldest new pod of the owner."""
        owner = flight.move.owner.uid if flight.move.owner is not None else ""
        known = self._known[flight.move.pod.namespace]
        alive = [pod for pod in pods if not pod.metadata.deleting and _owner(pod) == owner]
        for pod in alive:
            if pod.metadata.uid == flight.replacement:
                return pod
        new = [pod for pod in alive if pod.metadata.uid not in known]
        return min(new, key=lambda pod: (not pod.spec.node_name, pod.metadata.name), default=None)

    async def _pods(self, namespace: str) -> tuple[Pod, ...]:
        return (await self.client.list(PODS, namespace, partial=True)).items


def _workload(move: Move) -> str:
    return move.owner.workload_uid if move.owner is not None else ""


def _owner(pod: Pod) -> str:
    owner = pod.metadata.controller()
    return owner.uid if owner is not None else ""
