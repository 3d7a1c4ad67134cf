"""Follows the replacements of evicted pods: to a node, or until none will come, or too long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import inf

from claimctl.kube.client import Client
from claimctl.reservation.facts.pods import TERMINAL_PHASES, is_done, unschedulable_since
from claimctl.wire.base import Wire
from claimctl.wire.meta import Condition, ObjectHeader
from claimctl.wire.pods import Pod
from claimctl.wire.resources import JOBS, REPLICASETS, read_as
from claimctl.wire.seams import Clock
from claimctl_reschedule.plan.plan import Move, Owner, PodRef
from claimctl_reschedule.run.memory import outcome_on
from claimctl_reschedule.run.pod_watch import PodWatch
from claimctl_reschedule.shapes.records import MoveOutcome

SETTLE = 2.0
"""Seconds for which a move waits for the end of pods that were evicted before it."""
_FIRST_QUESTION = 0.5
"""Seconds after the end of an evicted pod, until its owner is asked whether more will come; the
pause doubles with each question."""


class PodOwnerSpec(Wire, frozen=True, kw_only=True):
    replicas: int | None = None
    parallelism: int | None = None
    completions: int | None = None


class PodOwnerStatus(Wire, frozen=True, kw_only=True):
    succeeded: int = 0
    conditions: tuple[Condition, ...] = ()


class PodOwner(ObjectHeader, frozen=True, kw_only=True):
    """A ReplicaSet or a Job: how many pods it wants."""

    spec: PodOwnerSpec = PodOwnerSpec()
    status: PodOwnerStatus = PodOwnerStatus()

    def wants(self, kind: str) -> int:
        """The number of pods that should be running; the items of a list do not say their kind."""
        if kind == JOBS.kind:
            met = {entry.type for entry in self.status.conditions if entry.status == "True"}
            if met & _ENDED:
                return 0
            parallelism = 1 if self.spec.parallelism is None else self.spec.parallelism
            if self.spec.completions is None:
                # a work queue: a pod that has succeeded ends it
                return 0 if self.status.succeeded else parallelism
            return min(parallelism, self.spec.completions - self.status.succeeded)
        return 1 if self.spec.replicas is None else self.spec.replicas


_ENDED = frozenset({"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"})
_ASKED = {kind.kind: read_as(kind, PodOwner) for kind in (REPLICASETS, JOBS)}


def _place_and_age(pod: Pod) -> tuple[bool, float, str]:
    """The order of replacements: those with a node first, then the oldest, then by name."""
    made = pod.metadata.creation_timestamp
    return not pod.spec.node_name, made.timestamp() if made else inf, pod.metadata.name


@dataclass(slots=True)
class Flight:
    """The move of one pod. Times are of the monotonic clock, in seconds."""

    move: Move
    owner: Owner
    began: float
    until: float
    """When the replacement counts as pending."""
    landed: str = ""
    outcome: MoveOutcome = MoveOutcome.UNDER_WAY
    replacement: str = ""
    """The UID of the replacement, once it is seen."""
    ask_at: float | None = None
    """When the owner is asked whether a replacement will come."""
    pause: float = _FIRST_QUESTION

    @property
    def open(self) -> bool:
        return self.outcome is MoveOutcome.UNDER_WAY


@dataclass(slots=True)
class Landings:
    client: Client
    clock: Clock
    pods: PodWatch
    flights: list[Flight] = field(default_factory=list)
    open: list[Flight] = field(default_factory=list)
    """The flights that are under way."""
    in_flight: Counter[str] = field(default_factory=Counter)
    """How many of them each workload has."""
    stuck: set[str] = field(default_factory=set)
    """Workloads with a replacement that has no node and was given up."""
    _known: dict[str, set[str]] = field(default_factory=dict)
    """By namespace: the UIDs of pods that are no replacements, or are taken for one already."""

    async def prepare(self, move: Move) -> None:
        """Look at the namespace before the first pod in it is evicted."""
        namespace = move.pod.namespace
        if namespace not in self._known:
            await self.pods.follow(namespace)
            self._known[namespace] = self.pods.uids(namespace)

    def begin(self, move: Move, within: float) -> None:
        """Follow the replacement of a pod that was just evicted, for ``within`` seconds."""
        if move.owner is not None:
            now = self.clock.monotonic()
            flight = Flight(move, move.owner, now, now + within)
            self.flights.append(flight)
            self.open.append(flight)
            self.in_flight[move.owner.workload_uid] += 1

    def hurry(self, uids: Iterable[str], within: float) -> None:
        """Wait at most ``within`` more seconds for the replacements of these pods."""
        chosen, until = set(uids), self.clock.monotonic() + within
        for flight in self.open:
            if flight.move.pod.uid in chosen:
                flight.until = min(flight.until, until)

    def is_under_way(self, uid: str) -> bool:
        """Whether the replacement of an evicted pod is still awaited."""
        return any(flight.move.pod.uid == uid for flight in self.open)

    def is_awaited(self) -> bool:
        """Whether a replacement is on its way for which the end of the run waits. A Job that wants
        one pauses for 10 seconds and more: the next run sees where it is."""
        return any(
            flight.owner.kind != JOBS.kind or flight.pause == _FIRST_QUESTION
            for flight in self.open
        )

    def has_ended(self, evicted: PodRef) -> bool:
        """Whether an evicted pod has ended, so that its room and its devices are free."""
        if not self.pods.follows(evicted.namespace):
            return True
        pod = self.pods.get(evicted.uid, evicted.namespace)
        return pod is None or is_done(pod)

    def is_settling(self, moves: Iterable[Move]) -> bool:
        """Whether one of these pods was evicted a moment ago, and still counts on its node.

        The scheduler counts a pod until it has ended. The plan does not: where the next replacement
        goes is expected as if the pod had gone.
        """
        uids, now = {move.pod.uid for move in moves}, self.clock.monotonic()
        return any(
            flight.move.pod.uid in uids
            and now < flight.began + SETTLE
            and not self.has_ended(flight.move.pod)
            for flight in self.flights
        )

    def surprises(self) -> int:
        """How many replacements went elsewhere than the plan expects, or nowhere."""
        ended = ((flight.move.destination, flight) for flight in self.flights if not flight.open)
        return sum(bool(wanted) and flight.landed != wanted for wanted, flight in ended)

    async def look(self) -> None:
        """Find the replacements that have a node now, and those that will not come."""
        for flight in self.open:
            await self._judge(flight)
            if not flight.open:
                workload = flight.owner.workload_uid
                self.in_flight[workload] -= 1
                if flight.outcome is MoveOutcome.PENDING:
                    self.stuck.add(workload)
        self.open = [flight for flight in self.open if flight.open]

    async def _judge(self, flight: Flight) -> None:
        namespace = flight.move.pod.namespace
        owned = self.pods.of_owner(flight.owner.uid, namespace)
        siblings = [pod for pod in owned if not pod.metadata.deleting]
        pod = self._replacement(flight, siblings)
        if pod is not None:
            flight.replacement = pod.metadata.uid
            self._known[namespace].add(pod.metadata.uid)
            if node := pod.spec.node_name:
                move, flight.landed = flight.move, node
                flight.outcome = outcome_on(node, move.pod.node, move.destination)
            elif not flight.move.destination and unschedulable_since(pod) is not None:
                # it only had to make room; nothing promises its replacement a node
                flight.outcome = MoveOutcome.PENDING
        if flight.open and self.clock.monotonic() >= flight.until:
            flight.outcome = MoveOutcome.PENDING if pod is not None else MoveOutcome.GONE
        if flight.open and pod is None and await self._comes_no_more(flight, siblings):
            flight.outcome = MoveOutcome.GONE

    def _replacement(self, flight: Flight, siblings: Sequence[Pod]) -> Pod | None:
        """The replacement that was seen before, else the oldest new pod of the owner: of those that
        have a node, if there are any."""
        known = self._known[flight.move.pod.namespace]
        for pod in siblings:
            if pod.metadata.uid == flight.replacement:
                return pod
        new = [pod for pod in siblings if pod.metadata.uid not in known]
        return min(new, key=_place_and_age, default=None)

    async def _comes_no_more(self, flight: Flight, siblings: Sequence[Pod]) -> bool:
        """Whether the owner has all the pods it wants without the replacement: a Job may have
        ended, a ReplicaSet may have been scaled down or replaced."""
        resource, now = _ASKED.get(flight.owner.kind), self.clock.monotonic()
        if resource is None or not self.has_ended(flight.move.pod):
            return False
        if flight.ask_at is None:
            flight.ask_at = now + flight.pause
        if now < flight.ask_at:
            return False
        flight.pause *= 2
        flight.ask_at = now + flight.pause
        name, where = f"metadata.name={flight.owner.name}", flight.move.pod.namespace
        listing = await self.client.list(resource, where, field_selector=name, partial=True)
        owners = [item for item in listing.items if item.metadata.uid == flight.owner.uid]
        alive = sum(pod.status.phase not in TERMINAL_PHASES for pod in siblings)
        return not owners or owners[0].wants(resource.kind) <= alive
