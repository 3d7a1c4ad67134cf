"""A driver of devices with binding conditions. Its reports come late, tell of failures, or fail
to come.

Both torture tests use it: it computes reports from claims as the server stores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

from claimctl.wire.base import Object

READY, FAILED = "example.com/ready", "example.com/failed"
DEVICE = {
    "bindsToNode": True,
    "bindingConditions": [READY],
    "bindingFailureConditions": [FAILED],
}
"""The fields of a device for which the scheduler waits."""
LATE = (0.0, 0.0, 1.0, 5.0, 15.0)
"""Seconds until a device is ready."""
SOON = (1.0, 5.0)
"""Seconds until its binding fails."""
LONGEST = 25.0
"""Seconds after which the driver reports a failure where it has nothing else to report."""
_SOME_TIME = "2026-01-01T00:00:00Z"


@dataclass(slots=True)
class Driver:
    """Plans one report for each allocation, and further ones when a device is disturbed.

    Attributes:
        prompt: whether each device is ready at once from now on. Failed devices stay failed.
        punctual: whether the first report of each allocation comes at once.
    """

    rng: Random
    prompt: bool = False
    punctual: bool = False
    _plans: dict[str, tuple[float, str]] = field(default_factory=dict)
    """By allocation: when to report, and which condition; the report is made if it is ""."""

    def reports(self, claims: Iterable[Object], now: float) -> Iterator[tuple[Object, Object]]:
        """The claims whose devices have something to report now, with patches of their status."""
        for claim in claims:
            allocation = _allocation(claim)
            if not allocation:
                continue
            at, due = self._plans.setdefault(allocation, self._drawn(now))
            if due == READY and self.prompt:
                at = now
            if due and at <= now:
                self._plans[allocation] = (now, "")
                yield claim, report(claim, due)

    def _drawn(self, now: float) -> tuple[float, str]:
        if self.prompt or self.punctual:
            return now, READY
        delay, kind = self.rng.choice(
            [
                *[(self.rng.choice(LATE), READY)] * 7,
                *[(self.rng.choice(SOON), FAILED)] * 2,
                (LONGEST, FAILED),
            ]
        )
        return now + delay, kind

    def disturb(self, claim: Object, now: float, seconds: float | None = None) -> Object | None:
        """Let the devices of a claim not be ready for a while; the patch of the claim's status.

        Args:
            seconds: None for some of ``LATE``.
        """
        allocation = _allocation(claim)
        if not allocation:
            return None
        late = self.rng.choice(LATE) if seconds is None else seconds
        self._plans[allocation] = (now + late, READY)
        return report(claim, READY, "False")


def report(claim: Object, kind: str, status: str = "True") -> Object:
    """A patch that says the same of all devices that a claim has."""
    condition = {"type": kind, "status": status, "reason": "Driver", "message": ""}
    conditions = [{**condition, "lastTransitionTime": _SOME_TIME}]
    devices = [
        {**{key: result[key] for key in ("driver", "pool", "device")}, "conditions": conditions}
        for result in _conditional(claim)
    ]
    return {"metadata": {"uid": claim["metadata"]["uid"]}, "status": {"devices": devices}}


def results_of(claim: Object) -> list[Object]:
    """The devices that a claim has, as its allocation names them."""
    allocation = (claim.get("status") or {}).get("allocation") or {}
    return list((allocation.get("devices") or {}).get("results") or ())


def _conditional(claim: Object) -> list[Object]:
    return [result for result in results_of(claim) if result.get("bindingConditions")]


def _allocation(claim: Object) -> str:
    """What distinguishes one allocation from others; "" if no device of it has conditions."""
    results = _conditional(claim)
    if not results:
        return ""
    when = claim["status"]["allocation"].get("allocationTimestamp", "")
    devices = "+".join(f"{result['pool']}/{result['device']}" for result in results)
    return f"{claim['metadata']['uid']} {when} {devices}"
