"""What drivers report and publish about the devices of a claim, and nothing beyond it.

What keeps pods from a device is no note: ``whereabouts`` tells it, with a step against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from claimctl.reservation.facts.devices import JudgedDevice, judge
from claimctl.text import listed
from claimctl.wire.claims import DeviceRequestAllocationResult, ResourceClaim, ResourceSlice
from claimctl.wire.meta import find_condition
from claimctl.wire.placement import BLOCKING_EFFECTS, tolerates


def device_notes(claim: ResourceClaim, slices: Iterable[ResourceSlice]) -> tuple[str, ...]:
    """One line for each matter of an allocated device. Without the ResourceSlices, nothing is said
    of what its driver publishes."""
    return tuple(
        f"{judged.result.pool}/{judged.result.device}: {note}"
        for judged in judge(claim.devices, slices)
        for note in (*_binding(judged.result, claim), *_harmless_taints(judged))
    )


def binding_waits(claim: ResourceClaim) -> tuple[str, ...]:
    """One line for each device whose driver has not reported what a scheduler waits for before it
    binds a pod."""
    return tuple(
        f"{result.pool}/{result.device}: {wait}"
        for result in claim.devices
        if (wait := _binding_wait(result, claim))
    )


def _binding(result: DeviceRequestAllocationResult, claim: ResourceClaim) -> Iterator[str]:
    """What the driver reports of the conditions without which a scheduler binds no pod."""
    if result.binding_conditions:
        all_true = f"driver {result.driver} reports all binding conditions as true"
        yield _binding_wait(result, claim) or all_true


def _binding_wait(result: DeviceRequestAllocationResult, claim: ResourceClaim) -> str:
    """Which of these conditions keep a scheduler from binding a pod; '' if none does."""
    if not result.binding_conditions:
        return ""
    conditions = claim.status.reported(result)

    def is_true(type_: str) -> bool:
        condition = find_condition(conditions, type_)
        return condition is not None and condition.status == "True"

    if failed := tuple(filter(is_true, result.binding_failure_conditions)):
        return f"driver {result.driver} reports that binding failed ({listed(failed)})"
    missing = [condition for condition in result.binding_conditions if not is_true(condition)]
    if not missing:
        return ""
    unknown = all(find_condition(conditions, name) is None for name in missing)
    said = "has reported nothing about" if unknown else "does not report as true"
    allocation = claim.status.allocation
    since = allocation.allocation_timestamp if allocation is not None else None
    when = f"; it was allocated at {since:%Y-%m-%dT%H:%M:%SZ}" if since is not None else ""
    return (
        f"a scheduler binds no pod before these binding conditions are true, and driver "
        f"{result.driver} {said} {listed(missing)}{when}"
    )


def _harmless_taints(judged: JudgedDevice) -> Iterator[str]:
    """The taints that do not keep the claim's pods away."""
    result = judged.result
    for taint in judged.device.all_taints if judged.device is not None else ():
        text = f"driver {result.driver} taints it with {taint.text}"
        if any(tolerates(toleration, taint) for toleration in result.tolerations):
            yield f"{text}, and the claim's request tolerates that"
        elif taint.effect not in BLOCKING_EFFECTS:
            yield f"{text}, which keeps no pod away"
