"""Write the list of a claim (``status.reservedFor``).

The patch has only the entries that change. An entry that stays is not sent, so it keeps fields that
claimctl does not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from claimctl.kube.client import Client
from claimctl.wire.base import to_plain
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.resources import Resource

T = TypeVar("T")


async def change_list(
    client: Client,
    resource: Resource[T],
    claim: ResourceClaim,
    wanted: Iterable[Reference],
    *,
    deallocate: bool = False,
    dry_run: bool = False,
) -> T:
    """Give a claim that still is as read another list, in one status write.

    Args:
        resource: ResourceClaims, with the type that the answer is decoded into.
        claim: the claim with the list that the change was decided on.
        deallocate: also remove the allocation. ``wanted`` must be empty then.

    Raises:
        Conflict: the claim has another version; read it and decide again.
        KubeError: the write failed, or its outcome is unknown (RequestTimeout).
    """
    status = changes(claim.status.reserved_for, wanted)
    patch = {"status": {"allocation": None, **status} if deallocate else status}
    return await client.merge_patch(
        resource, claim.metadata, patch, subresource="status", strategic=True, dry_run=dry_run
    )


def changes(present: Iterable[Reference], wanted: Iterable[Reference]) -> dict[str, Any]:
    """The fields of a strategic merge patch that turn one list into the other.

    It has the entries that differ, directives that delete entries by their UID, and the order.
    """
    before = {entry.uid: to_plain(entry) for entry in present}
    after = {entry.uid: to_plain(entry) for entry in wanted}
    if not after:
        return {"reservedFor": None}
    gone = [{"$patch": "delete", "uid": uid} for uid in before if uid not in after]
    changed = [
        {**dict.fromkeys(before.get(uid, ())), **entry}
        for uid, entry in after.items()
        if before.get(uid) != entry
    ]
    order = [{"uid": uid} for uid in after]
    return {"reservedFor": [*gone, *changed], "$setElementOrder/reservedFor": order}
