"""Carry out the one write of a decision, under the version that it was decided on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from claimctl.controller.patches import (
    claim_body,
    finalizers_patch,
    list_replacement,
    status_patch,
)
from claimctl.kube.claim_lists import change_list
from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound, UnreadableObject
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
from claimctl.reservation.facts.snapshot import Snapshot
from claimctl.wire.claims import CLAIM_FINALIZER
from claimctl.wire.meta import ObjectHeader, ObjectMeta
from claimctl.wire.reservations import FINALIZER, ClaimReservation
from claimctl.wire.resources import (
    CLAIMRESERVATIONS,
    RESOURCECLAIMS,
    RESOURCECLAIMTEMPLATES,
    read_as,
)
from claimctl.wire.unreadable import Unreadable

_CLAIMS = read_as(RESOURCECLAIMS, ObjectHeader)
_RESERVATIONS = read_as(CLAIMRESERVATIONS, ObjectHeader)
"""For writes: the answer is the whole object, of which only the metadata is decoded."""


class TemplateMissing(Exception):
    """The ResourceClaimTemplate of a claim that should be created does not exist."""


class Writer:
    """Sends one request for each write. It remembers nothing: the caller notes the write."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def apply(self, snapshot: Snapshot, write: Write) -> ObjectMeta | None:
        """Carry out a write; return the metadata of the written object, None if it was deleted.

        Raises:
            Conflict: the object has changed since the snapshot was made.
            TemplateMissing: the template of the claim does not exist.
            KubeError: the request failed in another way.
        """
        match write:
            case WriteList(present=(_, *_)):
                return await self._replace_list(snapshot, write)
            case WriteList():
                return await self._change_list(snapshot, write)
            case RemoveClaimFinalizer():
                # with the version, so that a claim that was allocated again keeps its finalizer
                assert snapshot.claim is not None
                body = finalizers_patch(snapshot.claim.metadata.finalizers, remove=CLAIM_FINALIZER)
                return await self._patch_claim(snapshot, body, write.resource_version)
            case CreateClaim():
                return await self._create(write)
            case DeleteClaim():
                await self._delete(snapshot, write)
                return None
            case WriteStatus():
                body = status_patch(write.reservation.status, write.status)
                return await self._patch_reservation(write.reservation, body, "status")
            case SetFinalizer():
                change = {"add": FINALIZER} if write.present else {"remove": FINALIZER}
                body = finalizers_patch(write.reservation.metadata.finalizers, **change)
                return await self._patch_reservation(write.reservation, body)
            case ClearReleaseRequest():
                body = {"metadata": {"annotations": {write.annotation: None}}}
                return await self._patch_reservation(write.reservation, body)

    async def _patch_claim(
        self, snapshot: Snapshot, body: Mapping[str, Any], version: str
    ) -> ObjectMeta:
        written = await self._client.merge_patch(
            _CLAIMS,
            snapshot.name,
            body,
            snapshot.namespace,
            resource_version=version,
        )
        return written.metadata

    async def _change_list(self, snapshot: Snapshot, write: WriteList) -> ObjectMeta:
        claim = snapshot.claim
        assert claim is not None
        assert claim.metadata.resource_version == write.resource_version
        written = await change_list(
            self._client, _CLAIMS, claim, write.reserved_for, deallocate=write.deallocate
        )
        return written.metadata

    async def _replace_list(self, snapshot: Snapshot, write: WriteList) -> ObjectMeta:
        """Replace the list that the write was decided on, whatever version the claim has now."""
        assert snapshot.claim is not None
        written = await self._client.json_patch(
            _CLAIMS,
            snapshot.name,
            list_replacement(write.present, write.reserved_for),
            snapshot.namespace,
            uid=snapshot.claim.metadata.uid,
            subresource="status",
        )
        return written.metadata

    async def _create(self, write: CreateClaim) -> ObjectMeta:
        reservation = write.reservation
        namespace = reservation.metadata.namespace
        name = reservation.spec.resource_claim_template_name or ""
        try:
            template = await self._client.get(RESOURCECLAIMTEMPLATES, name, namespace)
        except NotFound as error:
            raise TemplateMissing(f"ResourceClaimTemplate {name} does not exist") from error
        try:
            body = claim_body(reservation, template, write.reserved_for)
        except msgspec.ValidationError as error:
            path = RESOURCECLAIMTEMPLATES.path(namespace, name)
            found = Unreadable(RESOURCECLAIMTEMPLATES, str(error), namespace, name)
            raise UnreadableObject("GET", path, found) from error
        return (await self._client.create(RESOURCECLAIMS, body, namespace)).metadata

    async def _delete(self, snapshot: Snapshot, write: DeleteClaim) -> None:
        await self._client.delete(
            RESOURCECLAIMS,
            snapshot.name,
            snapshot.namespace,
            uid=write.uid,
            resource_version=write.resource_version,
        )

    async def _patch_reservation(
        self, reservation: ClaimReservation, body: Mapping[str, Any], subresource: str = ""
    ) -> ObjectMeta:
        meta = reservation.metadata
        written = await self._client.merge_patch(
            _RESERVATIONS,
            meta.name,
            body,
            meta.namespace,
            resource_version=meta.resource_version,
            subresource=subresource,
        )
        return written.metadata
