"""The brake: new pods of an owner wait while nodes refuse them.

A pod that waits stops a ReplicaSet from making more of them, and a pod that fails makes it go on.
While the brake is on, one pod at a time is let through as a probe, after 10, 20, 40 seconds and so
on, at most every five minutes. As soon as one of them runs, all go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from msgspec.structs import replace

from claimctl_reschedule.plan import avoidance
from claimctl_reschedule.plan.facts import created_at
from claimctl_reschedule.plan.refusals import AVOIDS, is_braked
from claimctl_reschedule.shapes.records import RecordedAvoidance, RecordedBrake
from claimctl_reschedule.shapes.scheduling import SchedulingPod

FIRST_PROBE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Braked:
    """What to do about an owner that is, or was, braked. ``released`` are the pods that lose the
    gate."""

    entry: RecordedAvoidance
    released: tuple[SchedulingPod, ...] = ()
    why: str = ""
    """What is new, in a few words; '' if nothing is."""


def braked(entry: RecordedAvoidance, now: datetime) -> RecordedAvoidance:
    """Put the brake on. It takes the place of avoidances: a probe may go to any node."""
    brake = RecordedBrake(since=now, next_probe=now + FIRST_PROBE)
    return replace(entry, braked=True, brake=brake, avoided=(), nodes=())


def is_due(entry: RecordedAvoidance, pods: Sequence[SchedulingPod], budget: int) -> bool:
    """Whether nodes refuse ``budget`` pods of an owner or more, of which none starts. ``entry`` has
    the avoidances of this run. A pod that is on its way may be refused, too."""
    count = avoidance.in_spite(entry) + any(map(_is_on_its_way, pods))
    first = entry.refusals[0].at if entry.refusals else None
    starts = first is not None and any(_runs_since(pod, first) for pod in pods)
    return count >= budget and len(entry.refusals) >= avoidance.ENOUGH and not starts


def loosen(entry: RecordedAvoidance) -> RecordedAvoidance:
    """Take the brake off; the owner begins anew."""
    return replace(entry, braked=False, brake=None, refusals=(), avoided=(), nodes=())


def next_step(entry: RecordedAvoidance, pods: Sequence[SchedulingPod], now: datetime) -> Braked:
    """Take the brake off a braked owner, let one of its pods through, or wait."""
    waiting = sorted(
        (pod for pod in pods if is_braked(pod) and not pod.metadata.deleting),
        key=lambda pod: (created_at(pod), pod.metadata.name),
    )
    brake = entry.brake
    if brake is None or brake.since is None or brake.since > now + LONGEST_PAUSE:
        return Braked(loosen(entry), tuple(waiting), "the clock was set back")
    if any(_runs_since(pod, brake.since) for pod in pods):
        return Braked(loosen(entry), tuple(waiting), "a probe runs")
    due = brake.next_probe is None or not now < brake.next_probe <= now + LONGEST_PAUSE
    # a pending pod with avoidances predates the brake, and is no probe
    probes = (pod for pod in pods if pod.spec.node_name or not pod.metadata.annotation(AVOIDS))
    if not due or not waiting or any(map(_is_on_its_way, probes)):
        return Braked(entry)
    pause = min(FIRST_PROBE * (1 << min(brake.probes + 1, 10)), LONGEST_PAUSE)
    probed = replace(brake, probes=brake.probes + 1, next_probe=now + pause)
    return Braked(replace(entry, brake=probed), (waiting[0],), f"probe {probed.probes}")


def _runs_since(pod: SchedulingPod, since: datetime) -> bool:
    """Whether a pod that the brake held, or that came later, runs. Times of objects are whole
    seconds."""
    created = pod.metadata.creation_timestamp
    young = created is not None and created >= since.replace(microsecond=0)
    return young and pod.status.phase == "Running" and not pod.metadata.deleting


def _is_on_its_way(pod: SchedulingPod) -> bool:
    """Whether the pod was let through, and nobody knows yet whether it runs."""
    return pod.status.phase == "Pending" and not is_braked(pod) and not pod.metadata.deleting
