"""Histories for the tests of timelines."""

from __future__ import annotations

from claimctl.commands.timeline.history import Chronicle, ObjectChange
from claimctl.commands.timeline.model import Timeline
from claimctl.wire.meta import Condition
from claimctl.wire.reservations import ClaimReservationStatus, ReleaseProgress
from tests.support.builders import (
    after,
    claim,
    deployment_ref,
    pending,
    pod,
    pod_ref,
    reservation,
    running,
    tomb,
)

UNALLOCATED = claim(allocated=False)
IN_USE = claim(pod_ref("a"), tomb("z"))
HELD = claim(pod_ref("a"), deployment_ref())
IDLE = claim(deployment_ref())


def status(type_: str, value: str, reason: str, message: str = "") -> Condition:
    return Condition(type=type_, status=value, reason=reason, message=message)


HOLDS = reservation(
    status=ClaimReservationStatus(
        conditions=(
            status("Ready", "True", "Ready"),
            status("Released", "False", "Held", "not news"),
            status("Reserved", "True", "Reserved", "held for deployments.apps/train"),
        )
    )
)
RELEASES = reservation(
    status=ClaimReservationStatus(
        conditions=HOLDS.status.conditions,
        release=ReleaseProgress(step="Fenced", reason="WorkloadEnded"),
    )
)


def life(pods: int = 1) -> list[ObjectChange]:
    """A claim is created, used by pods from second 1 to 40, held from 5, and freed at 60."""
    names = ["a", *(f"p{number}" for number in range(1, pods))]
    return [
        ObjectChange(after(0), UNALLOCATED, actor="user"),
        *(ObjectChange(after(1), pending(name)) for name in names),
        ObjectChange(after(2), IN_USE, actor="kube-scheduler"),
        *(ObjectChange(after(3), running(name)) for name in names),
        ObjectChange(after(5), HELD, actor="claimctl"),
        ObjectChange(after(5), HOLDS),
        *(ObjectChange(after(40), running(name), deleted=True) for name in names),
        ObjectChange(after(41), IDLE),
        ObjectChange(after(59), RELEASES),
        ObjectChange(after(60), UNALLOCATED, actor="claimctl"),
    ]


def timeline(changes: list[ObjectChange], end: float = 100) -> Timeline:
    chronicle = Chronicle()
    chronicle.read(changes)
    (found,) = chronicle.timelines(after(end))
    return found


def done(name: str) -> ObjectChange:
    return ObjectChange(after(30), pod(name, node="node-0", phase="Succeeded"))
