"""Decide which replaced references return to a claim's list when the feature is back.

A reference returns only as an addition: nothing is removed, and the pods stay listed, because
kubelets look for them. It returns only while a pod uses the claim. An entry for a workload without
pods would keep the devices allocated, and no component would remove it.

A new reason against it is a ``Hindrance``: ``_hindrance`` finds it (a full list:
``decide_restoration``), and ``_REMEDIES`` says what a user can do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from claimctl.reservation.facts.dialects import DIALECTS
from claimctl.reservation.facts.pods import Consumers, claim_names
from claimctl.reservation.facts.references import LIMIT, is_pod_group
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.pods import Pod
from claimctl.wire.reservations import DowngradedClaim


class Hindrance(StrEnum):
    """Why a reference does not return."""

    BEING_DELETED = "BeingDeleted"
    NO_CONSUMER = "NoConsumer"
    FEATURE_OFF = "FeatureOff"
    NOT_ALLOWED = "NotAllowed"
    WORKLOAD_GONE = "WorkloadGone"
    NOT_VERIFIED = "NotVerified"
    LIST_FULL = "ListFull"


@dataclass(frozen=True, slots=True)
class Unrestored:
    """A reference that does not return, and why."""

    reference: Reference
    hindrance: Hindrance


@dataclass(frozen=True, slots=True)
class Restoration:
    """The references of one record that have to be added, and those that do not return."""

    add: tuple[Reference, ...] = ()
    left: tuple[Unrestored, ...] = ()


def decide_restoration(
    claim: ResourceClaim,
    record: DowngradedClaim,
    pods: Iterable[Pod],
    existing: Mapping[str, bool | None],
    dialect: str,
) -> Restoration | None:
    """Decide about each replaced reference of the record.

    Args:
        claim: the claim at the resourceVersion that will be the precondition of the write.
        pods: the pods that name the claim, from a live LIST.
        existing: by the reference's UID, whether the object exists with this UID; None if it
            could not be read.
        dialect: the dialect of the cluster now.

    Returns:
        None if the claim is not allocated any more. Then there is nothing to hold, and the next
        allocation records its own references.
    """
    if claim.status.allocation is None:
        return None
    known = {entry.uid for entry in claim.status.reserved_for}
    add: list[Reference] = []
    left: list[Unrestored] = []
    name = claim.metadata.name
    used = bool(Consumers.of(pod for pod in pods if name in claim_names(pod)).bound)
    for reference in record.replaced_references:
        if reference.uid in known:
            continue
        hindrance = _hindrance(claim, reference, used, existing.get(reference.uid), dialect)
        if hindrance is None and len(known) + len(add) >= LIMIT:
            hindrance = Hindrance.LIST_FULL
        if hindrance is None:
            add.append(reference)
        else:
            left.append(Unrestored(reference, hindrance))
    return Restoration(tuple(add), tuple(left))


def _hindrance(
    claim: ResourceClaim, reference: Reference, used: bool, exists: bool | None, dialect: str
) -> Hindrance | None:
    if exists is False:
        return Hindrance.WORKLOAD_GONE
    if claim.metadata.deleting:
        return Hindrance.BEING_DELETED
    if not used:
        return Hindrance.NO_CONSUMER
    if is_pod_group(reference):
        if not DIALECTS[dialect].groups:
            return Hindrance.FEATURE_OFF
    elif reference == claim.spec.reserved_for and dialect != "native":
        return Hindrance.FEATURE_OFF
    elif DIALECTS[dialect].refuses(claim, reference) is not None:
        return Hindrance.NOT_ALLOWED
    return Hindrance.NOT_VERIFIED if exists is None else None


_REMEDIES = {
    Hindrance.BEING_DELETED: "the claim is being deleted, so its list accepts no new entry",
    Hindrance.NO_CONSUMER: (
        "no pod uses the claim, so the entry would keep the devices for nothing: run again when a "
        "pod runs"
    ),
    Hindrance.FEATURE_OFF: "the feature is still off: switch it on in every component first",
    Hindrance.NOT_ALLOWED: (
        "beside this entry the scheduler would add no pods, because the claim was not created or "
        "allocated for the workload"
    ),
    Hindrance.WORKLOAD_GONE: "the workload does not exist any more",
    Hindrance.NOT_VERIFIED: "whether the workload still exists cannot be read with these rights",
    Hindrance.LIST_FULL: f"the list is full ({LIMIT} entries): run again when pods have ended",
}


def explained(left: Collection[Unrestored]) -> str:
    """One line for people: each reference that does not return, and why."""
    return "; ".join(
        f"{entry.reference.resource}/{entry.reference.name}: {_REMEDIES[entry.hindrance]}"
        for entry in left
    )
