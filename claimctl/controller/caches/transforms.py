"""What the caches keep of an object, to save memory."""

from __future__ import annotations

import sys

from msgspec.structs import replace

from claimctl.reservation.pods import DISRUPTED, claim_names
from claimctl.reservation.workloads import named_claims
from claimctl.wire.claims import ResourceClaim
from claimctl.wire.meta import ObjectMeta, OwnerReference
from claimctl.wire.pods import Pod, Volume
from claimctl.wire.workloads import ReplicaSet

_CONDITIONS = frozenset({"PodScheduled", DISRUPTED})


def slim_pod(pod: Pod) -> Pod | None:
    """The parts of the pod that the cache keeps; None for a pod that names no claim."""
    if not claim_names(pod):
        return None
    meta, status = pod.metadata, pod.status
    return replace(
        pod,
        metadata=replace(
            meta,
            namespace=sys.intern(meta.namespace),
            labels=None,
            annotations=None,
            owner_references=() if pod.spec.node_name else _controllers(meta),
            finalizers=(),
        ),
        spec=replace(
            pod.spec,
            node_name=sys.intern(pod.spec.node_name),
            tolerations=() if pod.spec.node_name else pod.spec.tolerations,
            scheduler_name="" if pod.spec.node_name else sys.intern(pod.spec.scheduler_name),
            volumes=() if pod.spec.node_name else _slow_volumes(pod),
        ),
        status=replace(
            status,
            phase=sys.intern(status.phase),
            conditions=tuple(each for each in status.conditions if each.type in _CONDITIONS),
        ),
    )


def _controllers(meta: ObjectMeta) -> tuple[OwnerReference, ...]:
    controller = meta.controller()
    return () if controller is None else (controller,)


def _slow_volumes(pod: Pod) -> tuple[Volume, ...]:
    return tuple(volume for volume in pod.spec.volumes if volume.may_be_unbound)


def owning(claim: ResourceClaim) -> ResourceClaim:
    """The claim with copies of its undecoded parts.

    The undecoded parts are views into the received bytes. Without copies, one claim would keep a
    whole page of a list in memory.
    """
    entries = tuple(
        replace(entry, fields_v1=entry.fields_v1.copy()) for entry in claim.metadata.managed_fields
    )
    metadata = replace(claim.metadata, managed_fields=entries)
    return replace(claim, metadata=metadata)


def naming_a_claim(replica_set: ReplicaSet) -> ReplicaSet | None:
    """The ReplicaSet, or None if its pods name no claim."""
    return replica_set if named_claims(replica_set.spec.template) else None
