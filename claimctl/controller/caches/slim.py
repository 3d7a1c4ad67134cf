"""The parts of objects that caches keep: those that decisions read, and no more than a bound.

Users write annotations, labels and lists of up to 1.5 MB into one object. What nothing reads is
dropped, and an object whose remaining parts are still too large is refused as a whole: a part of
a list would say something else than the list.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from claimctl.reservation.facts.ordinals import asked_entries
from claimctl.reservation.facts.workloads import named_claims, own_annotations
from claimctl.wire.base import EMPTY, decode, encode
from claimctl.wire.claims import (
    AllocatedDeviceStatus,
    Device,
    Reference,
    ResourceClaim,
    ResourceSlice,
)
from claimctl.wire.meta import ManagedFieldsEntry, ObjectHeader, ObjectMeta
from claimctl.wire.nodes import Node
from claimctl.wire.pods import PodSpec, PodTemplateSpec
from claimctl.wire.reservations import MANAGED_LABEL
from claimctl.wire.workloads import ReplicaSet, W, without_indexes

H = TypeVar("H", bound=ObjectHeader)
M = TypeVar("M", bound=ObjectMeta)

MOST_BYTES = 32 * 1024
"""The most that is kept of what a user writes into one object, in bytes of JSON: of its metadata
and its spec. A pod can name about 250 claims. Statuses are written by components."""


class TooLarge(msgspec.ValidationError):
    """The object has more of what claimctl reads than a cache keeps."""


def bounded(item: H) -> H:
    """The object itself; raises TooLarge if its metadata and its spec are larger than the bound."""
    parts = (item.metadata, getattr(item, "spec", None))
    size = len(encode(parts))
    if size > MOST_BYTES:
        raise TooLarge(
            f"its metadata and spec have {size} bytes that claimctl would have to keep, "
            f"and at most {MOST_BYTES} are: shorten the list of claims, the labels, the "
            "finalizers, the owners or the annotations of claimctl.io"
        )
    return item


def slim(item: H) -> H:
    """The object with slim metadata."""
    return replace(item, metadata=slim_meta(item.metadata))


def slim_meta(meta: M) -> M:
    """The metadata without what nothing reads: of the annotations, only claimctl's stay, and of the
    labels, only the one that says who made the object."""
    labels = meta.labels or {}
    kept = {MANAGED_LABEL: labels[MANAGED_LABEL]} if MANAGED_LABEL in labels else None
    return replace(
        meta,
        generate_name="",
        namespace=sys.intern(meta.namespace),
        labels=kept,
        annotations=own_annotations(meta) or None,
    )


def slim_node(node: Node) -> Node:
    """The node. Node selectors read its labels."""
    return replace(node, metadata=replace(node.metadata, generate_name="", annotations=None))


def slim_claim(claim: ResourceClaim) -> ResourceClaim:
    """The claim. DowngradePlans select claims by their labels."""
    meta, status = claim.metadata, claim.status
    metadata = replace(
        slim_meta(meta),
        labels=meta.labels,
        managed_fields=_writers(meta.managed_fields, status.reserved_for),
    )
    slim_status = replace(status, devices=_reports(status.devices))
    return replace(claim, metadata=metadata, status=slim_status)


def _writers(
    entries: tuple[ManagedFieldsEntry, ...], listed: tuple[Reference, ...]
) -> tuple[ManagedFieldsEntry, ...]:
    """The managers that wrote entries of the claim's present list, and no other field of theirs.

    So nothing is kept of what the bytes had beside it: an undecoded part is a view into the whole
    page that it came in.
    """
    wanted = {f'k:{{"uid":"{entry.uid}"}}' for entry in listed}
    slimmed: list[ManagedFieldsEntry] = []
    for entry in entries if wanted else ():
        if entry.subresource != "status":
            continue
        try:
            written = wanted & decode(entry.fields_v1, _WrittenKeys).status.reserved_for.keys()
        except msgspec.DecodeError:
            continue
        if written:
            fields = {"f:status": {"f:reservedFor": dict.fromkeys(sorted(written), EMPTY)}}
            slimmed.append(replace(entry, fields_v1=msgspec.Raw(encode(fields))))
    return tuple(slimmed)


class _ListKeys(msgspec.Struct):
    reserved_for: dict[str, msgspec.Raw] = msgspec.field(name="f:reservedFor", default={})


class _WrittenKeys(msgspec.Struct):
    status: _ListKeys = msgspec.field(name="f:status", default_factory=_ListKeys)


def _reports(devices: msgspec.Raw) -> msgspec.Raw:
    """The conditions that drivers report, without their data and texts."""
    if devices is EMPTY:
        return EMPTY
    try:
        reports = decode(devices, tuple[AllocatedDeviceStatus, ...])
    except msgspec.DecodeError:
        return EMPTY
    return msgspec.Raw(
        encode(
            [
                replace(
                    report,
                    conditions=tuple(replace(known, message="") for known in report.conditions),
                )
                for report in reports
                if report.conditions
            ]
        )
    )


def slim_workload(workload: W) -> W:
    """The workload with the claims, the PodGroup and claimctl's annotations of its pod template."""
    template = workload.spec.template
    given, ours = template.spec, own_annotations(template.metadata) or None
    kept = PodSpec(resource_claims=given.resource_claims, scheduling_group=given.scheduling_group)
    slim_template = PodTemplateSpec(metadata=ObjectMeta(annotations=ours), spec=kept)
    spec = replace(workload.spec, template=slim_template)
    workload = replace(workload, metadata=slim_meta(workload.metadata), spec=spec)
    return workload if asked_entries(slim_template) else without_indexes(workload)


def slim_replica_set(replica_set: ReplicaSet) -> ReplicaSet | None:
    """The same of a ReplicaSet; None if its pods name no claim."""
    return slim_workload(replica_set) if named_claims(replica_set.spec.template) else None


def slim_slice(piece: ResourceSlice) -> ResourceSlice:
    """The parts of the slice that decisions read: of most devices the name alone. Equal names are
    in memory once: the nodes of a cluster have the same ones."""
    meta, devices = piece.metadata, piece.spec.devices or ()
    kept = tuple(device if device.is_special else _named(device.name) for device in devices)
    metadata = ObjectMeta(name=meta.name, uid=meta.uid, resource_version=meta.resource_version)
    return ResourceSlice(metadata=metadata, spec=replace(piece.spec, devices=kept))


@lru_cache(maxsize=10_000)
def _named(device: str) -> Device:
    return Device(name=device)
