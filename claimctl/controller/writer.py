"""Carrying out the one write of a decision, under the version it was decided on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import structlog

from claimctl.controller.keys import ClaimKey
from claimctl.controller.patches import (
    claim_body,
    finalizers_patch,
    list_patch,
    status_patch,
)
from claimctl.controller.snapshots import Knowledge
from claimctl.kube.client import Client
from claimctl.kube.errors import NotFound, UnreadableObject
from claimctl.reservation.decision import (
    ClearReleaseRequest,
    CreateClaim,
    DeleteClaim,
    RemoveClaimFinalizer,
    SetFinalizer,
    Write,
    WriteList,
    WriteStatus,
)
from claimctl.reservation.release.protocol import CLAIM_FINALIZER
from claimctl.reservation.reserved_for.references import is_pod, is_workload
from claimctl.reservation.snapshot import Snapshot
from claimctl.telemetry.face import Metric, Telemetry
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.reservations import FINALIZER, RELEASE_ANNOTATION, ClaimReservation
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS, RESOURCECLAIMTEMPLATES
from claimctl.wire.unreadable import Unreadable

log = structlog.get_logger(__name__)


class TemplateMissing(Exception):
    """The ResourceClaimTemplate from which a claim is to be made does not exist."""


class Writer:
    """One request per write; what came back is noted, so that nobody decides on less."""

    def __init__(self, client: Client, knowledge: Knowledge, telemetry: Telemetry) -> None:
        self._client = client
        self._know = knowledge
        self._telemetry = telemetry

    async def apply(self, snapshot: Snapshot, write: Write) -> None:
        """Carry out a write.

        Raises:
            Conflict: the object has changed since the snapshot was made.
            TemplateMissing: there is nothing to make the claim from.
            KubeError: anything else that can go wrong with a request.
        """
        match write:
            case WriteList():
                await self._write_list(snapshot, write)
            case RemoveClaimFinalizer():
                await self._remove_finalizer(snapshot, write)
            case CreateClaim():
                await self._create(write)
            case DeleteClaim():
                await self._delete(snapshot, write)
            case WriteStatus():
                await self._write_status(snapshot, write)
            case SetFinalizer():
                await self._set_finalizer(write)
            case ClearReleaseRequest():
                body = {"metadata": {"annotations": {RELEASE_ANNOTATION: None}}}
                await self._patch_reservation(write.reservation, body)

    async def _write_list(self, snapshot: Snapshot, write: WriteList) -> None:
        key = ClaimKey(snapshot.namespace, snapshot.name)
        written = await self._client.merge_patch(
            RESOURCECLAIMS,
            snapshot.name,
            list_patch(write.reserved_for, deallocate=write.deallocate),
            snapshot.namespace,
            resource_version=write.resource_version,
            subresource="status",
        )
        self._note(written)
        self._learn(snapshot, write)
        if write.deallocate:
            self._know.memories.deallocated(written.metadata)
            labels = {"reason": write.reason, "dialect": self._know.rules.dialect}
            self._telemetry.add(Metric.RELEASES, labels)
            waited = self._know.memories.fenced_age(key)
            if waited is not None:
                self._telemetry.observe(
                    Metric.RELEASE_WAIT_SECONDS, waited, {"reason": write.reason}
                )
        elif write.fence:
            self._know.memories.fenced(key)
        else:
            self._know.memories.wrote_list(key, write.reserved_for)
            self._measure_hold(snapshot, write)

    def _learn(self, snapshot: Snapshot, write: WriteList) -> None:
        """What KCM left for as long as it may take, it does not clean, whatever its version.

        It is not waited for again, until the cluster is looked at anew.
        """
        rules, kept = self._know.rules, {each.uid for each in write.reserved_for}
        if write.deallocate or write.fence or not rules.kcm_cleans_mixed_lists:
            return
        removed = (each for each in snapshot.references if each.uid not in kept and is_pod(each))
        ages = snapshot.memory.dead_age
        if any(ages.get(each.uid, 0.0) >= rules.dead_reference_seconds for each in removed):
            log.info("the cluster leaves dead references beside a hold: claimctl removes them")
            self._know.rules = replace(rules, kcm_cleans_mixed_lists=False)

    def _measure_hold(self, snapshot: Snapshot, write: WriteList) -> None:
        """How long a claim was allocated before its workload was listed."""
        listed = {reference.uid for reference in snapshot.references}
        added = any(is_workload(ref) and ref.uid not in listed for ref in write.reserved_for)
        allocation = snapshot.claim.status.allocation if snapshot.claim else None
        if not added or allocation is None:
            return
        seconds = self._know.memories.allocated_age(ClaimKey(snapshot.namespace, snapshot.name))
        if allocation.allocation_timestamp is not None:
            seconds = (snapshot.now - allocation.allocation_timestamp).total_seconds()
        self._telemetry.observe(Metric.ALLOCATION_TO_HOLD_SECONDS, max(seconds, 0.0))

    async def _remove_finalizer(self, snapshot: Snapshot, write: RemoveClaimFinalizer) -> None:
        """Under the version, so that a claim allocated again meanwhile keeps its finalizer."""
        assert snapshot.claim is not None
        present = snapshot.claim.metadata.finalizers
        written = await self._client.merge_patch(
            RESOURCECLAIMS,
            snapshot.name,
            finalizers_patch(present, remove=CLAIM_FINALIZER),
            snapshot.namespace,
            resource_version=write.resource_version,
        )
        self._note(written)

    async def _create(self, write: CreateClaim) -> None:
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
        self._note(await self._client.create(RESOURCECLAIMS, body, namespace))

    async def _delete(self, snapshot: Snapshot, write: DeleteClaim) -> None:
        await self._client.delete(
            RESOURCECLAIMS,
            snapshot.name,
            snapshot.namespace,
            uid=write.uid,
            resource_version=write.resource_version,
        )

    async def _write_status(self, snapshot: Snapshot, write: WriteStatus) -> None:
        reservation = write.reservation
        body = status_patch(reservation.status, write.status)
        await self._patch_reservation(reservation, body, "status")
        key = ClaimKey(snapshot.namespace, snapshot.name)
        self._know.memories.wrote_status(key, reservation.metadata.name, write.status)

    async def _set_finalizer(self, write: SetFinalizer) -> None:
        present = write.reservation.metadata.finalizers
        change = {"add": FINALIZER} if write.present else {"remove": FINALIZER}
        await self._patch_reservation(write.reservation, finalizers_patch(present, **change))

    async def _patch_reservation(
        self, reservation: ClaimReservation, body: Mapping[str, Any], subresource: str = ""
    ) -> None:
        meta = reservation.metadata
        written = await self._client.merge_patch(
            CLAIMRESERVATIONS,
            meta.name,
            body,
            meta.namespace,
            resource_version=meta.resource_version,
            subresource=subresource,
        )
        self._know.freshness.wrote(CLAIMRESERVATIONS, written.metadata)

    def _note(self, claim: ResourceClaim) -> None:
        self._know.freshness.wrote(RESOURCECLAIMS, claim.metadata)
