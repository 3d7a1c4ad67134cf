"""Metrics of claims: the number of claims by state, and the durations of holds and releases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from math import inf

from claimctl.controller.keys import ClaimKey
from claimctl.controller.observations.claims import Memories
from claimctl.reservation.facts.decision import Decision, Write, WriteList
from claimctl.reservation.facts.reasons import ConditionType, Reason
from claimctl.reservation.facts.references import LIMIT, NEAR_LIMIT, is_workload
from claimctl.reservation.facts.snapshot import Held, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase
from claimctl.reservation.reserved_for.listing_ahead import listed_by
from claimctl.telemetry.face import Metric, Telemetry
from claimctl.wire.claims import AllocationResult
from claimctl.wire.meta import find_condition
from claimctl.wire.reservations import ClaimReservation
from claimctl.wire.resources import WORKLOADS


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


OTHER_KINDS = "other"
"""The value of the label ``workload_kind`` for kinds that the cluster does not serve."""
Gauge = tuple[Metric, str, str]
"""A metric, and the name and value of its label; '' for a metric without labels."""
_NEARLY_FULL: Gauge = (Metric.CLAIMS_NEAR_LIMIT, "state", "nearly-full")
_FULL: Gauge = (Metric.CLAIMS_NEAR_LIMIT, "state", "full")
_NOT_READY: Gauge = (Metric.RESERVATIONS_NOT_READY, "", "")
_DANGLING: Gauge = (Metric.DANGLING_REFERENCES, "", "")
_UNKNOWN: Gauge = (Metric.UNKNOWN_WORKLOADS, "", "")
"""ClaimReservations whose workload's state is unknown."""
_ALWAYS: tuple[Gauge, ...] = (
    *((Metric.CLAIMS, "state", state.value) for state in ClaimState),
    _NEARLY_FULL,
    _FULL,
    _NOT_READY,
    _DANGLING,
    _UNKNOWN,
)


class ClaimMetrics:
    """Counts claims by state, and sets the gauges when a claim changes its state."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._counts: dict[ClaimKey, Counter[Gauge]] = {}
        self._totals: Counter[Gauge] = Counter()
        self._published: dict[Gauge, int] = {}

    def publish(self, further: Iterable[Gauge] = ()) -> None:
        """Set every gauge that has changed; at first all, so that the zeros are published."""
        for gauge in (*_ALWAYS, *further):
            metric, label, value = gauge
            total = self._totals[gauge]
            if not total and gauge not in _ALWAYS:
                # users name the kinds: their series go with the objects
                del self._totals[gauge]
                if self._published.pop(gauge, None) is not None:
                    self._telemetry.forget(metric, {label: value})
            elif self._published.get(gauge) != total:
                self._published[gauge] = total
                self._telemetry.gauge(metric, total, {label: value} if label else {})

    def count(self, key: ClaimKey, snapshot: Snapshot, decision: Decision) -> None:
        """Count the claim by its present state. A claim without reservation does not count."""
        new = _counts(snapshot, decision)
        old = self._counts.pop(key, Counter())
        if new:
            self._counts[key] = new
        if new != old:
            self._totals.update(new)
            self._totals.subtract(old)
            self.publish(sorted({*old, *new}))

    def wrote(self, snapshot: Snapshot, write: Write, seen: Memories) -> None:
        """Measure the effect of a write that the observations have recorded."""
        if not isinstance(write, WriteList) or write.fence:
            return
        key = ClaimKey(snapshot.namespace, snapshot.name)
        if not write.deallocate:
            self._measure_hold(snapshot, write, seen.allocated_age(key))
            if ahead := listed_by(snapshot, write):
                self._telemetry.add(Metric.PODS_LISTED_AHEAD, amount=len(ahead))
            return
        labels = {"reason": write.reason, "dialect": snapshot.rules.dialect}
        self._telemetry.add(Metric.RELEASES, labels)
        waited = seen.fenced_age(key)
        if waited is not None:
            labels = {"reason": write.reason}
            self._telemetry.observe(Metric.RELEASE_WAIT_SECONDS, waited, labels)

    def _measure_hold(self, snapshot: Snapshot, write: WriteList, seconds: float) -> None:
        """How long a claim was allocated, and reserved, before its workload was listed.

        A hold that waits for the last pod to leave is in time, however old the allocation is.
        """
        allocation = snapshot.claim.status.allocation if snapshot.claim else None
        if allocation is None or snapshot.late is not None:
            return
        if allocation.allocation_timestamp is not None:
            seconds = (snapshot.now - allocation.allocation_timestamp).total_seconds()
        added = {ref.uid for ref in write.reserved_for} - snapshot.listed_uids
        waits = [
            min(seconds, _age(held.reservation, snapshot.now))
            for held in snapshot.reservations
            if held.workload.uid in added and _is_first_hold(held.reservation, allocation)
        ]
        if waits:
            self._telemetry.observe(Metric.ALLOCATION_TO_HOLD_SECONDS, max(*waits, 0.0))


def _age(reservation: ClaimReservation, now: datetime) -> float:
    made = reservation.metadata.creation_timestamp
    return (now - made).total_seconds() if made is not None else inf


def _is_first_hold(reservation: ClaimReservation, allocation: AllocationResult) -> bool:
    """Whether the workload was not yet to be listed in this allocation. Else the list lost the
    hold, or did not get it for a reason that the status gives: a release, a plan, no workload."""
    known, status = reservation.status.allocation_time, reservation.status
    if known is None or known != (allocation.allocation_timestamp or known):
        return True
    reserved = find_condition(status.conditions, ConditionType.RESERVED)
    return reserved is None or reserved.reason == Reason.PENDING


def _counts(snapshot: Snapshot, decision: Decision) -> Counter[Gauge]:
    """What the claim adds to each gauge."""
    counts: Counter[Gauge] = Counter()
    if not snapshot.reservations:
        return counts
    counts[Metric.CLAIMS, "state", _state(snapshot, decision).value] = 1
    for held in snapshot.reservations:
        counts[Metric.RESERVATIONS, "workload_kind", _kind(held)] += 1
        counts[_UNKNOWN] += held.workload.phase is WorkloadPhase.UNKNOWN
        status = decision.statuses.get(held.name, held.reservation.status)
        ready = find_condition(status.conditions, ConditionType.READY)
        counts[_NOT_READY] += ready is not None and ready.status == "False"
    counts[_DANGLING] = len(snapshot.memory.dead_age)
    if len(snapshot.references) >= NEAR_LIMIT:
        counts[_FULL if len(snapshot.references) >= LIMIT else _NEARLY_FULL] = 1
    return +counts


def _kind(held: Held) -> str:
    """The kind of a reservation's workload. Users may name any kind, so those that the cluster does
    not serve count as one."""
    ref = held.reservation.spec.workload_ref
    served = held.api_version or (ref.api_group, ref.kind) in WORKLOADS
    return ref.kind if served else OTHER_KINDS


def _state(snapshot: Snapshot, decision: Decision) -> ClaimState:
    if snapshot.claim is None:
        return ClaimState.MISSING
    if not snapshot.allocated:
        return ClaimState.UNALLOCATED
    if decision.releasing is not None:
        return ClaimState.RELEASING
    reserved = any(map(is_workload, snapshot.non_pods))
    if not reserved:
        return ClaimState.ALLOCATED
    return ClaimState.RESERVED if snapshot.consumers.count else ClaimState.IDLE
