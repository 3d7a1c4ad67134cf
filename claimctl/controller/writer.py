"""Carry out the one write of a decision, under the version that it was decided on.

The functions at the end make the bodies of requests from structs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from claimctl.kube.claim_lists import change_list, without_finalizer
from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound, UnreadableObject
from claimctl.reservation.facts.decision import (
    ChangeReservation,
    ClearReleaseRequest,
    CreateClaim,
    CreateReservation,
    DeleteClaim,
    DeleteReservation,
    RemoveClaimFinalizer,
    ReservationWrite,
    SetFinalizer,
    Write,
    WriteList,
    WriteStatus,
)
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.wire.base import decode_plain, merge_diff, to_plain
from claimctl.wire.claims import Reference, ResourceClaimTemplate
from claimctl.wire.fitted import status_body
from claimctl.wire.meta import ObjectHeader, ObjectMeta
from claimctl.wire.reservations import (
    FINALIZER,
    MANAGED_LABEL,
    ClaimReservation,
    ClaimReservationStatus,
)
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
    read_as,
)
from claimctl.wire.seams import Clock
from claimctl.wire.unreadable import Unreadable

_CLAIMS = read_as(RESOURCECLAIMS, ObjectHeader)
_RESERVATIONS = read_as(CLAIMRESERVATIONS, ObjectHeader)
"""For writes: the answer is the whole object, of which only the metadata is decoded."""


class TemplateMissing(Exception):
    """The ResourceClaimTemplate of a claim that should be created does not exist."""


TEMPLATE_SECONDS = 1.0
"""For how long a template that was read serves further claims, in seconds. The claims of many
ordinals come together. kube-controller-manager reads templates from a cache that is as late."""


class Writer:
    """Sends one request for each write. It remembers no write: the caller notes it."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self._templates: dict[tuple[str, str], tuple[float, ResourceClaimTemplate]] = {}
        """Templates that were read lately, with the time of the read."""

    async def apply(self, snapshot: Snapshot, write: Write) -> ObjectMeta | None:
        """Carry out a write; return the metadata of the written object, None if it was deleted.

        Raises:
            Conflict: the object has changed since the snapshot was made.
            TemplateMissing: the template of the claim does not exist.
            KubeError: the request failed in another way.
        """
        if isinstance(write, ReservationWrite):
            return await self._apply_to_reservation(write)
        claim = snapshot.claim
        match write:
            case WriteList():
                assert claim is not None
                if any_version := bool(write.present):
                    assert claim.status.reserved_for == write.present
                else:
                    assert claim.metadata.resource_version == write.resource_version
                options = {"deallocate": write.deallocate, "any_version": any_version}
                wanted = write.reserved_for
                return (await change_list(self._client, _CLAIMS, claim, wanted, **options)).metadata
            case RemoveClaimFinalizer():
                # with the version, so that a claim that was allocated again keeps its finalizer
                assert claim is not None
                assert claim.metadata.resource_version == write.resource_version
                patch = without_finalizer(claim.metadata)
                return (await self._client.json_patch(_CLAIMS, claim.metadata, patch)).metadata
            case CreateClaim():
                return await self._create(write)
            case DeleteClaim():
                assert claim is not None
                assert claim.metadata.resource_version == write.resource_version
                await self._client.delete_as_read(RESOURCECLAIMS, claim.metadata)
                return None

    async def _apply_to_reservation(self, write: ReservationWrite) -> ObjectMeta | None:
        match write:
            case WriteStatus():
                body = status_patch(write.reservation.status, write.status)
                return await self._patch_reservation(write.reservation, body, "status")
            case SetFinalizer():
                meta = write.reservation.metadata
                body = finalizers_patch(meta, present=write.present)
                return await self._patch_reservation(write.reservation, body)
            case ClearReleaseRequest():
                body = {"metadata": {"annotations": {write.annotation: None}}}
                return await self._patch_reservation(write.reservation, body)
            case CreateReservation():
                body, where = reservation_body(write.reservation), write.reservation.metadata
                # an older CRD drops spec.sticky, and what is left would be deleted again
                made = self._client.create(_RESERVATIONS, body, where.namespace, strict=True)
                return (await made).metadata
            case ChangeReservation():
                body = settings_patch(write.reservation, write.wanted)
                return await self._patch_reservation(write.reservation, body)
            case DeleteReservation():
                await self._client.delete_as_read(CLAIMRESERVATIONS, write.reservation.metadata)
                return None

    async def _create(self, write: CreateClaim) -> ObjectMeta:
        reservation = write.reservation
        namespace = reservation.metadata.namespace
        name = reservation.spec.resource_claim_template_name or ""
        try:
            template = await self._template(namespace, name)
        except NotFound as error:
            raise TemplateMissing(f"ResourceClaimTemplate {name} does not exist") from error
        try:
            body = claim_body(reservation, template, write.reserved_for)
        except msgspec.DecodeError as error:
            path = RESOURCECLAIMTEMPLATES.path(namespace, name)
            unread = Unreadable(RESOURCECLAIMTEMPLATES, str(error), namespace, name)
            raise UnreadableObject("GET", path, unread) from error
        return (await self._client.create(RESOURCECLAIMS, body, namespace)).metadata

    async def _template(self, namespace: str, name: str) -> ResourceClaimTemplate:
        now = self._clock.monotonic()
        self._templates = {
            key: read for key, read in self._templates.items() if now - read[0] < TEMPLATE_SECONDS
        }
        if (known := self._templates.get((namespace, name))) is not None:
            return known[1]
        template = await self._client.get(RESOURCECLAIMTEMPLATES, name, namespace)
        self._templates[namespace, name] = (now, template)
        return template

    async def _patch_reservation(
        self, reservation: ClaimReservation, body: Mapping[str, Any], subresource: str = ""
    ) -> ObjectMeta:
        meta = reservation.metadata
        written = await self._client.merge_patch(_RESERVATIONS, meta, body, subresource=subresource)
        return written.metadata


