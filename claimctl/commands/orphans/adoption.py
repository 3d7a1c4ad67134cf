"""Adopt a claim that no ClaimReservation names, so that a controller frees it by its own rules.

For each entry that nobody answers for, the command makes a ClaimReservation that it withdraws at
once. What a controller does with a withdrawn ClaimReservation is the whole release, with all its
waits (see ``reservation.decide``). ``adopt`` makes three writes:

1. It creates the ClaimReservation with claimctl's finalizer and a request to release this claim. So
   from the beginning nothing is held for it, and it stays until a controller has done its work.
2. It records the entry in the status. Users cannot write the status of a ClaimReservation, so
   nobody but an administrator can have an entry of others taken out.
3. It deletes the ClaimReservation.

The name follows from the claim and the entry. A run that is killed between two of the writes is
continued by the next one, and after the third a controller needs no command any more.

The ClaimReservation names a Deployment of its own name, which nobody has made. So it never holds
the claim, whatever becomes of the request. Without an entry, it records itself: the controller adds
that to the list where it needs a hold, as beside pending pods that claimctl listed ahead.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from math import ceil

from claimctl.commands.orphans.model import Cause, Orphan
from claimctl.kube.client import Client
from claimctl.kube.errors import AlreadyExists, NotFound
from claimctl.live_objects import change_object
from claimctl.reservation.annotation import hashed_name
from claimctl.reservation.facts.references import is_pod_group
from claimctl.wire.access_reviews import Right
from claimctl.wire.base import Object, to_plain
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.reservations import (
    FINALIZER,
    RELEASE_ANNOTATION,
    ClaimReservation,
    ClaimReservationSpec,
    WorkloadRef,
)
from claimctl.wire.resources import CLAIMRESERVATIONS

LABEL = "claimctl.io/orphan"
"""On a ClaimReservation that adopts an orphan: the cause."""
RIGHTS = (
    Right("create", CLAIMRESERVATIONS.group, CLAIMRESERVATIONS.plural),
    Right("get", CLAIMRESERVATIONS.group, CLAIMRESERVATIONS.plural),
    Right("patch", CLAIMRESERVATIONS.group, CLAIMRESERVATIONS.plural, "status"),
    Right("delete", CLAIMRESERVATIONS.group, CLAIMRESERVATIONS.plural),
)
"""What the three writes need."""


class NameTaken(Exception):
    """A ClaimReservation of others has the name of one that would adopt a claim."""


def is_adoption(reservation: ClaimReservation) -> bool:
    """Whether the ClaimReservation has the form of one that adopts an orphan.

    A user may make one of this form; it holds nothing.
    """
    meta = reservation.metadata
    cause = (meta.labels or {}).get(LABEL)
    return cause in set(Cause) and reservation.spec.workload_ref == _absent_workload(meta.name)


def cause_of(adoption: ClaimReservation) -> Cause:
    return Cause((adoption.metadata.labels or {})[LABEL])


def is_handed_over(adoption: ClaimReservation, claim: ResourceClaim) -> bool:
    """Whether the three writes were made, so that only a controller has something to do."""
    status, allocated = adoption.status, claim.status.allocation is not None
    recorded = status.reserved_for is not None and status.claim_uid == claim.metadata.uid
    return adoption.metadata.deleting and (recorded or not allocated)


def adoptions(
    claim: ResourceClaim, orphan: Orphan, grace: float | None
) -> dict[str, tuple[ClaimReservation, Reference | None]]:
    """By name: the ClaimReservations that adopt the orphan, each with its entry of the list."""
    meta, adopted = claim.metadata, {}
    for entry in orphan.entries or (None,):
        name = hashed_name(f"orphan-{meta.name}", meta.uid, entry.uid if entry is not None else "")
        reservation = ClaimReservation(
            metadata=ObjectMeta(
                name=name,
                namespace=meta.namespace,
                labels={LABEL: orphan.cause},
                annotations={RELEASE_ANNOTATION: meta.uid},
                finalizers=(FINALIZER,),
            ),
            spec=ClaimReservationSpec(
                resource_claim_name=meta.name,
                workload_ref=_absent_workload(name),
                force_deleted_pod_grace_seconds=None if grace is None else ceil(grace),
            ),
        )
        adopted[name] = (reservation, entry)
    return adopted


def _absent_workload(name: str) -> WorkloadRef:
    """A Deployment that nobody has made."""
    return WorkloadRef(api_group="apps", kind="Deployment", name=name)


async def adopt(
    client: Client, claim: ResourceClaim, orphan: Orphan, grace: float | None = None
) -> None:
    """Adopt an orphan without blockers, or finish what an earlier run has begun.

    Args:
        grace: how long a vanished pod may still be running, in seconds; None leaves it to the
            default of ClaimReservations.

    Raises:
        NameTaken: a user has made a ClaimReservation of that name.
        KubeError: a write failed, or its outcome is unknown.
    """
    adopted = []
    for reservation, entry in adoptions(claim, orphan, grace).values():
        adoption = await _create(client, reservation)
        await _record(client, claim, adoption, entry)
        adopted.append(adoption)
    await withdraw(client, adopted)


async def _create(client: Client, reservation: ClaimReservation) -> ClaimReservation:
    """Create the ClaimReservation, unless an earlier run has; NameTaken if it is of others."""
    meta = reservation.metadata
    try:
        return await client.create(CLAIMRESERVATIONS, reservation, meta.namespace)
    except AlreadyExists:
        present = await client.get(CLAIMRESERVATIONS, meta.name, meta.namespace)
    claim = reservation.spec.resource_claim_name
    if not is_adoption(present) or present.spec.resource_claim_name != claim:
        raise NameTaken(f"ClaimReservation {meta.name} has the name that is needed: delete it")
    return present


async def _record(
    client: Client, claim: ResourceClaim, adoption: ClaimReservation, entry: Reference | None
) -> None:
    """Record the entry in the status, as a controller does that has listed it.

    For a PodGroup, or if no entry is left, the ClaimReservation records itself; a group is recorded
    by its name, beside that.
    """
    meta, group = adoption.metadata, ""
    if entry is None or is_pod_group(entry):
        group = entry.name if entry is not None else ""
        entry = Reference(
            api_group=CLAIMRESERVATIONS.group,
            resource=CLAIMRESERVATIONS.plural,
            name=meta.name,
            uid=meta.uid,
        )
    status = {"claimUID": claim.metadata.uid, "reservedFor": to_plain(entry)}
    if group:
        status["podGroupName"] = group

    def change(present: ClaimReservation) -> Object:
        """The patch; none if this is recorded, or if another object has the name by now."""
        now = present.status
        recorded = (now.claim_uid, now.reserved_for, now.pod_group_name)
        if present.metadata.uid != meta.uid or recorded == (claim.metadata.uid, entry, group):
            return {}
        return {"status": status}

    await change_object(
        client, CLAIMRESERVATIONS, meta.name, change, meta.namespace, subresource="status"
    )


async def withdraw(client: Client, adopted: Iterable[ClaimReservation]) -> None:
    """Delete the ClaimReservations; the controller ends them."""
    for reservation in adopted:
        meta = reservation.metadata
        if not meta.deleting:
            with suppress(NotFound):
                await client.delete(CLAIMRESERVATIONS, meta.name, meta.namespace, uid=meta.uid)


async def give_up(client: Client, claim: ResourceClaim, orphan: Orphan) -> None:
    """Withdraw what ``adopt`` has created before it failed."""
    for name in adoptions(claim, orphan, None):
        present = await client.find(CLAIMRESERVATIONS, name, claim.metadata.namespace)
        if present is not None and is_adoption(present):
            await withdraw(client, (present,))
