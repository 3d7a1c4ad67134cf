"""Keeps pods off nodes that refuse them: entries of the record, taints, and the brake's gate.

One write of the record puts an avoidance into force: the admission policy claimctl-avoidance reads
it when a pod is created. So there is nothing to finish after a killed process. The gate is removed
from pods after the record says that they may go; pods whose gate is left are found by the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace as with_fields

from claimctl.kube.client import Client
from claimctl.kube.errors import Forbidden
from claimctl.live_objects import Changed, change_object
from claimctl.telemetry.face import Metric
from claimctl.wire.seams import Clock
from claimctl.wire.traces import BRAKE_GATE
from claimctl_reschedule.plan.avoidance import is_empty
from claimctl_reschedule.plan.facts import reference
from claimctl_reschedule.plan.plan import AvoidStep, PodRef
from claimctl_reschedule.plan.refusals import is_braked
from claimctl_reschedule.run.records import Records
from claimctl_reschedule.run.taints import Taints
from claimctl_reschedule.shapes.records import (
    MAX_AVOIDANCES,
    RecordedAvoidance,
    RescheduleRecordStatus,
)
from claimctl_reschedule.shapes.scheduling import SCHEDULING_PODS, SchedulingPod


@dataclass(slots=True)
class Avoiding:
    """Writes and removes what keeps pods off nodes. ``records`` has the entries."""

    client: Client
    clock: Clock
    records: Records

    async def remember(
        self, steps: Sequence[AvoidStep], overtaken: Callable[[], bool] = lambda: False
    ) -> list[str]:
        """Put avoidances into force, or end them, unless they are ``overtaken``; what a reader of
        the result should know, one line each. Raises NoRecord if there is no record, so that pods
        avoid nothing."""
        if not steps:
            return []
        entries = [step.entry for step in steps]
        status = await self.records.change(
            lambda status: status if overtaken() else with_avoidances(status, entries)
        )
        if overtaken():
            return []
        in_force = sum(bool(avoidance.nodes or avoidance.braked) for avoidance in status.avoidances)
        self.client.telemetry.gauge(Metric.RESCHEDULE_AVOIDANCES, in_force)
        notes: list[str] = []
        taints = Taints(self.client, self.clock, self.records)
        for step in steps:
            try:
                for taint in step.taints:
                    if taint.pod is not None:
                        await taints.close(taint, taint.pod)
            except Forbidden as error:
                notes.append(f"{taint.node} cannot be tainted: {error}")
        return notes

    async def release(self, pod: PodRef) -> bool:
        """Remove the brake's gate from a pod; whether it was there."""

        def change(present: SchedulingPod) -> dict[str, Any]:
            if present.metadata.uid != pod.uid or not is_braked(present):
                return {}
            gates = [scheduling_gate.name for scheduling_gate in present.spec.scheduling_gates]
            kept = [{"name": name} for name in gates if name != BRAKE_GATE]
            return {"spec": {"schedulingGates": kept or None}}

        done = await change_object(self.client, SCHEDULING_PODS, pod.name, change, pod.namespace)
        return done is Changed.WRITTEN

    async def forget(self) -> None:
        """Remove all avoidances from the record."""
        if await self.records.read() is not None:
            await self.records.change(lambda status: with_fields(status, avoidances=()))

    async def stop(self) -> int:
        """Forget all avoidances and let all braked pods go; how many pods went."""
        await self.forget()
        return sum([await self.release(pod) for pod in await braked_pods(self.client)])


async def braked_pods(client: Client) -> list[PodRef]:
    """The pods that have the brake's gate."""
    pods = (await client.list(SCHEDULING_PODS, partial=True)).items
    return [reference(pod) for pod in pods if is_braked(pod)]


def with_avoidances(
    status: RescheduleRecordStatus, entries: Iterable[RecordedAvoidance]
) -> RescheduleRecordStatus:
    """The status with these entries in place of those of the same owners."""
    known = {avoidance.owner_uid: avoidance for avoidance in status.avoidances}
    known |= {entry.owner_uid: entry for entry in entries}
    kept = [entry for entry in known.values() if not is_empty(entry)]
    kept.sort(key=lambda entry: (bool(entry.nodes or entry.braked), _latest(entry)))
    ordered = sorted(kept[-MAX_AVOIDANCES:], key=lambda entry: entry.owner_uid)
    return with_fields(status, avoidances=tuple(ordered))


def _latest(entry: RecordedAvoidance) -> float:
    times = [refusal.at for refusal in entry.refusals] + [past.since for past in entry.avoided]
    return max((time.timestamp() for time in times if time is not None), default=0.0)