def status_patch(old: ClaimReservationStatus, new: ClaimReservationStatus) -> dict[str, Any]:
    return {"status": merge_diff(status_body(old), status_body(new))}


def reservation_body(reservation: ClaimReservation) -> dict[str, Any]:
    """A ClaimReservation to create."""
    return {"metadata": to_plain(reservation.metadata), "spec": to_plain(reservation.spec)}


def settings_patch(old: ClaimReservation, new: ClaimReservation) -> dict[str, Any]:
    """The change of a sticky claim's reservation: settings, and whether its workload owns it."""
    patch: dict[str, Any] = {"spec": merge_diff(to_plain(old.spec), to_plain(new.spec))}
    if (owners := new.metadata.owner_references) != old.metadata.owner_references:
        patch["metadata"] = {"ownerReferences": [to_plain(owner) for owner in owners]}
    return patch


def finalizers_patch(meta: ObjectMeta, *, present: bool) -> dict[str, Any]:
    others = [known for known in meta.finalizers if known != FINALIZER]
    return {"metadata": {"finalizers": [*others, FINALIZER] if present else others}}


def claim_body(
    reservation: ClaimReservation, template: ResourceClaimTemplate, reserved_for: Reference | None
) -> dict[str, Any]:
    """The claim to create from a reservation's template.

    The reservation owns the claim, without blocking a foreground deletion.

    Raises:
        msgspec.DecodeError: the template's spec is not an object, or nested too deeply.
    """
    spec = decode_plain(template.spec.spec)
    if reserved_for is not None:
        spec["reservedFor"] = to_plain(reserved_for)
    meta = template.spec.metadata
    owner = {
        "apiVersion": CLAIMRESERVATIONS.api_version,
        "kind": CLAIMRESERVATIONS.kind,
        "name": reservation.metadata.name,
        "uid": reservation.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": False,
    }
    return {
        "metadata": {
            "name": reservation.spec.resource_claim_name,
            "namespace": reservation.metadata.namespace,
            "labels": {**(meta.labels or {}), MANAGED_LABEL: "claimctl"},
            "annotations": dict(meta.annotations or {}),
            "ownerReferences": [owner],
        },
        "spec": spec,
    }
