"""Binding conditions (KEP-5007): whether the devices of an allocated claim are ready to be used.

A device may name conditions that its driver must report before a pod is bound, and others by which
it reports that it failed. kube-scheduler never asks for which node or pod the claim is allocated.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from kube_in_process.components.objects import condition, is_true, name
from kube_in_process.components.pods import allocation_of
from kube_in_process.objects import Object

BINDING_SECONDS = 600.0
"""DynamicResourcesArgs.bindingTimeout, by default."""


class BindingFailed(Exception):
    """A driver reports that a device failed. The text is for the pod's condition."""


def is_conditional(claim: Object) -> bool:
    """Whether an allocated device has binding conditions."""
    return any(True for _ in _conditional(claim))


def is_ready(claim: Object) -> bool:
    """Whether the claim is allocated and its drivers report every binding condition as true.

    Raises:
        BindingFailed: a driver reports a failure.
    """
    if allocation_of(claim) is None:
        return False
    for result in _conditional(claim):
        reported = _reported(claim, result)
        if reported is None:
            return False
        for kind in result.get("bindingFailureConditions") or ():
            if is_true(reported, kind):
                raise BindingFailed(_failure(claim, condition(reported, kind) or {}))
        if not all(is_true(reported, kind) for kind in result["bindingConditions"]):
            return False
    return True


def is_late(claim: Object, now: datetime) -> bool:
    """Whether a claim with binding conditions was allocated longer than the timeout ago."""
    since = (allocation_of(claim) or {}).get("allocationTimestamp")
    if since is None or not is_conditional(claim):
        return False
    return (now - datetime.fromisoformat(since)).total_seconds() > BINDING_SECONDS


def is_given_up(claim: Object, now: datetime) -> bool:
    """Whether Filter refuses every node for the claim: its binding failed, or took too long."""
    try:
        return allocation_of(claim) is not None and not is_ready(claim) and is_late(claim, now)
    except BindingFailed:
        return True


def _conditional(claim: Object) -> Iterator[Object]:
    """The results of the allocation that have binding conditions."""
    results = ((allocation_of(claim) or {}).get("devices") or {}).get("results") or ()
    return (result for result in results if result.get("bindingConditions"))


def _reported(claim: Object, result: Object) -> Object | None:
    """What the driver reports of the device, in the form of an object with a status."""
    for device in (claim.get("status") or {}).get("devices") or ():
        if all(device.get(key) == result[key] for key in ("driver", "pool", "device")):
            return {"status": device}
    return None


def _failure(claim: Object, failed: Object) -> str:
    reason, message = failed.get("reason", ""), failed.get("message", "")
    return f'device binding failed: claim={name(claim)}, reason={reason}, message="{message}"'
