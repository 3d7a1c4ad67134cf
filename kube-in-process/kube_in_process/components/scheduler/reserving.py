"""Which entry the scheduler adds to ``status.reservedFor`` for a pod."""

from __future__ import annotations

from dataclasses import dataclass

from kube_in_process.components.objects import name, uid
from kube_in_process.components.pods import (
    allocation_of,
    group_reference,
    is_group,
    is_pod,
    pod_reference,
    reserved_for,
)
from kube_in_process.objects import Object
from kube_in_process.options import Features


@dataclass(frozen=True, slots=True)
class Holder:
    """The entry to add. ``any_pod`` marks an allocation that lists no pods (KEP-5194)."""

    reference: Object
    any_pod: bool = False


def holder(claim: Object, pod: Object, group: Object | None, features: Features) -> Holder | None:
    """The entry to add before ``pod`` may be bound; None if nothing must be written.

    ``group`` is the PodGroup that shares the claim (KEP-5729; matched by name). With KEP-5194,
    ``spec.reservedFor`` is added to an empty list, and no pod is listed beside a workload
    reference.
    """
    listed = reserved_for(claim)
    if group is not None:
        is_listed = any(
            is_group(reference) and reference["name"] == name(group) for reference in listed
        )
        return None if is_listed else Holder(group_reference(group))
    if any(reference["uid"] == uid(pod) for reference in listed):
        return None
    if not features.scheduler_reserved_for:
        return Holder(pod_reference(pod))
    if any(not is_pod(reference) for reference in listed):
        return None
    workload = (claim.get("spec") or {}).get("reservedFor")
    if workload and not listed and _for_any_pod(claim):
        return Holder(workload, any_pod=True)
    return Holder(pod_reference(pod))


def _for_any_pod(claim: Object) -> bool:
    """Whether the allocation may list no pods. An allocation that lists pods cannot change that."""
    allocation = allocation_of(claim)
    return allocation is None or bool(allocation.get("reservedForAnyPod"))


def reserved(claim: Object, holder: Holder, allocation: Object | None = None) -> Object:
    """The claim to write: with the entry at the end of the list, and the new allocation if any."""
    status = {**(claim.get("status") or {})}
    if allocation is not None:
        any_pod = {"reservedForAnyPod": True} if holder.any_pod else {}
        status["allocation"] = {**allocation, **any_pod}
    status["reservedFor"] = [*reserved_for(claim), holder.reference]
    return {**claim, "status": status}
