"""Each write is one request, under the version that it was decided on."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec.structs import replace as replace_fields

from claimctl.controller.writer import TemplateMissing, Writer
from claimctl.kube.errors import Conflict
from claimctl.reservation.facts.decision import (
    ClearReleaseRequest,
    CreateClaim,
    DeleteClaim,
    RemoveClaimFinalizer,
    SetFinalizer,
    Write,
    WriteList,
    WriteStatus,
)
from claimctl.reservation.facts.references import uids_written_by
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.wire.base import to_plain
from claimctl.wire.claims import Reference
from claimctl.wire.reservations import FINALIZER, ClaimReservation, ClaimReservationStatus
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS
from tests.support.builders import (
    CLAIM,
    NAMESPACE,
    NOW,
    claim,
    deployment_ref,
    pod_ref,
    reservation,
    tomb,
)
from tests.support.counting_server import CountingServer, server
from tests.support.hand_clock import HandClock
from tests.unit.controller.cluster import furnish

CLAIM_PATH = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims/{CLAIM}"
RESERVED_PATH = f"/apis/claimctl.io/v1alpha1/namespaces/{NAMESPACE}/claimreservations/train-slice"
WRITES = {
    "the list": (WriteList("", (pod_ref("a"),)), f"PATCH {CLAIM_PATH}/status"),
    "a deallocation": (WriteList("", (), deallocate=True), f"PATCH {CLAIM_PATH}/status"),
    "the claim's finalizer": (RemoveClaimFinalizer(""), f"PATCH {CLAIM_PATH}"),
    "a status": (
        WriteStatus(reservation(), ClaimReservationStatus(dialect="hold")),
        f"PATCH {RESERVED_PATH}/status",
    ),
    "a finalizer": (SetFinalizer(reservation(), present=False), f"PATCH {RESERVED_PATH}"),
    "an annotation": (ClearReleaseRequest(reservation()), f"PATCH {RESERVED_PATH}"),
    "a deletion": (DeleteClaim("", ""), f"DELETE {CLAIM_PATH}"),
}


async def bound(made: CountingServer, write: Any) -> tuple[Snapshot, Write]:
    """A snapshot of the objects on the server, and the write under their present versions."""
    on = await made.client.get(RESOURCECLAIMS, CLAIM, NAMESPACE)
    held: ClaimReservation = await made.client.get(CLAIMRESERVATIONS, "train-slice", NAMESPACE)
    snapshot = Snapshot(NOW, NAMESPACE, CLAIM, on)
    match write:
        case WriteList() | RemoveClaimFinalizer():
            return snapshot, replace(write, resource_version=on.metadata.resource_version)
        case DeleteClaim():
            return snapshot, DeleteClaim(on.metadata.uid, on.metadata.resource_version)
    return snapshot, replace(write, reservation=held)


def reserved_server() -> CountingServer:
    made = server()
    furnish(made)
    protected = {"metadata": {"finalizers": ["resource.kubernetes.io/delete-protection"]}}
    made.admin.patch("resourceclaims", NAMESPACE, CLAIM, protected)
    asked = {"metadata": {"annotations": {"claimctl.io/release": "uid"}}}
    made.admin.patch("claimreservations", NAMESPACE, "train-slice", asked)
    return made


@pytest.mark.parametrize(("write", "request_line"), WRITES.values(), ids=WRITES)
async def test_a_write_is_one_request(write: Write, request_line: str) -> None:
    made = reserved_server()
    snapshot, present = await bound(made, write)
    made.requests.clear()
    written = await Writer(made.client, HandClock()).apply(snapshot, present)
    assert made.requests == [request_line]
    assert (written is None) == isinstance(write, DeleteClaim)


@pytest.mark.parametrize("write", [each for each, _ in WRITES.values()], ids=WRITES)
async def test_an_object_that_has_changed_since_the_decision_is_not_written(write: Write) -> None:
    made = reserved_server()
    snapshot, present = await bound(made, write)
    changed = {"metadata": {"labels": {"changed": "meanwhile"}}}
    for plural, name in (("resourceclaims", CLAIM), ("claimreservations", "train-slice")):
        made.admin.patch(plural, NAMESPACE, name, changed)
    before = made.handler.api.store.revision
    with pytest.raises(Conflict):
        await Writer(made.client, HandClock()).apply(snapshot, present)
    assert made.handler.api.store.revision == before


async def listed(made: CountingServer, *references: Reference) -> Snapshot:
    """A snapshot of the claim with this list."""
    status = {"reservedFor": [to_plain(each) for each in references]}
    made.admin.patch("resourceclaims", NAMESPACE, CLAIM, {"status": status}, "status")
    on = await made.client.get(RESOURCECLAIMS, CLAIM, NAMESPACE)
    return Snapshot(NOW, NAMESPACE, CLAIM, on)


TOMBSTONES = WriteList(
    "",
    (deployment_ref(), tomb("a")),
    present=(deployment_ref(), pod_ref("a")),
)


async def test_tombstones_are_written_into_the_list_that_they_were_decided_on() -> None:
    made = reserved_server()
    snapshot = await listed(made, deployment_ref(), pod_ref("a"))
    for later in ((deployment_ref(),), (deployment_ref(), pod_ref("a"))):
        await listed(made, *later)
    await Writer(made.client, HandClock()).apply(snapshot, TOMBSTONES)
    on = await made.client.get(RESOURCECLAIMS, CLAIM, NAMESPACE)
    assert on.status.reserved_for == TOMBSTONES.reserved_for
    assert uids_written_by(on, "claimctl") == {tomb("a").uid}


@pytest.mark.parametrize(
    "later",
    [
        pytest.param((deployment_ref(),), id="an entry less"),
        pytest.param((deployment_ref(), pod_ref("a"), pod_ref("b")), id="an entry more"),
        pytest.param((pod_ref("a"), deployment_ref()), id="another order"),
    ],
)
async def test_tombstones_are_not_written_into_another_list(later: tuple[Reference, ...]) -> None:
    made = reserved_server()
    snapshot = await listed(made, deployment_ref(), pod_ref("a"))
    await listed(made, *later)
    with pytest.raises(Conflict):
        await Writer(made.client, HandClock()).apply(snapshot, TOMBSTONES)
    on = await made.client.get(RESOURCECLAIMS, CLAIM, NAMESPACE)
    assert on.status.reserved_for == later


@pytest.mark.parametrize("change", ["deleting", "created anew"])
async def test_tombstones_are_not_written_into_another_claim(change: str) -> None:
    made = reserved_server()
    snapshot = await listed(made, deployment_ref(), pod_ref("a"))
    if change == "deleting":
        made.admin.delete("resourceclaims", NAMESPACE, CLAIM)
    else:
        assert snapshot.claim is not None
        meta = replace_fields(snapshot.claim.metadata, uid="another")
        other = replace_fields(snapshot.claim, metadata=meta)
        snapshot = replace(snapshot, claim=other)
    with pytest.raises(Conflict):
        await Writer(made.client, HandClock()).apply(snapshot, TOMBSTONES)
    on = await made.client.get(RESOURCECLAIMS, CLAIM, NAMESPACE)
    assert on.status.reserved_for == TOMBSTONES.present


async def test_the_written_objects_are_as_decided() -> None:
    made = reserved_server()
    for write, _ in WRITES.values():
        if not isinstance(write, DeleteClaim):
            await Writer(made.client, HandClock()).apply(*await bound(made, write))
    on = made.admin.get("resourceclaims", NAMESPACE, CLAIM)
    assert "allocation" not in on.get("status", {})
    assert not on["metadata"].get("finalizers")
    held = made.admin.get("claimreservations", NAMESPACE, "train-slice")
    assert held["status"]["dialect"] == "hold"
    assert FINALIZER not in held["metadata"].get("finalizers", [])
    assert "claimctl.io/release" not in held["metadata"].get("annotations", {})


async def test_claims_that_come_together_share_a_read_of_their_template() -> None:
    made, clock = server(), HandClock()
    furnish(made)
    template = {"metadata": {"name": "big", "namespace": NAMESPACE}, "spec": {"spec": {}}}
    made.admin.create("resourceclaimtemplates", template)
    writer, snapshot = Writer(made.client, clock), Snapshot(NOW, NAMESPACE, CLAIM, None)
    reads = []
    for name, time in (("one", 0.0), ("two", 0.9), ("three", 1.0)):
        clock.time = time
        spec = replace_fields(
            reservation().spec, resource_claim_name=name, resource_claim_template_name="big"
        )
        await writer.apply(snapshot, CreateClaim(replace_fields(reservation(), spec=spec), None))
        reads.append(sum("resourceclaimtemplates/big" in each for each in made.requests))
    assert reads == [1, 1, 2]


async def test_a_claim_is_not_created_without_its_template() -> None:
    made = server()
    furnish(made)
    wanted = replace_fields(
        reservation(), spec=replace_fields(reservation().spec, resource_claim_template_name="none")
    )
    snapshot = Snapshot(NOW, NAMESPACE, CLAIM, claim())
    with pytest.raises(TemplateMissing, match="ResourceClaimTemplate none does not exist"):
        await Writer(made.client, HandClock()).apply(snapshot, CreateClaim(wanted, None))
