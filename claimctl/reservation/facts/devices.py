"""What the ResourceSlices say about a claim's devices: one judgement for everything that asks.

The scheduler looks at slices only when it allocates. So a held claim keeps a device that its driver
does not offer any more, or declares broken, and each new pod would be brought to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import inf

from claimctl.reservation.facts.reasons import Reason
from claimctl.reservation.kinds.drivers import known_drivers
from claimctl.wire.claims import Device, DeviceRequestAllocationResult, ResourceSlice
from claimctl.wire.nodes import Taint
from claimctl.wire.placement import BLOCKING_EFFECTS, NO_EXECUTE, admits

GONE_SECONDS, GONE_BESIDE_PODS_SECONDS = 5.0, 30.0
"""For how long a device has to be gone before it counts as lost: without bound pods, and beside
them. A driver that publishes its pool in steps may leave a device out for a moment."""

DeviceKey = tuple[str, str, str]
"""Driver, pool and name of a device."""


class DeviceState(StrEnum):
    PUBLISHED = "Published"
    TAINTED = "Tainted"
    """Published, with a taint that keeps pods away and that the claim does not tolerate."""
    GONE = "Gone"
    """Its pool is complete and does not have it."""
    UNKNOWN = "Unknown"
    """Slices of its pool are missing, as while a kubelet or driver restarts; or the driver hides a
    device that a pod uses."""


@dataclass(frozen=True, slots=True)
class JudgedDevice:
    """An allocated device as the newest generation of its pool shows it."""

    result: DeviceRequestAllocationResult
    state: DeviceState
    device: Device | None = None
    """The device in the slice; None if it is not there."""
    taint: Taint | None = None
    """With TAINTED: the taint, one that evicts pods if there is one."""

    @property
    def key(self) -> DeviceKey:
        return self.result.driver, self.result.pool, self.result.device

    @property
    def evicts(self) -> bool:
        """Whether kube-controller-manager evicts the pods because of the taint."""
        return self.taint is not None and self.taint.effect == NO_EXECUTE

    def __str__(self) -> str:
        said = "is not published any more"
        if self.taint is not None:
            value = f"={self.taint.value}" if self.taint.value else ""
            said = f"has the taint {self.taint.key}{value}:{self.taint.effect}"
        driver, pool, device = self.key
        return f"device {device} of pool {pool} (driver {driver}) {said}"


def judge(
    results: Iterable[DeviceRequestAllocationResult], slices: Iterable[ResourceSlice]
) -> tuple[JudgedDevice, ...]:
    """Judge each allocated device. Slices of other pools do not matter."""
    pieces = [piece.spec for piece in slices]
    judged = []
    for result in results:
        name = (result.driver, result.pool)
        pool = [piece for piece in pieces if (piece.driver, piece.pool.name) == name]
        newest = max((piece.pool.generation for piece in pool), default=0)
        pool = [piece for piece in pool if piece.pool.generation == newest]
        found = (device for piece in pool for device in piece.devices or ())
        device = next((device for device in found if device.name == result.device), None)
        if device is not None:
            taints = [t for t in device.all_taints if not admits((t,), result.tolerations)]
            taint = min(taints, key=lambda taint: taint.effect != NO_EXECUTE, default=None)
            state = DeviceState.PUBLISHED if taint is None else DeviceState.TAINTED
            judged.append(JudgedDevice(result, state, device, taint))
            continue
        habits = known_drivers().get(result.driver)
        hidden = habits is not None and habits.hides_used_devices
        complete = pool and all(piece.pool.resource_slice_count == len(pool) for piece in pool)
        gone = complete and not hidden
        judged.append(JudgedDevice(result, DeviceState.GONE if gone else DeviceState.UNKNOWN))
    return tuple(judged)


def is_special(device: Device) -> bool:
    """Whether decisions look at more of the device than its name."""
    blocks = any(taint.effect in BLOCKING_EFFECTS for taint in device.all_taints)
    return blocks or device.has_binding_conditions or device.is_for_one_pod


@dataclass(frozen=True, slots=True)
class Loss:
    """Why no pod should be brought to the claim's devices any more."""

    reason: Reason
    message: str
    after: float = 0.0
    """Seconds until it counts; inf if it never does."""

    @property
    def counts(self) -> bool:
        return self.after <= 0

    @property
    def waits(self) -> bool:
        """Whether time alone makes it count."""
        return 0 < self.after < inf


def losses(
    devices: Iterable[JudgedDevice],
    gone_age: Mapping[DeviceKey, float],
    *,
    beside_pods: bool,
    never: bool,
) -> Iterator[Loss]:
    """The losses among the devices.

    Args:
        gone_age: by device, the seconds since it was first seen gone.
        never: whether a user wants to keep devices that pods cannot use. A device that evicts its
            pods is lost all the same: a hold beside it would bring pods there without end.
    """
    patience = GONE_BESIDE_PODS_SECONDS if beside_pods else GONE_SECONDS
    for judged in devices:
        if judged.state is DeviceState.TAINTED:
            kept = inf if never and not judged.evicts else 0.0
            yield Loss(Reason.DEVICE_TAINTED, str(judged), kept)
        elif judged.state is DeviceState.GONE:
            left = max(patience - gone_age.get(judged.key, 0.0), 0.0)
            yield Loss(Reason.DEVICE_GONE, str(judged), inf if never else left)
