"""What the caches keep of an object, to save memory."""

from __future__ import annotations

from msgspec.structs import replace

from claimctl.reservation.facts.workloads import named_claims
from claimctl.wire.claims import Device, ResourceClaim, ResourceSlice
from claimctl.wire.placement import NO_EXECUTE
from claimctl.wire.workloads import ReplicaSet


def owning(claim: ResourceClaim) -> ResourceClaim:
    """The claim with copies of its undecoded parts.

    The undecoded parts are views into the received bytes. Without copies, one claim would keep a
    whole page of a list in memory.
    """
    entries = tuple(
        replace(entry, fields_v1=entry.fields_v1.copy()) for entry in claim.metadata.managed_fields
    )
    metadata = replace(claim.metadata, managed_fields=entries)
    status = replace(claim.status, devices=claim.status.devices.copy())
    return replace(claim, metadata=metadata, status=status)


def naming_a_claim(replica_set: ReplicaSet) -> ReplicaSet | None:
    """The ReplicaSet, or None if its pods name no claim."""
    return replica_set if named_claims(replica_set.spec.template) else None


def special_devices(piece: ResourceSlice) -> ResourceSlice | None:
    """The slice with its devices that evict pods, or that the scheduler waits for; None without."""
    devices = tuple(filter(_is_special, piece.spec.devices or ()))
    return replace(piece, spec=replace(piece.spec, devices=devices)) if devices else None


def _is_special(device: Device) -> bool:
    evicts = any(taint.effect == NO_EXECUTE for taint in device.all_taints)
    return evicts or device.has_binding_conditions
