"""The signs of life of a run: events, metrics and spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from claimctl.kube.events import EventRecorder
from claimctl.telemetry.face import Metric, Telemetry, Value
from claimctl.text import counted
from claimctl.wire.coordination import ObjectReference
from claimctl_reschedule.plan.plan import AvoidStep, Plan, ResizeStep
from claimctl_reschedule.run.groups import MoveGroup
from claimctl_reschedule.run.steps import MoveStep, Result, RunReport
from claimctl_reschedule.run.taints import Closed, End
from claimctl_reschedule.shapes.records import RecordedTaint

EVICTED = "Rescheduled"
ROOM_MADE = "RoomForResize"
AVOIDED, BRAKED, UNAVOIDED = "NodeAvoided", "PodsBraked", "NodeNotAvoided"
TAINTED, UNTAINTED = "NodeClosed", "NodeOpened"
_ACTION = "Reschedule"
_VERSIONS = {
    "Node": "v1",
    "Pod": "v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
    "Job": "batch/v1",
}


@dataclass(slots=True)
class Signs:
    """Where a run tells what it does. Without ``events``, no Events are written. ``failures``:
    evictions that were not done have an Event, too."""

    telemetry: Telemetry
    events: EventRecorder | None = None
    failures: bool = False

    def planned(self, plan: Plan) -> None:
        """Count the pods that stay, by strategy and reason."""
        counts = Counter((skip.strategy, str(skip.reason)) for skip in plan.skipped)
        for (strategy, reason), number in sorted(counts.items()):
            labels = {"strategy": strategy, "reason": reason}
            self.telemetry.add(Metric.RESCHEDULE_SKIPPED, labels, number)

    @contextmanager
    def step(self, group: MoveGroup) -> Iterator[None]:
        """A span around one try of a group."""
        move = group.moves[0]
        attributes: dict[str, Value] = {
            "k8s.namespace.name": move.pod.namespace,
            "k8s.pod.name": move.pod.name,
            "claimctl_reschedule.strategy": move.strategy,
            "claimctl_reschedule.pods": len(group.steps),
        }
        with self.telemetry.span("evict", attributes) as span:
            yield
            results = {str(step.reason or step.result) for step in group.steps}
            span.set(claimctl__reschedule__result=",".join(sorted(results)))

    def finish(self, step: MoveStep) -> None:
        """Count a step that is finished, and write its Events."""
        result = str(step.reason or step.result)
        labels = {"strategy": step.move.strategy, "result": result}
        self.telemetry.add(Metric.RESCHEDULE_EVICTIONS, labels)
        if step.result is Result.EVICTED:
            self._event(step, "Normal", EVICTED, f"evicted: {step.move.why or step.move.strategy}")
        elif self.failures:
            self._event(step, "Warning", result, step.detail)

    def avoided(self, step: AvoidStep) -> None:
        """Count refused pods, and tell the owner what its new pods avoid."""
        if step.refused:
            self.telemetry.add(Metric.RESCHEDULE_REFUSED, {}, step.refused)
        entry = step.entry
        if step.why:
            about = _about(entry.kind, entry.namespace, entry.name, entry.owner_uid)
            reason = BRAKED if entry.braked else AVOIDED if entry.nodes else UNAVOIDED
            kind = "Warning" if entry.braked or entry.nodes else "Normal"
            self._record(about, kind, reason, step.why)

    def tainted(self, entry: RecordedTaint, closed: Closed) -> None:
        if closed is Closed.OURS:
            pod = f"{entry.pod_namespace}/{entry.pod_name}"
            self._node(entry, TAINTED, f"tainted {entry.key}={entry.value} for pod {pod}")

    def untainted(self, entry: RecordedTaint, end: End) -> None:
        why = "in time" if end is End.MET else "at its deadline"
        self._node(entry, UNTAINTED, f"the taint {entry.key}={entry.value} was removed {why}")

    def made_room(self, resize: ResizeStep, group: MoveGroup) -> None:
        """Tell the pod that is to grow."""
        pod, evicted = resize.pod, counted(len(group.evicted), "pod")
        note = f"evicted {evicted} on {pod.node}, so that it can grow"
        about = _about("Pod", pod.namespace, pod.name, pod.uid)
        self._record(about, "Normal", ROOM_MADE, note)

    def ended(self, report: RunReport) -> None:
        """Count what became of the moves."""
        for step in report.steps:
            if step.outcome is not None:
                self.telemetry.add(Metric.RESCHEDULE_MOVES, {"outcome": str(step.outcome)})

    def _event(self, step: MoveStep, type_: str, reason: str, note: str) -> None:
        pod, owner = step.move.pod, step.move.owner
        self._record(_about("Pod", pod.namespace, pod.name, pod.uid), type_, reason, note)
        if owner is not None:
            workload = _about(owner.kind, pod.namespace, owner.name, owner.uid)
            self._record(workload, type_, reason, f"pod {pod.name}: {note}")

    def _node(self, entry: RecordedTaint, reason: str, note: str) -> None:
        self._record(_about("Node", "", entry.node, entry.node_uid), "Normal", reason, note)

    def _record(self, about: ObjectReference, type_: str, reason: str, note: str) -> None:
        if self.events is not None:
            self.events.record(about, type=type_, reason=reason, note=note, action=_ACTION)


def _about(kind: str, namespace: str, name: str, uid: str) -> ObjectReference:
    version = _VERSIONS.get(kind, "")
    return ObjectReference(api_version=version, kind=kind, namespace=namespace, name=name, uid=uid)
