"""What has become of a claim's devices, as the ResourceSlices say: one judgement for all who ask.

``judge`` finds the state of each device, and ``JudgedDevice`` lists the states. ``Snapshot.loss``
says what follows for the claim, and ``Loss`` carries it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.kinds.drivers import known_drivers
from claimctl.text import listed
from claimctl.wire.claims import (
    Device,
    DeviceRequestAllocationResult,
    ResourceSlice,
)
from claimctl.wire.nodes import Taint
from claimctl.wire.placement import NO_EXECUTE, admits

GONE_SECONDS = 5.0
"""For how long a device has to be gone before it counts as lost, while no pod is bound."""
GONE_BESIDE_PODS_SECONDS = 30.0
"""The same beside bound pods. After that time nobody doubts that it is gone: so it stays gone when
its slices go away (``stays_gone``)."""

DeviceKey = tuple[str, str, str]
"""Driver, pool and name of a device."""


@dataclass(frozen=True, slots=True)
class JudgedDevice:
    """An allocated device as the newest generation of its pool shows it. It is in one state:

    - there (``device``), perhaps with a ``taint``;
    - ``gone``;
    - ``unpublished``: nothing is known of its pool, as while a kubelet or a driver restarts;
    - none of these: nothing is known of the device. A part of the pool is missing, or its driver
      hides a device that a pod uses.
    """

    result: DeviceRequestAllocationResult
    device: Device | None = None
    taint: Taint | None = None
    """A taint that keeps pods away and that the claim does not tolerate; one that evicts them if
    there is one."""
    gone: bool = False
    """Whether its pool is complete and does not have it. No device is, of a driver that hides the
    devices that pods use."""
    unpublished: bool = False
    """Whether no slice of its pool is there: its driver may be away."""

    @property
    def key(self) -> DeviceKey:
        return self.result.driver, self.result.pool, self.result.device

    @property
    def problem(self) -> str:
        """What is wrong with a device that is tainted, or that counts as gone, as a sentence."""
        driver, pool, device = self.key
        wrong = f"has the taint {self.taint.text}" if self.taint else "is not published any more"
        return f"device {device} of pool {pool} (driver {driver}) {wrong}"


def judge(
    results: Iterable[DeviceRequestAllocationResult], slices: Iterable[ResourceSlice]
) -> Iterator[JudgedDevice]:
    """Judge each allocated device. Slices of other pools do not matter."""
    pieces = [piece.spec for piece in slices]
    for result in results:
        name = (result.driver, result.pool)
        pool = [piece for piece in pieces if (piece.driver, piece.pool.name) == name]
        newest = max((piece.pool.generation for piece in pool), default=0)
        pool = [piece for piece in pool if piece.pool.generation == newest]
        devices = (device for piece in pool for device in piece.devices or ())
        device = next((device for device in devices if device.name == result.device), None)
        known = device.all_taints if device is not None else ()
        taints = [taint for taint in known if not admits((taint,), result.tolerations)]
        taint = min(taints, key=lambda taint: taint.effect != NO_EXECUTE, default=None)
        habits = known_drivers().get(result.driver)
        complete = pool and all(piece.pool.resource_slice_count == len(pool) for piece in pool)
        gone = complete and device is None and not (habits and habits.hides_used_devices)
        yield JudgedDevice(result, device, taint, bool(gone), not pool)


def stays_gone(judged: JudgedDevice, age: float) -> bool:
    """Whether a device is gone, or was gone for ``GONE_BESIDE_PODS_SECONDS`` before its slices went
    away.

    Slices go away for some seconds when a kubelet or a driver is restarted. Without this rule, a
    hold would come back in these seconds, and bring a pod to a device that is not there.

    Args:
        age: the seconds since the device was first seen gone, if it has stayed gone since.
    """
    return judged.gone or (judged.unpublished and age >= GONE_BESIDE_PODS_SECONDS)


def is_for_one_pod(devices: Iterable[JudgedDevice]) -> bool:
    """Whether the scheduler lets no other pod use the claim beside a listed one (KEP-5517)."""
    return any(judged.device and judged.device.is_for_one_pod for judged in devices)


@dataclass(frozen=True, slots=True)
class Loss:
    """Why no pod should be brought to the claim's devices any more (see ``Snapshot.loss``)."""

    reason: Reason
    message: str
    after: float | None = 0.0
    """Seconds until it counts; None if it never does."""


def after_eviction(kinds: Collection[str]) -> str:
    """What becomes of pods that a taint of a device evicts.

    The claim keeps its device while a pod is listed, and each pod with the device is evicted. If
    the next pod is made before the evicted one is gone, it is listed at once.

    Args:
        kinds: the kinds of the workloads that hold the claim and may make pods so early.
    """
    if not kinds:
        return "the next pod may get another device"
    return (
        f"new pods of the {listed(sorted(kinds))} may come before the evicted ones are gone, and "
        "are evicted in turn, without end: for another device, scale it to 0 and back, or suspend "
        "and resume it"
    )
