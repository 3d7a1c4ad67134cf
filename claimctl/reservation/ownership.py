"""Who wrote a reference: what the API server's managedFields tell.

The server keys entries of ``status.reservedFor`` by UID (``k:{"uid":"..."}``), so managedFields
keep who wrote which one, also after writes of the scheduler and of KCM.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

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
