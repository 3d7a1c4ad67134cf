"""The parts of a pod that are kept of it, to save memory."""

from __future__ import annotations

import sys
from collections.abc import Hashable
from functools import lru_cache
from typing import Any, TypeVar

from msgspec.structs import replace

from claimctl.reservation.facts.pods import DISRUPTED, claim_names
from claimctl.wire.meta import Condition, ObjectMeta, OwnerReference
from claimctl.wire.pods import ContainerStatus, Pod, PodSpec, PodStatus

T = TypeVar("T", bound=Hashable)

SHARED = 10_000
"""The number of different parts that are remembered so that equal ones can be shared."""


def slim_pod(pod: Pod) -> Pod | None:
    """The parts of the pod that decisions read; None for a pod that names no claim.

    Equal parts of different pods are in memory once.
    """
    spec, status = pod.spec, pod.status
    extended = status.extended_resource_claim_status
    if not (spec.resource_claims or status.resource_claim_statuses or extended):
        return None
    if not claim_names(pod):
        return None
    bound = bool(spec.node_name)
    return Pod(
        metadata=_slim_metadata(pod.metadata, bound=bound),
        spec=_bound_spec(spec) if bound else _pending_spec(spec),
        status=_slim_status(status, bound=bound),
    )


def _slim_metadata(meta: ObjectMeta, *, bound: bool) -> ObjectMeta:
    return ObjectMeta(
        name=meta.name,
        namespace=sys.intern(meta.namespace),
        uid=meta.uid,
        resource_version=meta.resource_version,
        creation_timestamp=meta.creation_timestamp,
        deletion_timestamp=meta.deletion_timestamp,
        owner_references=() if bound else _controllers(meta),
    )


def _bound_spec(spec: PodSpec) -> PodSpec:
    return replace(
        spec,
        node_name=sys.intern(spec.node_name),
        resource_claims=_shared(spec.resource_claims),
        scheduling_group=_shared(spec.scheduling_group) if spec.scheduling_group else None,
        tolerations=(),
        scheduler_name="",
        volumes=(),
    )


def _pending_spec(spec: PodSpec) -> PodSpec:
    return replace(
        spec,
        resource_claims=_shared(spec.resource_claims),
        scheduling_group=_shared(spec.scheduling_group),
        tolerations=(),
        scheduler_name=sys.intern(spec.scheduler_name),
        volumes=tuple(volume for volume in spec.volumes if volume.may_be_unbound),
    )


def _slim_status(status: PodStatus, *, bound: bool) -> PodStatus:
    wanted = _BOUND_CONDITIONS if bound else _CONDITIONS
    kept = tuple([_plain(each) for each in status.conditions if each.type in wanted])
    nominated = "" if bound else status.nominated_node_name
    return _shared_status(replace(status, conditions=kept, nominated_node_name=nominated))


@lru_cache(maxsize=SHARED)
def _shared_status(status: PodStatus) -> PodStatus:
    """The status with shared parts: most pods of a cluster are in one of a few states.

    The pods of a workload have equal statuses here, so this is done once for all of them.
    """
    return _shared(
        replace(
            status,
            phase=sys.intern(status.phase),
            container_statuses=_nameless(status.container_statuses),
            init_container_statuses=_nameless(status.init_container_statuses),
            ephemeral_container_statuses=_nameless(status.ephemeral_container_statuses),
        )
    )


_CONDITIONS = frozenset({"PodScheduled", DISRUPTED})
_BOUND_CONDITIONS = frozenset({DISRUPTED})
"""PodScheduled says why a pod is pending. A bound pod is not."""


def _plain(condition: Condition) -> Condition:
    """The condition without its text, which changes with every try of a scheduler."""
    return replace(condition, message="") if condition.message else condition


def _nameless(statuses: tuple[ContainerStatus, ...]) -> tuple[ContainerStatus, ...]:
    """The statuses without the names of their containers: only the states matter."""
    return _shared(tuple(ContainerStatus(state=each.state) for each in statuses))


@lru_cache(maxsize=SHARED)
def _remembered(part: Hashable) -> Any:
    return part


def _shared(part: T) -> T:
    """The part, or an equal one that is in memory already. Parts are immutable."""
    found: T = _remembered(part)
    return found


def _controllers(meta: ObjectMeta) -> tuple[OwnerReference, ...]:
    controller = meta.controller()
    return () if controller is None else (controller,)
