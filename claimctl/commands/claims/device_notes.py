"""What a claim's devices wait for, and their taints: what drivers report, and nothing beyond it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from claimctl.text import listed
from claimctl.wire.claims import DeviceRequestAllocationResult, ResourceClaim, ResourceSlice
from claimctl.wire.meta import find_condition
from claimctl.wire.nodes import Taint
from claimctl.wire.placement import tolerates


def device_notes(claim: ResourceClaim, slices: Iterable[ResourceSlice]) -> tuple[str, ...]:
    """One line for each matter of an allocated device. Without the ResourceSlices, taints are not
    mentioned."""
    slices = tuple(slices)
    return tuple(
        f"{device.pool}/{device.device}: {note}"
        for device in claim.devices
        for note in (*_conditions(device, claim), *_taints(device, slices))
    )


def _conditions(result: DeviceRequestAllocationResult, claim: ResourceClaim) -> Iterator[str]:
    """The conditions of the device without which a scheduler binds no pod."""
    if not result.binding_conditions:
        return
    conditions = claim.status.reported(result)

    def is_true(type_: str) -> bool:
        condition = find_condition(conditions, type_)
        return condition is not None and condition.status == "True"

    if failed := tuple(filter(is_true, result.binding_failure_conditions)):
        yield f"driver {result.driver} reports that binding failed ({listed(failed)})"
        return
    missing = [condition for condition in result.binding_conditions if not is_true(condition)]
    if not missing:
        yield f"driver {result.driver} reports all binding conditions as true"
        return
    unknown = all(find_condition(conditions, name) is None for name in missing)
    said = "has reported nothing about" if unknown else "does not report as true"
    allocation = claim.status.allocation
    since = allocation.allocation_timestamp if allocation is not None else None
    when = f"; it was allocated at {since:%Y-%m-%dT%H:%M:%SZ}" if since is not None else ""
    yield (
        f"a scheduler binds no pod before these binding conditions are true, and driver "
        f"{result.driver} {said} {listed(missing)}{when}"
    )


def _taints(
    result: DeviceRequestAllocationResult, slices: Iterable[ResourceSlice]
) -> Iterator[str]:
    for taint in _published_taints(result, slices):
        tolerated = any(tolerates(toleration, taint) for toleration in result.tolerations)
        text = f"{taint.key}={taint.value}" if taint.value else taint.key
        text = f"driver {result.driver} taints it with {text}:{taint.effect}"
        if tolerated:
            yield f"{text}, and the claim's request tolerates that"
        else:
            effect = _EFFECTS.get(taint.effect, "")
            yield f"{text}, and the claim's request does not tolerate that{effect}"


_EFFECTS = {
    "NoExecute": ": kube-controller-manager evicts its pods (DRADeviceTaints)",
    "NoSchedule": ": no new allocation gets it",
}


def _published_taints(
    result: DeviceRequestAllocationResult, slices: Iterable[ResourceSlice]
) -> tuple[Taint, ...]:
    """The taints of the device in the newest generation of its pool."""
    name = (result.driver, result.pool)
    pool = [piece for piece in slices if (piece.spec.driver, piece.spec.pool.name) == name]
    newest = max((piece.spec.pool.generation for piece in pool), default=0)
    return tuple(
        taint
        for piece in pool
        if piece.spec.pool.generation == newest
        for device in piece.spec.devices or ()
        if device.name == result.device
        for taint in device.all_taints
    )
