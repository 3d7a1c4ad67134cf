"""Copy the parts of objects that point into received data, to save memory in caches."""

from __future__ import annotations

from msgspec import structs

from claimctl.wire.claims import ResourceClaim


def owning(claim: ResourceClaim) -> ResourceClaim:
    """The claim with copies of its undecoded parts.

    The undecoded parts are views into the received bytes. Without copies, one claim would keep a
    whole page of a list in memory.
    """
    entries = tuple(
        structs.replace(entry, fields_v1=entry.fields_v1.copy())
        for entry in claim.metadata.managed_fields
    )
    metadata = structs.replace(claim.metadata, managed_fields=entries)
    return structs.replace(claim, metadata=metadata)
