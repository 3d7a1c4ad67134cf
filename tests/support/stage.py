"""One claim without a server: the stage makes decisions and applies their writes.

The stage keeps the objects, applies each write as the API server would, and records it. So a test
reads as: these objects exist, this happens, these writes follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from dataclasses import replace as replace_state
from datetime import datetime, timedelta
from math import inf
from typing import Any

from msgspec.structs import replace

from claimctl.controller.observations.openings import OpeningsSeen
from claimctl.kube.informer import Change
from claimctl.reservation.facts.decision import (
    ClearReleaseRequest,
    ConfirmPods,
    ConfirmWorkload,
    CreateClaim,
    Decision,
    DeleteClaim,
    ListChildren,
    ListLivePods,
    Need,
    RemoveClaimFinalizer,
    SetFinalizer,
    Write,
    WriteList,
    WriteStatus,
)
from claimctl.reservation.facts.devices import DeviceKey, judge, stays_gone
from claimctl.reservation.facts.memory import Arrivals, Memory, Openings, SeenGhost
from claimctl.reservation.facts.pods import evicts_a_pod, is_done
from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.facts.references import is_pod, is_pod_group
from claimctl.reservation.facts.snapshot import Evidence, Held, LiveList, Rules, Snapshot
from claimctl.reservation.facts.unreadable import may_concern
from claimctl.reservation.facts.workloads import WorkloadState
from claimctl.wire.claims import Reference, ResourceClaim, ResourceSlice
from claimctl.wire.meta import Condition
from claimctl.wire.nodes import Node
from claimctl.wire.podgroups import PodGroup
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import FINALIZER, ClaimReservation, ForceDeletedPod
from claimctl.wire.resources import PODS, RESOURCECLAIMS, Resource
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable
from tests.support.builders import CLAIM, NAMESPACE, NOW, pod_ref, written_by_claimctl
from tests.support.last_status import checked


def _says_something(condition: Condition) -> bool:
    """Whether a condition has what the API demands, and a message that says more than the reason.

    About a reason of another version, nothing more is known.
    """
    known = condition.reason in set(Reason)
    repeats = (
        known
        and condition.message == f"{condition.type} is {condition.status} ({condition.reason})"
    )
    dated = condition.last_transition_time is not None
    return bool(condition.reason) and bool(condition.message) and dated and not repeats


class _StageClock(Clock):
    def __init__(self, stage: DecisionStage) -> None:
        self._stage = stage

    def monotonic(self) -> float:
        return self._stage.time

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self._stage.time)

    async def sleep(self, seconds: float) -> None:
        raise NotImplementedError


@dataclass
class DecisionStage:
    claim: ResourceClaim | None
    reservations: dict[str, tuple[ClaimReservation, WorkloadState]]
    pods: dict[str, Pod] = field(default_factory=dict)
    children: tuple[str, ...] = ()
    """What a live LIST shows of the objects that a workload without a struct has made."""
    unseen_pods: dict[str, Pod] = field(default_factory=dict)
    """Pods that are on the server but not yet in the caches."""
    nodes: dict[str, Node] = field(default_factory=dict)
    slices: tuple[ResourceSlice, ...] = ()
    ghosts: dict[str, tuple[ForceDeletedPod, float]] = field(default_factory=dict)
    """Each ghost with the monotonic time at which it was first seen."""
    live_workloads: dict[str, WorkloadState] = field(default_factory=dict)
    """By name, the workloads whose live state differs from the caches."""
    rules: Rules = field(default_factory=Rules)
    groups: dict[str, PodGroup] = field(default_factory=dict)
    unreadable: list[Unreadable] = field(default_factory=list)
    """Unreadable objects in the caches; the pods among them also in a live LIST."""
    live_unreadable: list[Unreadable] = field(default_factory=list)
    """Unreadable objects that are only in a live LIST."""
    frozen: bool = False
    template_missing: bool = False
    vanished_pods: set[str] = field(default_factory=set)
    """UIDs of pods that the caches show although they are gone."""
    vanished_groups: set[str] = field(default_factory=set)
    """The same for PodGroups."""
    reservations_deleting_since: float | None = None
    """When this process first saw the reservations being deleted; None if long ago."""
    watched_since_before_allocation: bool = True
    repeated_writes: int = 0
    time: float = 0.0
    writes: list[Write] = field(default_factory=list)
    arrived: dict[str, float] = field(default_factory=dict)
    """By UID of a pod that a watch event showed first: the time of the event."""
    written: set[str] = field(default_factory=set)
    """UIDs of the entries that claimctl wrote and that are still listed, by managedFields."""
    allocated_at: float = -inf
    """When this process first saw the present allocation."""
    deallocated: str = ""
    """The version of the write by which this process deallocated the claim."""
    _confirmed: dict[str, WorkloadState] = field(default_factory=dict)
    _version_seen: tuple[str, float] = ("", 0.0)
    _claim_seen: ResourceClaim | None = None
    _openings: OpeningsSeen | None = None
    _deleting_seen: float | None = None
    _evicting: bool = False
    _gone_seen: dict[DeviceKey, float] = field(default_factory=dict)
    _dead_seen: dict[str, float] = field(default_factory=dict)
    _status_written: dict[str, float] = field(default_factory=dict)
    _idle_seen: dict[str, tuple[datetime, float]] = field(default_factory=dict)

    def snapshot(self, evidence: Evidence | None = None) -> Snapshot:
        return Snapshot(
            now=NOW + timedelta(seconds=self.time),
            namespace=NAMESPACE,
            name=CLAIM,
            claim=self.claim,
            reservations=tuple(
                Held(
                    made,
                    self._confirmed.get(name, workload),
                    deleting_age=self._reservations_deleting_age(),
                    idle_age=self._idle_age(made),
                    status_age=self.time - self._status_written.get(name, -inf),
                )
                for name, (made, workload) in self.reservations.items()
            ),
            pods=tuple(self.pods.values()),
            ghosts=tuple(
                SeenGhost(ghost, self.time - since) for ghost, since in self.ghosts.values()
            ),
            nodes=self.nodes,
            slices=self.slices,
            groups=tuple(self.groups.values()),
            unreadable=tuple(self._doubts(self.unreadable)),
            frozen=self.frozen,
            template_missing=self.template_missing,
            rules=self.rules,
            evidence=evidence or Evidence(),
            memory=self._memory(),
        )

    def _doubts(
        self, unreadable: list[Unreadable], of: Resource[Any] | None = None
    ) -> Iterator[Unreadable]:
        for doubt in unreadable:
            concerned = may_concern(doubt, NAMESPACE, CLAIM, self.claim)
            if concerned and of in (None, doubt.resource):
                yield doubt

    def _reservations_deleting_age(self) -> float:
        return (
            inf
            if self.reservations_deleting_since is None
            else self.time - self.reservations_deleting_since
        )

    def _idle_age(self, made: ClaimReservation) -> float | None:
        """The age by the clock of a process that saw the time being written."""
        since = made.status.idle_since
        if since is None:
            return None
        known = self._idle_seen.get(made.metadata.name)
        if known is None or known[0] != since:
            passed = (NOW + timedelta(seconds=self.time) - since).total_seconds()
            known = self._idle_seen[made.metadata.name] = since, self.time - max(passed, 0.0)
        return self.time - known[1]

    def _memory(self) -> Memory:
        if self.claim is not None:
            version = self.claim.metadata.resource_version
            if version != self._version_seen[0]:
                self._version_seen = (version, self.time)
            if self.claim.metadata.deleting and self._deleting_seen is None:
                self._deleting_seen = self.time
            dead = filter(self._is_dead, self.claim.status.reserved_for)
            seen = self._dead_seen
            self._dead_seen = {pod.uid: seen.get(pod.uid, self.time) for pod in dead}
        devices = judge(self.claim.devices if self.claim is not None else (), self.slices)
        before, self._gone_seen = self._gone_seen, {}
        for judged in devices:
            since = before.get(judged.key, self.time)
            if stays_gone(judged, self.time - since):
                self._gone_seen[judged.key] = since
        return Memory(
            evicting=self._evicts(),
            gone_age={key: self.time - since for key, since in self._gone_seen.items()},
            openings=self._opened(),
            arrivals=self._arrivals(),
            version_age=self.time - self._version_seen[1],
            deleting_age=0.0 if self._deleting_seen is None else self.time - self._deleting_seen,
            blind_age=None if self.watched_since_before_allocation else self.time,
            dead_age={uid: self.time - since for uid, since in self._dead_seen.items()},
            repeated_writes=self.repeated_writes,
            allocated_age=self.time - self.allocated_at,
            deallocated=bool(self.claim) and self.deallocated == self._version_seen[0],
        )

    def _evicts(self) -> bool:
        """Whether a pod was seen evicted from the present allocation."""
        if self.claim is None or self.claim.status.allocation is None:
            self._evicting = False
        elif evicts_a_pod(self.claim, self.pods.values()):
            self._evicting = True
        return self._evicting

    def _is_dead(self, listed: Reference) -> bool:
        """Whether a listed pod is gone or done, or a listed group is gone."""
        if is_pod_group(listed):
            return all(group.metadata.uid != listed.uid for group in self.groups.values())
        known = self.pods.get(listed.uid)
        return is_pod(listed) and (known is None or is_done(known))

    def _opened(self) -> Openings:
        """The openings as seen by a process that saw every version, or that has just started."""
        if self._openings is None:
            self._openings = OpeningsSeen(_StageClock(self))
        old, claim = self._claim_seen, self.claim
        if claim is None:
            return Openings()
        if old is None or old.metadata.resource_version != claim.metadata.resource_version:
            relist = old is None and not self.watched_since_before_allocation
            change = Change(RESOURCECLAIMS, NAMESPACE, CLAIM, old, claim, relist)
            self._openings.observe(change)
            self._claim_seen = claim
        return self._openings.of(claim)

    def _arrivals(self) -> Arrivals:
        if self.claim is None or self._openings is None:
            return Arrivals()
        ages = {uid: self.time - at for uid, at in self.arrived.items() if uid in self.pods}
        return self._openings.arrivals(self.claim, ages)

    def decide(self) -> Decision:
        """Decide, with every live read that the decision asks for."""
        evidence = Evidence()
        self._confirmed.clear()
        for _ in range(5):
            decision = checked(self.snapshot(evidence))
            if not decision.needs:
                return decision
            for need in decision.needs:
                evidence = self._answer(evidence, need)
        raise AssertionError(f"asks for ever: {decision.needs}")

    def _answer(self, evidence: Evidence, need: Need) -> Evidence:
        everything = self.pods | self.unseen_pods
        everything = {uid: pod for uid, pod in everything.items() if uid not in self.vanished_pods}
        groups = {group.metadata.uid for group in self.groups.values()} - self.vanished_groups
        if isinstance(need, ConfirmWorkload):
            self._confirm(need.reference.name)
            return evidence
        if isinstance(need, ListChildren):
            for name, (made, known) in self.reservations.items():
                if made.spec.workload_ref.name == need.reference.name:
                    self._confirmed[name] = replace_state(known, children=self.children)
            return evidence
        if isinstance(need, ListLivePods):
            live = LiveList(
                need.claim_version,
                tuple(everything.values()),
                frozenset(everything),
                self.snapshot().settling_left == 0,
                need.vanished,
                tuple(self._doubts([*self.unreadable, *self.live_unreadable], PODS)),
            )
            return Evidence(evidence.gone_pods, evidence.present_pods, live=live)
        assert isinstance(need, ConfirmPods)
        asked = frozenset(reference.uid for reference in need.references)
        present = asked & (everything.keys() | groups)
        return Evidence(
            evidence.gone_pods | (asked - present),
            evidence.present_pods | present,
            live=evidence.live,
        )

    def _confirm(self, workload: str) -> None:
        for name, (made, cached) in self.reservations.items():
            if made.spec.workload_ref.name == workload:
                live = self.live_workloads.get(workload, cached)
                self._confirmed[name] = replace_state(live, confirmed=True)

    def settle(self, *, seconds: float = 0.0, limit: int = 30) -> list[Write]:
        """Decide and write until nothing is left to do within ``seconds``. Returns the writes."""
        end, done = self.time + seconds, len(self.writes)
        for _ in range(limit):
            decision = self.decide()
            if decision.write is not None:
                self.apply(decision.write)
                continue
            if decision.after is None or self.time + decision.after > end:
                self.time = end
                return [w for w in self.writes[done:] if not isinstance(w, WriteStatus)]
            self.time += max(decision.after, 0.01)
        raise AssertionError(f"never settles: {self.writes[-4:]}")

    def apply(self, write: Write) -> None:
        self.writes.append(write)
        match write:
            case WriteList():
                self._write_list(write)
            case RemoveClaimFinalizer():
                self._change_claim(finalizers=())
            case WriteStatus():
                assert [
                    condition
                    for condition in write.status.conditions
                    if not _says_something(condition)
                ] == []
                held = self.reservations[write.reservation.metadata.name]
                self._status_written[write.reservation.metadata.name] = self.time
                self._keep(replace(held[0], status=write.status))
            case SetFinalizer() | ClearReleaseRequest():
                self._change_reservation(write)
            case DeleteClaim() | CreateClaim():
                pass

    def _change_reservation(self, write: SetFinalizer | ClearReleaseRequest) -> None:
        held = self.reservations[write.reservation.metadata.name][0]
        if isinstance(write, ClearReleaseRequest):
            left = {**(held.metadata.annotations or {})}
            del left[write.annotation]
            self._keep(replace(held, metadata=replace(held.metadata, annotations=left or None)))
            return
        finalizers = (FINALIZER,) if write.present else ()
        self._keep(replace(held, metadata=replace(held.metadata, finalizers=finalizers)))
        if held.metadata.deleting and not write.present:
            del self.reservations[held.metadata.name]

    def _keep(self, changed: ClaimReservation) -> None:
        name = changed.metadata.name
        self.reservations[name] = (changed, self.reservations[name][1])

    def _write_list(self, write: WriteList) -> None:
        assert self.claim is not None
        assert write.resource_version == self.claim.metadata.resource_version
        allocation = None if write.deallocate else self.claim.status.allocation
        assert allocation is not None or not write.reserved_for
        assert len(write.reserved_for) <= 256
        status = replace(self.claim.status, allocation=allocation, reserved_for=write.reserved_for)
        assert status != self.claim.status, "a write without effect"
        before, after = self.claim.status.reserved_for, write.reserved_for
        added = {entry.uid for entry in after} - {entry.uid for entry in before}
        self.written = (self.written | added) & {entry.uid for entry in after}
        self.claim = replace(self.claim, status=status)
        self._change_claim()
        self.claim = written_by_claimctl(self.claim, self.written)
        if write.deallocate:
            self.deallocated = self.claim.metadata.resource_version

    def _change_claim(self, **changes: object) -> None:
        assert self.claim is not None
        version = str(int(self.claim.metadata.resource_version) + 1)
        meta = replace(self.claim.metadata, resource_version=version, **changes)
        self.claim = replace(self.claim, metadata=meta)

    def put(self, *pods: Pod) -> None:
        self.pods |= {pod.metadata.uid: pod for pod in pods}

    def come(self, *pods: Pod) -> None:
        """A watch event shows each of the pods for the first time."""
        self.put(*pods)
        self.arrived |= {pod.metadata.uid: self.time for pod in pods}

    def lose_entries(self, *names: str) -> None:
        """Another client removes the entries of these pods from the list."""
        assert self.claim is not None
        gone = {f"uid-{name}" for name in names}
        self._relist(
            tuple(entry for entry in self.claim.status.reserved_for if entry.uid not in gone)
        )

    def gain_entries(self, *names: str) -> None:
        """Another client lists these pods."""
        assert self.claim is not None
        self._relist((*self.claim.status.reserved_for, *map(pod_ref, names)))

    def _relist(self, references: tuple[Reference, ...]) -> None:
        assert self.claim is not None
        status = replace(self.claim.status, reserved_for=references)
        self.claim = replace(self.claim, status=status)
        self.written &= {reference.uid for reference in references}
        self._change_claim()
        self.claim = written_by_claimctl(self.claim, self.written)

    def remove(self, *names: str) -> None:
        for name in names:
            del self.pods[f"uid-{name}"]
