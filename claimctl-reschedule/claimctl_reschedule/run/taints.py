"""Taints that close a node for a while, and that never stay behind.

The protocol, so that a successor can clean up wherever a process is killed:

0. The record gets an entry with the node, the pod and a deadline. Without it, no taint is set.
1. The node gets the taint, under its resourceVersion. Then the entry is looked at again: another
   process may have swept it, because it found no taint.
2. The pods are evicted, and held claims are given up (``execution``).
3. The taint goes as soon as its purpose is met, or at the deadline. Until then the process renews
   the entry.
4. The entry goes.

``sweep`` finishes what any process left behind. An entry that nobody renews is of a dead process.
If a pod that it was to evict is still there, the taint goes at once: the next plan decides anew. If
all of them have left, the taint keeps that room until its purpose is met. claimctl's
own taints have one of three keys and a value that begins with ``claimctl-``; no other taint is ever
changed.

A write of a node's taints replaces the list. It carries the resourceVersion of the read before it,
so a taint that another client adds or removes meanwhile is never lost or restored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from msgspec.structs import replace

from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden
from claimctl.live_objects import Changed, change_object
from claimctl.telemetry.face import Metric
from claimctl.wire import traces
from claimctl.wire.meta import find_condition
from claimctl.wire.seams import Clock
from claimctl.wire.traces import (
    AVOID_TAINT,
    CRITICAL_TAINT,
    MOVING_TAINT,
    TAINTED_NODES,
    TaintedNode,
)
from claimctl_reschedule.plan.facts import is_critical
from claimctl_reschedule.plan.plan import PodRef, TaintStep
from claimctl_reschedule.run.evicting import present
from claimctl_reschedule.run.reallocating import withdraw_stale
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.shapes.records import (
    MAX_ATTEMPTS,
    MAX_VICTIMS,
    RecordedAttempts,
    RecordedTaint,
    RescheduleRecordStatus,
)
from claimctl_reschedule.shapes.scheduling import SCHEDULING_PODS, SchedulingPod

REPLACED = timedelta(seconds=30)
"""After this time an owner has made a replacement for an evicted pod, if it makes one at all."""
YOUNG = timedelta(seconds=30)
"""An entry that was renewed within this time is of a process that lives."""
RENEWED = 10.0
"""After so many seconds, a process renews the entries of its taints."""

Taint = dict[str, Any]
"""A taint with all its fields, also those that claimctl does not know."""


class Closed(StrEnum):
    """The result of tainting a node."""

    OURS = "Ours"
    FOREIGN = "Foreign"
    """An administrator's taint closes the node already; claimctl adds none."""
    BUSY = "Busy"
    """Another move has closed the node, or works for the same pod."""
    CHANGED = "Changed"
    """The node is gone or is another one."""


class End(StrEnum):
    """Why a taint is not needed any more."""

    MET = "Met"
    TIMED_OUT = "TimedOut"


def is_own(taint: Taint) -> bool:
    return traces.is_own(str(taint.get("key")), str(taint.get("value") or ""))


def _matches(taint: Taint, entry: RecordedTaint) -> bool:
    return taint.get("key") == entry.key and (taint.get("value") or "") == entry.value


