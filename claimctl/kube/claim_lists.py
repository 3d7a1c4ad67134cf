"""Write the list of a claim (``status.reservedFor``), or take the finalizer off.

Each write is a JSON patch of the fields of entries that change. The others are not sent, so an
entry keeps fields that claimctl does not know. And the rest of the claim stays as it is: a
strategic merge patch would sort the keys of opaque parameters, which the API server then refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from claimctl.kube.client import Client
from claimctl.wire.base import merge_diff, to_plain
from claimctl.wire.claims import CLAIM_FINALIZER, Reference, ResourceClaim
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import Resource

T = TypeVar("T")
Operations = list[dict[str, Any]]
_LIST = "/status/reservedFor"


async def change_list(
    client: Client,
    resource: Resource[T],
    claim: ResourceClaim,
    wanted: Iterable[Reference],
    *,
    deallocate: bool = False,
    any_version: bool = False,
) -> T:
    """Give a claim that still is as read another list, in one status write.

    Args:
        resource: ResourceClaims, with the type that the answer is decoded into.
        claim: the claim with the list that the change was decided on.
        deallocate: also remove the allocation. ``wanted`` must be empty then.
        any_version: only the list must be as read, and the claim must not be deleted. (A claim
            whose list has entries is allocated.)

    Raises:
        Conflict: the claim has another version; read it and decide again.
        KubeError: the write failed, or its outcome is unknown (RequestTimeout).
    """
    before = {entry.uid: to_plain(entry) for entry in claim.status.reserved_for}
    after = {entry.uid: to_plain(entry) for entry in wanted}
    patch = changes(_LIST, before, after)
    if deallocate:
        patch.append({"op": "remove", "path": "/status/allocation"})
    if any_version:
        tested = {"/metadata/deletionTimestamp": None, _LIST: [*before.values()]}
        patch[:0] = [{"op": "test", "path": path, "value": tested[path]} for path in tested]
    return await client.json_patch(
        resource, claim.metadata, patch, subresource="status", any_version=any_version
    )


def without_finalizer(meta: ObjectMeta) -> Operations:
    """The operations that take Kubernetes' finalizer off a claim; others stay."""
    before = {name: name for name in meta.finalizers}
    after = {name: name for name in before if name != CLAIM_FINALIZER}
    return changes("/metadata/finalizers", before, after)


def changes(path: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Operations:
    """The operations of a JSON patch that turn one list into another, in its order.

    Args:
        path: of the list, which is absent if it has no entries.
        before, after: the entries by their keys, in order.
    """
    if not after:
        return [{"op": "remove", "path": path}] if before else []
    if not before:
        return [{"op": "add", "path": path, "value": [*after.values()]}]
    now = [key for key in before if key in after]
    absent = [place for place, key in enumerate(before) if key not in after]
    patch: Operations = [{"op": "remove", "path": f"{path}/{place}"} for place in reversed(absent)]
    for place, (key, entry) in enumerate(after.items()):
        here = f"{path}/{place}"
        if key not in before:
            now.insert(place, key)
            patch.append({"op": "add", "path": here, "value": entry})
        elif now[place] != key:
            patch.append({"op": "move", "from": f"{path}/{now.index(key)}", "path": here})
            now.insert(place, now.pop(now.index(key)))
        if before.get(key, entry) != entry:
            for name, value in merge_diff(before[key], entry).items():
                gone = {"op": "remove", "path": f"{here}/{name}"}
                patch.append(gone if value is None else {**gone, "op": "add", "value": value})
    return patch
