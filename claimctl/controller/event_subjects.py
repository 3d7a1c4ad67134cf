"""What events are about: object references to claims, reservations and workloads."""

from __future__ import annotations

from claimctl.controller.caches.informers import workload_resource
from claimctl.reservation.snapshot import Held
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.coordination import ObjectReference
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import CLAIMRESERVATIONS, RESOURCECLAIMS, Resource
from claimctl.wire.workloads import Workload


def claim_subject(claim: ResourceClaim) -> ObjectReference:
    return _subject(RESOURCECLAIMS.api_version, RESOURCECLAIMS.kind, claim.metadata)


def reservation_subject(held: Held) -> ObjectReference:
    meta = held.reservation.metadata
    return _subject(CLAIMRESERVATIONS.api_version, CLAIMRESERVATIONS.kind, meta)


def workload_subject(held: Held) -> ObjectReference:
    """The workload of a reservation, which exists."""
    ref = held.reservation.spec.workload_ref
    return ObjectReference(
        api_version=workload_resource(ref.api_group, ref.kind).api_version,
        kind=ref.kind,
        namespace=held.reservation.metadata.namespace,
        name=ref.name,
        uid=held.workload.uid,
    )


def subject_of(resource: Resource[Workload], workload: Workload) -> ObjectReference:
    return _subject(resource.api_version, resource.kind, workload.metadata)


def _subject(api_version: str, kind: str, meta: ObjectMeta) -> ObjectReference:
    return ObjectReference(
        api_version=api_version,
        kind=kind,
        namespace=meta.namespace,
        name=meta.name,
        uid=meta.uid,
    )