@dataclass(slots=True)
class Taints:
    """Sets and removes taints. ``records`` has their entries."""

    client: Client
    clock: Clock
    records: Records
    _renew_at: float = 0.0
    """When the entries are to be renewed, by the monotonic clock."""

    async def close(
        self, step: TaintStep, pod: PodRef, victims: Sequence[str] = ()
    ) -> tuple[Closed, RecordedTaint]:
        """Record and set a taint for ``pod``: steps 0 and 1.

        Args:
            victims: the UIDs of the pods that are to leave the node.

        Raises:
            NoRecord: there is no record, so no taint was set.
            Forbidden: the right to patch nodes is missing; nothing is left.
            KubeError: a request failed; the sweep removes what was done.
        """
        now = self.clock.now()
        entry = RecordedTaint(
            node=step.node,
            node_uid=step.node_uid,
            key=step.key,
            value=step.value,
            pod_namespace=pod.namespace,
            pod_name=pod.name,
            pod_uid=pod.uid,
            victims=tuple(victims[:MAX_VICTIMS]),
            since=now,
            renewed=now,
            deadline=now + timedelta(seconds=step.timeout_seconds),
        )
        self._renew_at = self.clock.monotonic() + RENEWED
        if not traces.is_own(step.key, step.value):
            raise ValueError(f"a plan must not set the taint {step.key}={step.value}")

        def add(status: RescheduleRecordStatus) -> RescheduleRecordStatus:
            place = entry.node, entry.key
            taken = any(
                (taint.node, taint.key) == place
                or (taint.pod_uid == entry.pod_uid and entry.key == CRITICAL_TAINT)
                for taint in status.taints
            )
            return status if taken else replace(status, taints=(*status.taints, entry))

        status = await self.records.change(add)
        if not _is_in(entry, status):
            return Closed.BUSY, entry
        try:
            closed = await self._set(entry, step)
        except Forbidden:
            await self._forget(entry)
            raise
        if closed is Closed.OURS:
            record = await self.records.read()
            if record is None or not _is_in(entry, record.status):
                await self._untaint(entry)
                closed = Closed.BUSY
        if closed in (Closed.BUSY, Closed.CHANGED):
            await self._forget(entry)
        return closed, entry

    async def lift(self, entry: RecordedTaint, end: End) -> None:
        """Remove a taint and then its entry: steps 3 and 4. Both are no-ops if done."""
        await self._untaint(entry)
        await self._forget(entry, failed=end is End.TIMED_OUT and entry.key == CRITICAL_TAINT)

    async def ended(self, entry: RecordedTaint) -> End | None:
        """Whether the purpose of a taint is met, or its time is over."""
        met = {CRITICAL_TAINT: self._has_room, AVOID_TAINT: self._is_trusted}
        if await met.get(entry.key, self._has_left)(entry):
            return End.MET
        if entry.deadline is None or self.clock.now() >= entry.deadline:
            return End.TIMED_OUT
        return None

    async def sweep(self, *, everything: bool = False) -> int:
        """Remove the taints and entries that no process needs any more; how many taints went.

        The requests to give claims up that were made for such a taint go, too. The entries of all
        records count, because another process may have a record of its own. ``everything``: also
        taints of ours that are in use.
        """
        records = await self.records.all()
        every = (await self.client.list(TAINTED_NODES)).items
        nodes = {node.metadata.name: node for node in every if any(map(is_own, node.spec.taints))}
        removed = 0
        for record in records:
            of_record = Taints(self.client, self.clock, Records(self.client, record.metadata.name))
            for entry in record.status.taints:
                node = nodes.get(entry.node)
                tainted = node is not None and any(_matches(t, entry) for t in node.spec.taints)
                end = await of_record._sweepable(entry, tainted=tainted, everything=everything)
                if end is not None:
                    await of_record.lift(entry, end)
                    removed += tainted
        live = await self._live()
        for name, node in nodes.items():
            for taint in node.spec.taints:
                if is_own(taint) and not any(
                    entry.node == name and _matches(taint, entry) for entry in live
                ):
                    key, value = str(taint["key"]), str(taint.get("value") or "")
                    removed += await self._untaint(RecordedTaint(node=name, key=key, value=value))
        needed = await self._live()
        await withdraw_stale(self.client, {entry.value for entry in needed})
        self.client.telemetry.gauge(Metric.RESCHEDULE_TAINTS, len(needed))
        return removed

    async def _sweepable(
        self, entry: RecordedTaint, *, tainted: bool, everything: bool
    ) -> End | None:
        if everything:
            return End.MET
        if tainted:
            end = await self.ended(entry)
            # a node that was only kept empty had no victims
            left = entry.victims or entry.key == MOVING_TAINT
            dead = end is None and left and not self._is_young(entry)
            return End.MET if dead and await self._stays(entry) else end
        # the process that wrote a young entry may be about to set the taint
        return None if self._is_young(entry) else End.MET

    def _is_young(self, entry: RecordedTaint) -> bool:
        last = entry.renewed or entry.since
        return last is not None and self.clock.now() < last + YOUNG

    async def _stays(self, entry: RecordedTaint) -> bool:
        """Whether a pod that was to leave the node is still there, or none was."""
        if not entry.victims:
            return True
        pods = await self._pods_on(entry.node)
        victims = (pod for pod in pods if pod.metadata.uid in entry.victims)
        return any(not pod.metadata.deleting for pod in victims)

    async def renew(self, entries: Iterable[RecordedTaint]) -> None:
        """Say in the record that this process lives, if it is time to."""
        now, keys = self.clock.now(), {_key(entry) for entry in entries}
        if not keys or self.clock.monotonic() < self._renew_at:
            return
        self._renew_at = self.clock.monotonic() + RENEWED

        def renewed(status: RescheduleRecordStatus) -> RescheduleRecordStatus:
            taints = (
                replace(entry, renewed=now) if _key(entry) in keys else entry
                for entry in status.taints
            )
            return replace(status, taints=tuple(taints))

        await self.records.change(renewed)

    async def _live(self) -> tuple[RecordedTaint, ...]:
        """The entries as they are now: a taint of a moment ago may be another process's."""
        return tuple(taint for record in await self.records.all() for taint in record.status.taints)

    async def _set(self, entry: RecordedTaint, step: TaintStep) -> Closed:
        closed = Closed.OURS

        def change(node: TaintedNode) -> tuple[Taint, ...]:
            nonlocal closed
            taints = node.spec.taints
            # key and effect identify a taint on a node
            place = (step.key, step.effect)
            same = [taint for taint in taints if (taint.get("key"), taint.get("effect")) == place]
            if node.metadata.uid != step.node_uid:
                closed = Closed.CHANGED
            elif not same:
                return (*taints, {"key": step.key, "value": step.value, "effect": step.effect})
            elif not _matches(same[0], entry):
                closed = Closed.BUSY if is_own(same[0]) else Closed.FOREIGN
            return taints

        done = await self._write(entry.node, change)
        return Closed.CHANGED if done is Changed.GONE else closed

    async def _untaint(self, entry: RecordedTaint) -> bool:
        """Remove exactly this taint, on a node of any state; whether it was there."""

        def kept(node: TaintedNode) -> tuple[Taint, ...]:
            return tuple(taint for taint in node.spec.taints if not _matches(taint, entry))

        return await self._write(entry.node, kept) is Changed.WRITTEN

    async def _write(
        self, name: str, change: Callable[[TaintedNode], tuple[Taint, ...]]
    ) -> Changed:
        """Change the taints of a node under its version."""

        def patch(node: TaintedNode) -> dict[str, Any]:
            wanted = change(node)
            same = wanted == node.spec.taints
            return {} if same else {"spec": {"taints": list(wanted) or None}}

        return await change_object(self.client, TAINTED_NODES, name, patch)

    async def _forget(self, entry: RecordedTaint, *, failed: bool = False) -> None:
        """Remove the entry; ``failed`` counts an attempt for the pod."""
        now = self.clock.now()

        def change(status: RescheduleRecordStatus) -> RescheduleRecordStatus:
            if not _is_in(entry, status):
                return status
            kept = tuple(taint for taint in status.taints if _key(taint) != _key(entry))
            if not failed:
                return replace(status, taints=kept)
            uid, past = entry.pod_uid, {attempt.pod_uid: attempt for attempt in status.attempts}
            count = past.pop(uid).count + 1 if uid in past else 1
            newest = (*past.values(), RecordedAttempts(pod_uid=uid, count=count, last=now))
            return replace(status, taints=kept, attempts=newest[-MAX_ATTEMPTS:])

        if await self.records.read() is not None:
            await self.records.change(change)

    async def is_placed(self, critical: PodRef) -> bool:
        """Whether a critical pod has a node, is gone or is not critical any more."""
        pod = await present(self.client, critical)
        if pod is None or pod.spec.node_name:
            return True
        return not is_critical(pod, {critical.namespace})

    async def _has_room(self, entry: RecordedTaint) -> bool:
        """Whether the critical pod has a node, or another critical pod has taken its room.

        Critical pods tolerate the taint: the scheduler may bind any of them first. Then the node
        opens again, and the next run makes room for the one that was overtaken.
        """
        pod = PodRef(namespace=entry.pod_namespace, name=entry.pod_name, uid=entry.pod_uid)
        return await self.is_placed(pod) or await self._is_overtaken(entry)

    async def _is_overtaken(self, entry: RecordedTaint) -> bool:
        pods = await self._pods_on(entry.node)
        if not entry.victims or any(pod.metadata.uid in entry.victims for pod in pods):
            return False
        critical = (pod for pod in pods if is_critical(pod, {pod.metadata.namespace}))
        bound = (find_condition(pod.status.conditions, "PodScheduled") for pod in critical)
        times = [condition.last_transition_time for condition in bound if condition is not None]
        # times of objects are whole seconds
        since = entry.since.replace(microsecond=0) if entry.since else None
        return any(time and since and time >= since for time in times)

    async def _pods_on(self, node: str) -> tuple[SchedulingPod, ...]:
        on = f"spec.nodeName={node}"
        return (await self.client.list(SCHEDULING_PODS, field_selector=on, partial=True)).items

    async def _is_trusted(self, entry: RecordedTaint) -> bool:
        """Whether no owner avoids the node any more."""
        record = await self.records.read()
        avoided = record.status.avoidances if record is not None else ()
        return not any(entry.node in avoided_node.nodes for avoided_node in avoided)

    async def _has_left(self, entry: RecordedTaint) -> bool:
        """Whether a unit has left its node and no pod of its namespace waits for a node. Only a
        process that did not set the taint asks: it does not know the replacements, nor whether a
        process that lives keeps the node empty while it empties others."""
        young = self._is_young(entry)
        if young or entry.since is None or self.clock.now() < entry.since + REPLACED:
            return False
        pods = (await self.client.list(SCHEDULING_PODS, entry.pod_namespace)).items
        if any(pod.metadata.uid == entry.pod_uid for pod in pods):
            return False
        return all(pod.spec.node_name or pod.metadata.deleting for pod in pods)


def _key(entry: RecordedTaint) -> tuple[str, str, str, datetime | None]:
    """What does not change when the entry is renewed."""
    return entry.node, entry.key, entry.value, entry.since


def _is_in(entry: RecordedTaint, status: RescheduleRecordStatus) -> bool:
    return any(_key(taint) == _key(entry) for taint in status.taints)
