"""What claimctl would do: the real ``decide``, asked once for each thing that it can be shown.

What it asks of the API server is answered from the pods and the workload that are there. Status
writes that tell only news (counts, messages, conditions) are taken as done at once: nothing in the
protocol depends on them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import msgspec

from claimctl.reservation.decide import decide
from claimctl.reservation.facts.decision import (
    ConfirmPods,
    ConfirmWorkload,
    Decision,
    ListLivePods,
    WriteStatus,
)
from claimctl.reservation.facts.decision import Write as RealWrite
from claimctl.reservation.facts.snapshot import Evidence, Held, LiveList, Snapshot
from claimctl.reservation.facts.workloads import WorkloadPhase as RealPhase
from claimctl.reservation.facts.workloads import WorkloadState
from claimctl.reservation.users import ghosts
from claimctl.wire.reservations import ClaimReservation, ClaimReservationStatus
from labs.model import grouping, objects
from labs.model.dialects import Conditions, ModelDialect
from labs.model.state import EXISTS, ModelPhase, ModelProcess, There, Workload, Write
from tests.support import builders

ROUNDS = 12


class Judgement(NamedTuple):
    """A write, or what has to pass before there may be one."""

    write: Write | None
    waits_for: tuple[str, ...] = ()
    listed: bool = False
    """Whether it rests on a live LIST that the pod cache has to reach."""


class Restless(Exception):
    """``decide`` asks, or writes its status, for ever."""


class Judge:
    def __init__(self, dialect: ModelDialect) -> None:
        self._dialect = dialect
        self._known: dict[tuple[object, ...], Judgement] = {}
        self._grouped: dict[tuple[object, ...], Write | None] = {}
        self._on_record: dict[tuple[object, ...], bool] = {}
        self._unasked: dict[tuple[object, ...], Judgement | None] = {}
        """What follows without asking anything; None where something has to be asked."""

    def verdict(
        self, process: ModelProcess, pods: tuple[int, ...], workload: Workload
    ) -> Judgement:
        """What the process does when a LIST shows ``pods`` and a GET shows ``workload``."""
        key = _key(process)
        if key not in self._unasked:
            verdict, asks = self._decide(process, None)
            self._unasked[key] = None if asks else verdict
        unasked = self._unasked[key]
        if unasked is not None:
            return unasked
        full = (key, pods, workload)
        known = self._known.get(full)
        if known is None:
            known = self._known[full] = self._decide(process, (pods, workload))[0]
        return known

    def group_write(self, process: ModelProcess, *, listed: bool | None = None) -> Write | None:
        """What the process does about the group, from its caches.

        Args:
            listed: whether a live LIST has shown a pod of the group; None before it was made.
        """
        key = (*_key(process), process.quiet, listed)
        if key not in self._grouped:
            snapshot = _Scene(process, self._dialect).snapshot()
            self._grouped[key] = grouping.write(process, snapshot, listed)
        return self._grouped[key]

    def all_on_record(self, process: ModelProcess, record: tuple[int, ...]) -> bool:
        """Whether the process may note a version at which the status names these ghosts."""
        key = (*_key(process), record)
        if key not in self._on_record:
            snapshot = _Scene(process, self._dialect).snapshot()
            names = (f"uid-{objects.name_of(pod)}" for pod, named in enumerate(record) if named)
            self._on_record[key] = ghosts.all_on_record(snapshot, frozenset(names))
        return self._on_record[key]

    def __len__(self) -> int:
        return len(self._known) + sum(answer is not None for answer in self._unasked.values())

    def _decide(
        self, process: ModelProcess, live: tuple[tuple[int, ...], Workload] | None
    ) -> tuple[Judgement, bool]:
        """The verdict, and whether anything had to be asked (only that, where ``live`` is None)."""
        scene = _Scene(process, self._dialect)
        asked = listed = False
        for _ in range(ROUNDS):
            decision = decide(scene.snapshot())
            if decision.needs:
                asked = True
                if live is None:
                    return Judgement(None), True
                listed |= any(
                    isinstance(need, ListLivePods) and need.vanished for need in decision.needs
                )
                scene.answer(decision, *live)
            elif not scene.is_news(decision):
                return scene.verdict(decision)._replace(listed=listed), asked
        raise Restless(f"{process}: {decision}")


def _key(process: ModelProcess) -> tuple[object, ...]:
    return (
        process.claim,
        process.reservation,
        process.workload,
        process.pods,
        process.ghosts,
        process.told,
        process.overdue,
        process.opened,
        process.whole == 1,
        tuple(noted == 1 for noted in process.noted),
        process.settled,
        process.deleting_settled,
        process.blind,
        process.deallocated,
        process.withdrawn_settled,
        process.group,
        process.came,
        process.grouped,
        process.tainted,
        process.closed,
    )


def _confirmed(workload: Workload, dialect: ModelDialect) -> WorkloadState:
    """What a live GET of the workload tells."""
    if workload.phase == ModelPhase.ABSENT:
        return WorkloadState(RealPhase.ABSENT)
    return replace(objects.workload_of(workload, dialect), confirmed=True)


class _Scene:
    """One process at one moment, with what it has found out."""

    def __init__(self, process: ModelProcess, dialect: ModelDialect) -> None:
        self._process = process
        self._dialect = dialect
        self._held: ClaimReservation | None = None
        if process.reservation.there != There.GONE:
            self._held = objects.reservation_of(process.reservation, dialect)
        absent = process.workload.phase == ModelPhase.ABSENT
        unseen = WorkloadState(RealPhase.UNSEEN)
        self._workload = unseen if absent else objects.workload_of(process.workload, dialect)
        self._evidence = Evidence()
        self._snapshot = Snapshot(
            now=builders.NOW,
            namespace=builders.NAMESPACE,
            name=builders.CLAIM,
            claim=objects.claim_of(process.claim, dialect),
            pods=objects.pods_of(process.pods, dialect),
            groups=objects.groups_of(process.group),
            ghosts=objects.ghosts_of(process),
            slices=objects.slices_of(process.tainted),
            nodes=objects.nodes_of(process.closed),
            claims=objects.OTHER_CLAIMS,
            binding_conditions=dialect.conditions is Conditions.OTHER,
            rules=dialect.rules,
            memory=objects.memory_of(process, dialect),
        )

    def snapshot(self) -> Snapshot:
        held = (self._as_held(self._held),) if self._held else ()
        return replace(self._snapshot, reservations=held, evidence=self._evidence)

    def _as_held(self, reservation: ClaimReservation) -> Held:
        if not reservation.metadata.deleting:
            return Held(reservation, self._workload)
        settled = self._process.withdrawn_settled
        return Held(reservation, self._workload, objects.LONG if settled else 0.0)

    def answer(self, decision: Decision, pods: tuple[int, ...], workload: Workload) -> None:
        there = {f"uid-{objects.name_of(pod)}" for pod, at in enumerate(pods) if at in EXISTS}
        # a listed group with a bound pod is there: its protection stays as long as the pod
        there |= {group.metadata.uid for group in self._snapshot.groups}
        for need in decision.needs:
            if isinstance(need, ConfirmWorkload):
                self._workload = _confirmed(workload, self._dialect)
            elif isinstance(need, ConfirmPods):
                asked = frozenset(reference.uid for reference in need.references)
                old = self._evidence
                gone, present = old.gone_pods | (asked - there), old.present_pods | (asked & there)
                self._evidence = replace(old, gone_pods=gone, present_pods=present)
            elif isinstance(need, ListLivePods):
                listed = objects.pods_of(pods, self._dialect)
                live = LiveList(
                    need.claim_version,
                    listed,
                    frozenset(there),
                    self._settled(),
                    caught_up=need.vanished,
                )
                self._evidence = replace(self._evidence, live=live)

    def _settled(self) -> bool:
        process = self._process
        deleting = process.claim.there == There.DELETING
        return bool(process.deleting_settled if deleting else process.settled)

    def is_news(self, decision: Decision) -> bool:
        """Whether the decision only writes news into a status. The news count as written then."""
        write = decision.write
        if not isinstance(write, WriteStatus):
            return False
        wanted = self._write(write)
        if (wanted.values, wanted.columns) != objects.status_values(self._process.reservation):
            return False
        self._write_status(write.status)
        return True

    def _write(self, write: RealWrite) -> Write:
        process = self._process
        return objects.write_of(write, process.reservation, process.claim, self._dialect)

    def _write_status(self, status: ClaimReservationStatus) -> None:
        assert self._held is not None
        if self._held.status == status:
            raise Restless(f"a status write without effect: {status}")
        self._held = msgspec.structs.replace(self._held, status=status)

    def verdict(self, decision: Decision) -> Judgement:
        if decision.write is not None:
            return Judgement(self._write(decision.write))
        waits = tuple(sorted({blocker.reason for blocker in decision.blockers}))
        return Judgement(None, waits)
