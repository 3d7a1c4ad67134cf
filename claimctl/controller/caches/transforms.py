"""What the caches keep of an object, to save memory."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.reservation.workloads import named_claims
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.workloads import ReplicaSet


def owning(claim: ResourceClaim) -> ResourceClaim:
    """The claim with copies of its undecoded parts.

    The undecoded parts are views into the received bytes. Without copies, one claim would keep a
    whole page of a list in memory.
    """
    entries = tuple(
        replace(entry, fields_v1=entry.fields_v1.copy()) for entry in claim.metadata.managed_fields
    )
    metadata = replace(claim.metadata, managed_fields=entries)
    return replace(claim, metadata=metadata)


def naming_a_claim(replica_set: ReplicaSet) -> ReplicaSet | None:
    """The ReplicaSet, or None if its pods name no claim."""
    return replica_set if named_claims(replica_set.spec.template) else None
