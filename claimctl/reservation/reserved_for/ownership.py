"""Who wrote a reference: what the API server's managedFields tell.

The server keys entries of ``status.reservedFor`` by UID (``k:{"uid":"..."}``), so managedFields
keep who wrote which one, also after writes of the scheduler and of KCM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from claimctl.reservation.reserved_for.references import WORKLOAD_RESOURCES, is_workload
from claimctl.wire.base import decode
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import ManagedFieldsEntry
from claimctl.wire.reservations import ClaimReservation

MANAGER = "claimctl"


def uids_written_by(claim: ResourceClaim, manager: str = MANAGER) -> frozenset[str]:
    """UIDs of the references in the claim's list that the manager added."""
    return frozenset(
        uid
        for entry in claim.metadata.managed_fields
        if entry.manager == manager and entry.subresource == "status"
        for uid in _uids(entry)
    )


def uids_on_record(
    claim: ResourceClaim, reservations: Iterable[ClaimReservation]
) -> frozenset[str]:
    """UIDs of the references that, as reservations' statuses say, were made on this very claim."""
    return frozenset(
        one.status.reserved_for.uid
        for one in reservations
        if one.status.reserved_for is not None
        and one.metadata.namespace == claim.metadata.namespace
        and one.status.claim_uid == claim.metadata.uid
    )


def unanswered(claim: ResourceClaim, reservations: Iterable[ClaimReservation]) -> frozenset[str]:
    """UIDs of claimctl's holds in the list that none of these reservations is the reason for.

    What they were written for may be gone; or it is younger than what these were read from, and
    another controller has seen it.
    """
    refs = [one.spec.workload_ref for one in reservations]
    made = {(r.api_group, WORKLOAD_RESOURCES.get((r.api_group, r.kind)), r.name) for r in refs}
    own = uids_written_by(claim)
    return frozenset(
        each.uid
        for each in claim.status.reserved_for
        if is_workload(each)
        and each.uid in own
        and (each.api_group, each.resource, each.name) not in made
    )


def _uids(entry: ManagedFieldsEntry) -> Iterator[str]:
    """What cannot be read of managedFields names nobody."""
    with suppress(msgspec.DecodeError):
        for key in decode(entry.fields_v1, _Fields).status.reserved_for:
            if key.startswith("k:"):
                yield decode(key[2:].encode(), _Key).uid


class _Key(msgspec.Struct):
    uid: str = ""


class _StatusFields(msgspec.Struct):
    reserved_for: dict[str, msgspec.Raw] = msgspec.field(name="f:reservedFor", default={})


class _Fields(msgspec.Struct):
    status: _StatusFields = msgspec.field(name="f:status", default_factory=_StatusFields)
