"""What an informer keeps, so that memory goes with what is kept and not with what was sent."""

from __future__ import annotations

from msgspec import structs

from claimctl.wire.claims import ResourceClaim


def owning(claim: ResourceClaim) -> ResourceClaim:
    """The claim with its undecoded parts copied.

    They are views into the bytes they came in, and one claim would keep a whole page of a list
    alive.
    """
    entries = tuple(
        structs.replace(entry, fields_v1=entry.fields_v1.copy())
        for entry in claim.metadata.managed_fields
    )
    metadata = structs.replace(claim.metadata, managed_fields=entries)
    return structs.replace(claim, metadata=metadata)
