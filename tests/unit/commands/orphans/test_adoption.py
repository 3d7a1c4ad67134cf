"""The ClaimReservations by which orphans are handed over, and what users can do with their form."""

from __future__ import annotations

import pytest
from msgspec import structs

from claimctl.commands.orphans.adoption import (
    LABEL,
    NameTaken,
    adopt,
    adoptions,
    cause_of,
    is_adoption,
    is_handed_over,
)
from claimctl.commands.orphans.model import Cause, Orphan
from claimctl.wire.claims import Reference, ResourceClaim
from claimctl.wire.reservations import FINALIZER, RELEASE_ANNOTATION, ClaimReservation
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS
from tests.support.builders import NOW, claim, deployment_ref, group_ref
from tests.support.claim_server import NAMESPACE, TRAIN, Server

HOLD = Reference(api_group="apps", resource="deployments", name="train", uid="d-1")
GROUP = group_ref()
NOBODY = Orphan(Cause.ALLOCATED_TO_NOBODY, "")
HELD = Orphan(Cause.ORPHANED_HOLD, "", entries=(HOLD,))


async def orphaned(server: Server) -> ResourceClaim:
    """A claim with the entry of a Deployment."""
    server.claim("slice", TRAIN)
    return await server.client.get(RESOURCECLAIMS, "slice", NAMESPACE)


async def made(server: Server) -> tuple[ClaimReservation, ...]:
    return (await server.client.list(CLAIMRESERVATIONS, NAMESPACE)).items


def itself(reservation: ClaimReservation) -> Reference:
    meta = reservation.metadata
    plural = CLAIMRESERVATIONS.plural
    return Reference(api_group="claimctl.io", resource=plural, name=meta.name, uid=meta.uid)


@pytest.mark.parametrize("orphan", [NOBODY, HELD], ids=["nobody", "held"])
async def test_the_entry_is_recorded_and_the_claimreservation_waits_for_a_controller(
    orphan: Orphan,
) -> None:
    server = Server.started()
    on = await orphaned(server)
    await adopt(server.client, on, orphan, grace=29.5)
    (one,) = await made(server)
    assert one.metadata.deleting
    assert one.metadata.finalizers == (FINALIZER,)
    assert one.metadata.annotation(RELEASE_ANNOTATION) == on.metadata.uid
    assert one.spec.force_deleted_pod_grace_seconds == 30
    assert one.status.claim_uid == on.metadata.uid
    assert one.status.reserved_for == (HOLD if orphan.entries else itself(one))
    assert is_adoption(one)
    assert is_handed_over(one, on)
    assert cause_of(one) is orphan.cause


async def test_another_run_writes_only_what_is_missing() -> None:
    server = Server.started()
    on = await orphaned(server)
    await adopt(server.client, on, HELD)
    before = await made(server)
    await adopt(server.client, on, HELD)
    assert await made(server) == before


async def test_each_entry_has_a_claimreservation_and_a_podgroup_is_told_by_its_name() -> None:
    server = Server.started()
    on = await orphaned(server)
    await adopt(server.client, on, with_entries(HELD, HOLD, GROUP))
    by_group = {one.status.pod_group_name: one for one in await made(server)}
    assert by_group.keys() == {"", GROUP.name}
    assert by_group[""].status.reserved_for == HOLD
    assert by_group[GROUP.name].status.reserved_for == itself(by_group[GROUP.name])


def with_entries(orphan: Orphan, *entries: Reference) -> Orphan:
    return Orphan(orphan.cause, orphan.message, entries=entries)


async def test_the_claimreservation_of_a_user_is_not_given_a_status() -> None:
    """Whoever may make ClaimReservations may take the name, and would hold the claim by it."""
    server = Server.started()
    on = await orphaned(server)
    (name,) = adoptions(on, HELD, None)
    server.reservation(name)
    with pytest.raises(NameTaken, match=name):
        await adopt(server.client, on, HELD)
    (one,) = await made(server)
    assert (one.status.reserved_for, one.metadata.deleting) == (None, False)


def test_what_has_the_form_of_an_adoption_reserves_nothing_for_a_user() -> None:
    on = claim(deployment_ref())
    ((one, _),) = adoptions(on, NOBODY, None).values()
    assert is_adoption(one)
    ref = structs.replace(one.spec.workload_ref, name="train")
    forged = structs.replace(one, spec=structs.replace(one.spec, workload_ref=ref))
    assert not is_adoption(forged)
    unknown = structs.replace(one.metadata, labels={LABEL: "Other"})
    assert not is_adoption(structs.replace(one, metadata=unknown))


def test_names_tell_claims_and_entries_apart() -> None:
    on = claim(deployment_ref())
    again = structs.replace(on, metadata=structs.replace(on.metadata, uid="another"))
    asked = [
        *adoptions(on, NOBODY, None),
        *adoptions(again, NOBODY, None),
        *adoptions(on, HELD, None),
    ]
    assert len(set(asked)) == 3


@pytest.mark.parametrize(
    ("deleting", "recorded", "allocated", "over"),
    [
        (False, True, True, False),
        (True, False, True, False),
        (True, True, True, True),
        (True, False, False, True),
    ],
)
def test_when_only_a_controller_has_something_to_do(
    deleting: bool, recorded: bool, allocated: bool, over: bool
) -> None:
    on = claim(allocated=allocated)
    ((one, _),) = adoptions(on, NOBODY, None).values()
    meta = one.metadata
    if deleting:
        meta = structs.replace(meta, deletion_timestamp=on.metadata.creation_timestamp or NOW)
    status = one.status
    if recorded:
        status = structs.replace(status, claim_uid=on.metadata.uid, reserved_for=HOLD)
    assert is_handed_over(structs.replace(one, metadata=meta, status=status), on) is over
