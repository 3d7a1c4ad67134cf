"""Claims whose devices nobody can use: they keep pods waiting, and only claimctl could free them.

Both torture tests look at claims with it, as the server stores them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from claimctl.wire.base import Object
from labs.torture.stored import is_allocated, is_deleting

OURS = frozenset({"claimctl.io", "apps", "batch", "scheduling.k8s.io"})
"""API groups of entries that claimctl removes; pods have none."""
ENDED = frozenset({"Succeeded", "Failed"})


def blocked(
    claims: Iterable[Object], pods: Iterable[Object], reservations: Iterable[Object]
) -> list[str]:
    """Claims that nobody uses, while pods that name them find no node, with their lists.

    The scheduler would free such a claim itself, for an entry of claimctl's that stays. So claimctl
    has to give it up, some time after all of this began to be true. Claims do not count whose
    reservation forbids it, that a foreign entry keeps, or that a driver is still binding.
    """
    pods = list(pods)
    held = [reservation["spec"] for reservation in reservations]
    return [
        f"claim {claim['metadata']['name']} keeps "
        f"{', '.join(sorted(pod['metadata']['name'] for pod in waiting))} waiting: "
        f"{[entry['resource'] for entry in _listed(claim)]}"
        for claim in claims
        if (waiting := _kept_out(claim, pods)) and _is_left_to_claimctl(claim, waiting, held)
    ]


def _kept_out(claim: Object, pods: list[Object]) -> list[Object]:
    """The pods that wait in vain; none if somebody uses the claim, or soon will."""
    users = [pod for pod in pods if claim["metadata"]["name"] in claims_of(pod)]
    users = [pod for pod in users if pod["status"].get("phase") not in ENDED]
    if any(pod["spec"].get("nodeName") or _is_being_bound(pod) for pod in users):
        return []
    return [pod for pod in users if _is_unschedulable(pod)]


def claims_of(pod: Object) -> set[str]:
    """The names of the claims that a pod names, or that were made for it."""
    entries = pod["spec"].get("resourceClaims") or ()
    made = pod["status"].get("resourceClaimStatuses") or ()
    return {entry.get("resourceClaimName") or "" for entry in (*entries, *made)} - {""}


def _is_being_bound(pod: Object) -> bool:
    return bool(pod["status"].get("nominatedNodeName"))


def _is_unschedulable(pod: Object) -> bool:
    return any(
        condition.get("reason") == "Unschedulable"
        for condition in pod["status"].get("conditions") or ()
    )


def _listed(claim: Object) -> list[Object]:
    return list((claim.get("status") or {}).get("reservedFor") or ())


def _is_left_to_claimctl(claim: Object, waiting: list[Object], held: list[Object]) -> bool:
    meta, listed = claim["metadata"], _listed(claim)
    if not is_allocated(claim) or is_deleting(claim):
        return False
    mine = [reservation for reservation in held if reservation["resourceClaimName"] == meta["name"]]
    forbidden = any(reservation.get("reallocateTimeoutSeconds") is None for reservation in mine)
    foreign = any(entry.get("apiGroup", "") not in {"", *OURS} for entry in listed)
    # the scheduler's own entries of pods that it does not bind; claimctl leaves them
    theirs = {entry["uid"] for entry in listed} & {pod["metadata"]["uid"] for pod in waiting}
    return bool(listed) and not (forbidden or foreign or theirs - set(_written(claim)))


def _written(claim: Object) -> Iterator[str]:
    """The UIDs of the entries that claimctl wrote, by managedFields."""
    for entry in claim["metadata"].get("managedFields") or ():
        fields = entry.get("fieldsV1") or {}
        if entry.get("manager") == "claimctl":
            for key in (fields.get("f:status") or {}).get("f:reservedFor") or {}:
                yield key.removeprefix('k:{"uid":"').removesuffix('"}')
