"""Entries of ``status.reservedFor``: what an entry stands for, and who wrote it.

An entry stands for a pod, a PodGroup, another workload, or as a tombstone for a finished pod.

managedFields tell who wrote it (``uids_written_by``). Every user who may update the claim may also
write its managedFields. So they prove nothing. They show which pending pods claimctl has listed
ahead, and which entry is that of a ClaimReservation without a record (``recorded_references``). A
hold counts as claimctl's own only with a better proof (``assess.own_holds``). A pod that was listed
ahead gets the time in which a scheduler may still bind it (``users.blockers``).
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from contextlib import suppress

import msgspec

from claimctl.wire.base import decode
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import TOMBSTONE_GROUP, TOMBSTONE_RESOURCE

LIMIT = 256
"""The most entries that the API server accepts (ResourceClaimReservedForMaxSize)."""
NEAR_LIMIT = 240
"""A list with this many entries is reported as nearly full."""
FEW_ENTRIES = 8
"""Only lists as short as this matter to drivers that want one pod in them."""

POD_GROUP = ("scheduling.k8s.io", "podgroups")
"""The API group and the resource name of PodGroups."""
MANAGER = "claimctl"
"""The field manager of claimctl's own writes."""


def is_pod(reference: Reference) -> bool:
    return not reference.api_group and reference.resource == "pods"


def is_pod_group(reference: Reference) -> bool:
    return (reference.api_group, reference.resource) == POD_GROUP


def is_tombstone(reference: Reference) -> bool:
    return (reference.api_group, reference.resource) == (TOMBSTONE_GROUP, TOMBSTONE_RESOURCE)


def is_workload(reference: Reference) -> bool:
    """Whether the entry stands for a PodGroup or another workload."""
    return not is_pod(reference) and not is_tombstone(reference)


def pods_in(references: Iterable[Reference]) -> frozenset[str]:
    """The UIDs of the pods among the entries."""
    return frozenset(entry.uid for entry in references if is_pod(entry))


def groups_in(references: Iterable[Reference]) -> frozenset[str]:
    """The names of the PodGroups among the entries."""
    return frozenset(entry.name for entry in references if is_pod_group(entry))


def tombstone(pod: Reference | ObjectMeta) -> Reference:
    """The entry that replaces a finished pod: KCM finds the pod's UID and leaves the entry."""
    return Reference(
        api_group=TOMBSTONE_GROUP, resource=TOMBSTONE_RESOURCE, name=pod.name, uid=pod.uid
    )


def describe(reference: Reference) -> str:
    """The reference as text: resource.group/name."""
    group = f".{reference.api_group}" if reference.api_group else ""
    return f"{reference.resource}{group}/{reference.name}"


class _Key(msgspec.Struct):
    uid: str = ""


class _StatusFields(msgspec.Struct):
    reserved_for: dict[str, msgspec.Raw] = msgspec.field(name="f:reservedFor", default={})


class _Fields(msgspec.Struct):
    """What matters of ``fieldsV1``. The key of an entry is its UID: ``k:{"uid":"..."}``."""

    status: _StatusFields = msgspec.field(name="f:status", default_factory=_StatusFields)


def uids_written_by(claim: ResourceClaim, manager: str = MANAGER) -> frozenset[str]:
    """UIDs of the entries that the field manager wrote, as managedFields say. They say so even
    after writes of the scheduler and of kube-controller-manager (KCM) to the same list."""
    uids: set[str] = set()
    for entry in claim.metadata.managed_fields:
        if entry.manager == manager and entry.subresource == "status":
            # an entry that cannot be decoded names nobody
            with suppress(msgspec.DecodeError):
                keys = decode(entry.fields_v1, _Fields).status.reserved_for
                uids.update(decode(k[2:].encode(), _Key).uid for k in keys if k.startswith("k:"))
    return frozenset(uids)


def listed_ahead(claim: ResourceClaim, pending: Container[str]) -> frozenset[str]:
    """UIDs of the pending pods that claimctl listed, by managedFields. claimctl may take such an
    entry out as long as the pod is pending, and none that a scheduler wrote."""
    waiting = {
        entry.uid for entry in claim.status.reserved_for if is_pod(entry) and entry.uid in pending
    }
    return frozenset(waiting & uids_written_by(claim)) if waiting else frozenset()
