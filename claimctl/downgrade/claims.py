"""Read the claims of a plan's records, and write their lists."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from claimctl.downgrade.records import over, unread
from claimctl.kube.claim_lists import change_list
from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound, UnreadableObject
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import DowngradedClaim
from claimctl.wire.resources import RESOURCECLAIMS, Resource


async def read_claim(
    client: Client,
    record: DowngradedClaim,
    resource: Resource[ResourceClaim] = RESOURCECLAIMS,
) -> ResourceClaim | DowngradedClaim:
    """The record's claim as it is now; or else the record of a claim that is gone or unreadable."""
    try:
        claim = await client.get(resource, record.name, record.namespace)
    except NotFound:
        return over(record)
    except UnreadableObject as error:
        return unread(record, error.unreadable)
    return claim if claim.metadata.uid == record.uid else over(record)


async def write_list(client: Client, claim: ResourceClaim, entries: Iterable[Reference]) -> None:
    """Write the list if the claim is as read.

    If the answer cannot be read, the write has succeeded nevertheless.

    Raises:
        Conflict: the claim has changed.
        KubeError: the write failed, or its outcome is unknown (RequestTimeout).
    """
    with suppress(UnreadableObject):
        await change_list(client, RESOURCECLAIMS, claim, entries)
