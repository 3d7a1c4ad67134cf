"""The parts of a pod that are kept of it, to save memory."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from typing import TypeVar

from msgspec.structs import replace

from claimctl.reservation.facts.pods import DISRUPTED, PREPARED, claim_names
from claimctl.reservation.remembered import Remembered
from claimctl.wire.meta import Condition, ObjectMeta
from claimctl.wire.pods import ContainerStatus, Pod, PodStatus
from claimctl.wire.reservations import STICKY_ANNOTATION, STICKY_CLAIMS_ANNOTATION

T = TypeVar("T", bound=Hashable)


def slim_pod(pod: Pod, known: Pod | None = None) -> Pod | None:
    """The parts of the pod that decisions read; None for a pod that names no claim.

    Equal parts of different pods are in memory once.

    Args:
        known: an earlier version of the pod of this name. The claims in its status stay: releases
            of 1.34 to 1.36 drop some of several for moments (kubernetes/kubernetes#138407).
    """
    if known is not None and known.status.resource_claim_statuses:
        pod = _with_claims_of(known, pod)
    meta, spec, status = pod.metadata, pod.spec, pod.status
    extended = status.extended_resource_claim_status
    if not (spec.resource_claims or status.resource_claim_statuses or extended):
        return None
    if not claim_names(pod):
        return None
    bound = bool(spec.node_name)
    owner = meta.controller()
    metadata = ObjectMeta(
        name=meta.name,
        namespace=sys.intern(meta.namespace),
        uid=meta.uid,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
        deletion_grace_period_seconds=meta.deletion_grace_period_seconds,
        annotations=_sticky(meta),
        owner_references=() if owner is None else (_intern(owner),),
    )
    pending = () if bound else spec.volumes
    slim_spec = replace(
        spec,
        node_name=sys.intern(spec.node_name),
        resource_claims=_intern(spec.resource_claims),
        scheduling_group=_intern(spec.scheduling_group),
        tolerations=() if bound else _intern(spec.tolerations),
        scheduler_name="" if bound else sys.intern(spec.scheduler_name),
        # one gate or one volume that may be late says the same as all
        scheduling_gates=spec.scheduling_gates[:1],
        volumes=tuple(volume for volume in pending if volume.may_be_unbound)[:1],
    )
    # the text of a condition changes with every try of a scheduler
    wanted = _BOUND_CONDITIONS if bound else _CONDITIONS
    slim_status = replace(
        status,
        conditions=tuple([_slim(part) for part in status.conditions if part.type in wanted]),
        nominated_node_name="" if bound else status.nominated_node_name,
    )
    return Pod(metadata=metadata, spec=slim_spec, status=_intern_status(slim_status))


def _sticky(meta: ObjectMeta) -> dict[str, str] | None:
    """The annotations about sticky claims."""
    given = meta.annotations or {}
    return {name: given[name] for name in _KEPT if name in given} or None


_KEPT = (STICKY_ANNOTATION, STICKY_CLAIMS_ANNOTATION)


def _with_claims_of(known: Pod, pod: Pod) -> Pod:
    if known.metadata.uid != pod.metadata.uid:
        return pod
    now = pod.status.resource_claim_statuses
    lost = tuple(entry for entry in known.status.resource_claim_statuses if entry not in now)
    if not lost:
        return pod
    return replace(pod, status=replace(pod.status, resource_claim_statuses=(*now, *lost)))


def _shared_status(status: PodStatus) -> PodStatus:
    """The status with shared parts: most pods of a cluster are in one of a few states.

    The pods of a workload have equal statuses here, so this is done once for all of them.
    """
    return _intern(
        replace(
            status,
            phase=sys.intern(status.phase),
            container_statuses=_nameless(status.container_statuses),
            init_container_statuses=_nameless(status.init_container_statuses),
            ephemeral_container_statuses=_nameless(status.ephemeral_container_statuses),
        )
    )


_intern_status = Remembered(_shared_status, most_bytes=8_000_000)
_CONDITIONS = frozenset({"PodScheduled", DISRUPTED})
_BOUND_CONDITIONS = frozenset({DISRUPTED, PREPARED})
"""PodScheduled says why a pod is pending. A bound pod is not."""


def _slim(condition: Condition) -> Condition:
    """The condition without its text, and without a time that nothing reads: more are equal so."""
    if condition.type == PREPARED:
        return Condition(type=PREPARED, status=condition.status)
    return replace(condition, message="") if condition.message else condition


def _nameless(statuses: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
    """The statuses without the names of their containers: only the states matter."""
    return _intern(tuple(ContainerStatus(state=status.state) for status in statuses))


_remembered: Remembered[Hashable, Hashable] = Remembered(lambda part: part, most_bytes=16_000_000)


def _intern(part: T) -> T:
    """The part, or an equal one that is in memory already. Parts are immutable."""
    known: T = _remembered(part)  # type: ignore[assignment]  # equal parts have one type
    return known
