"""Metrics of claims: the number of claims by state, and the durations of holds and releases."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.claims import Memories
from claimctl.reservation.facts.decision import Decision, Write, WriteList
from claimctl.reservation.facts.reasons import ConditionType
from claimctl.reservation.facts.references import LIMIT, NEAR_LIMIT, is_workload
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.reservation.reserved_for.listing_ahead import listed_by
from claimctl.telemetry.face import Metric, Telemetry
from claimctl.wire.meta import find_condition


class ClaimState(StrEnum):
    """The states of a reserved claim in the metrics."""

    MISSING = "missing"
    UNALLOCATED = "unallocated"
    ALLOCATED = "allocated"
    """The claim is allocated and lists no workload."""
    RESERVED = "reserved"
    IDLE = "idle"
    """A workload holds the claim, and no pod uses it."""
    RELEASING = "releasing"


class Places(StrEnum):
    """How full the list of a claim is."""

    FREE = "free"
    NEARLY_FULL = "nearly-full"
    FULL = "full"

    @classmethod
    def of(cls, count: int) -> Places:
        if count >= LIMIT:
            return cls.FULL
        return cls.NEARLY_FULL if count >= NEAR_LIMIT else cls.FREE


@dataclass(frozen=True, slots=True)
class _Entry:
    state: ClaimState
    kinds: tuple[str, ...]
    dangling: int
    unknown: int
    """ClaimReservations whose workload's state is unknown."""
    not_ready: int
    places: Places


class ClaimMetrics:
    """Counts claims by state, and sets the gauges when a claim changes its state."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._entries: dict[ClaimKey, _Entry] = {}
        self._states: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._dangling = 0
        self._unknown = 0
        self._not_ready = 0
        self._places: Counter[str] = Counter()
        self._published: dict[tuple[str, ...], int] = {}

    def publish(self) -> None:
        """Set every gauge that has changed; at first all, so that the zeros are published."""
        for state in ClaimState:
            self._set(Metric.CLAIMS, self._states[state], {"state": state})
        for places in (Places.NEARLY_FULL, Places.FULL):
            self._set(Metric.CLAIMS_NEAR_LIMIT, self._places[places], {"state": places.value})
        self._set(Metric.RESERVATIONS_NOT_READY, self._not_ready, {})
        self._set(Metric.DANGLING_REFERENCES, self._dangling, {})
        self._set(Metric.UNKNOWN_WORKLOADS, self._unknown, {})

    def _set(self, metric: Metric, value: int, labels: dict[str, str]) -> None:
        key = (metric, *labels.values())
        if self._published.get(key) != value:
            self._published[key] = value
            self._telemetry.gauge(metric, value, labels)

    def count(self, key: ClaimKey, snapshot: Snapshot, decision: Decision) -> None:
        """Count the claim by its present state. A claim without reservation does not count."""
        entry = _entry(snapshot, decision)
        old = self._entries.pop(key, None)
        if entry is not None:
            self._entries[key] = entry
        if old == entry:
            return
        for counted, step in ((old, -1), (entry, 1)):
            if counted is not None:
                self._add(counted, step)
        self.publish()
        for kind in sorted({*(old.kinds if old else ()), *(entry.kinds if entry else ())}):
            self._set(Metric.RESERVATIONS, self._kinds[kind], {"workload_kind": kind})

    def wrote(self, snapshot: Snapshot, write: Write, seen: Memories) -> None:
        """Measure the effect of a write that the observations have recorded."""
        if not isinstance(write, WriteList) or write.fence:
            return
        key = ClaimKey(snapshot.namespace, snapshot.name)
        if not write.deallocate:
            self._measure_hold(snapshot, write, seen.allocated_age(key))
            self._count_ahead(snapshot, write)
            return
        labels = {"reason": write.reason, "dialect": snapshot.rules.dialect}
        self._telemetry.add(Metric.RELEASES, labels)
        waited = seen.fenced_age(key)
        if waited is not None:
            labels = {"reason": write.reason}
            self._telemetry.observe(Metric.RELEASE_WAIT_SECONDS, waited, labels)

    def _measure_hold(self, snapshot: Snapshot, write: WriteList, seconds: float) -> None:
        """How long a claim was allocated before its workload was listed."""
        listed = snapshot.listed_uids
        added = any(ref.uid not in listed and is_workload(ref) for ref in write.reserved_for)
        allocation = snapshot.claim.status.allocation if snapshot.claim else None
        if not added or allocation is None:
            return
        if allocation.allocation_timestamp is not None:
            seconds = (snapshot.now - allocation.allocation_timestamp).total_seconds()
        self._telemetry.observe(Metric.ALLOCATION_TO_HOLD_SECONDS, max(seconds, 0.0))

    def _count_ahead(self, snapshot: Snapshot, write: WriteList) -> None:
        if ahead := listed_by(snapshot, write):
            self._telemetry.add(Metric.PODS_LISTED_AHEAD, amount=len(ahead))

    def _add(self, entry: _Entry, step: int) -> None:
        self._states[entry.state] += step
        self._places[entry.places] += step
        self._dangling += step * entry.dangling
        self._unknown += step * entry.unknown
        self._not_ready += step * entry.not_ready
        for kind in entry.kinds:
            self._kinds[kind] += step


def _entry(snapshot: Snapshot, decision: Decision) -> _Entry | None:
    if not snapshot.reservations:
        return None
    kinds = tuple(sorted(held.reservation.spec.workload_ref.kind for held in snapshot.reservations))
    return _Entry(
        _state(snapshot, decision),
        kinds,
        len(snapshot.memory.dead_age),
        sum(held.workload.phase is WorkloadPhase.UNKNOWN for held in snapshot.reservations),
        sum(_is_not_ready(held, decision) for held in snapshot.reservations),
        Places.of(len(snapshot.references)),
    )


def _is_not_ready(held: Held, decision: Decision) -> bool:
    status = decision.statuses.get(held.name, held.reservation.status)
    ready = find_condition(status.conditions, ConditionType.READY)
    return ready is not None and ready.status == "False"


def _state(snapshot: Snapshot, decision: Decision) -> ClaimState:
    if snapshot.claim is None:
        return ClaimState.MISSING
    if not snapshot.allocated:
        return ClaimState.UNALLOCATED
    if decision.releasing is not None:
        return ClaimState.RELEASING
    reserved = any(map(is_workload, snapshot.no_pods))
    if not reserved:
        return ClaimState.ALLOCATED
    return ClaimState.RESERVED if snapshot.consumers.count else ClaimState.IDLE
