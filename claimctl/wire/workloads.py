"""Workloads: the parts of them that a rule reads, and their pod templates."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from claimctl.wire.base import EMPTY, Wire, null_is_empty
from claimctl.wire.meta import Condition, ObjectHeader
from claimctl.wire.pods import PodTemplateSpec


class ScalableSpec(Wire, frozen=True, kw_only=True):
    """The common part of Deployment, ReplicaSet and StatefulSet specs; replicas default to 1."""

    replicas: int | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class Deployment(ObjectHeader, frozen=True, kw_only=True):
    spec: ScalableSpec = ScalableSpec()


class ReplicaSet(ObjectHeader, frozen=True, kw_only=True):
    spec: ScalableSpec = ScalableSpec()


class StatefulSetOrdinals(Wire, frozen=True, kw_only=True):
    start: int = 0


class RollingUpdate(Wire, frozen=True, kw_only=True):
    partition: int = 0


class StatefulSetUpdateStrategy(Wire, frozen=True, kw_only=True):
    type: str = "RollingUpdate"
    rolling_update: RollingUpdate | None = None


class StatefulSetSpec(ScalableSpec, frozen=True, kw_only=True):
    ordinals: StatefulSetOrdinals | None = None
    update_strategy: StatefulSetUpdateStrategy = StatefulSetUpdateStrategy()

    @property
    def first_ordinal(self) -> int:
        return self.ordinals.start if self.ordinals is not None else 0

    @property
    def wanted_ordinals(self) -> range:
        """The ordinals of the pods that the StatefulSet wants."""
        start = self.first_ordinal
        return range(start, start + (1 if self.replicas is None else self.replicas))

    @property
    def ordinals_below_partition(self) -> range:
        """The ordinals that a rolling update leaves alone: their pods keep the earlier template,
        also those that are made anew."""
        strategy, start = self.update_strategy, self.first_ordinal
        rolling = strategy.rolling_update if strategy.type == "RollingUpdate" else None
        return range(start, start + (rolling.partition if rolling is not None else 0))


class StatefulSetStatus(Wire, frozen=True, kw_only=True):
    observed_generation: int = 0
    current_revision: str = ""
    """The revision of the pod template that pods below the partition have."""
    update_revision: str = ""


class StatefulSet(ObjectHeader, frozen=True, kw_only=True):
    spec: StatefulSetSpec = StatefulSetSpec()
    status: StatefulSetStatus = StatefulSetStatus()


class JobSpec(Wire, frozen=True, kw_only=True):
    parallelism: int | None = None
    completions: int | None = None
    completion_mode: str = ""
    suspend: bool = False
    template: PodTemplateSpec = PodTemplateSpec()


class JobStatus(Wire, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()
    completed_indexes: str = ""
    """The completion indexes that have succeeded, like ``1,3-5,7``."""
    failed_indexes: str | None = None
    """Those that have failed for good (with ``backoffLimitPerIndex``)."""


class Job(ObjectHeader, frozen=True, kw_only=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class CustomWorkload(ObjectHeader, frozen=True, kw_only=True):
    """A workload of any other kind. Its pods name the claims; a pod template is not read."""

    spec: msgspec.Raw = EMPTY
    status: msgspec.Raw = EMPTY

    def __post_init__(self) -> None:
        null_is_empty(self, "spec", self.spec)
        null_is_empty(self, "status", self.status)


Workload = Deployment | StatefulSet | Job | CustomWorkload
W = TypeVar("W", bound=Deployment | StatefulSet | Job | ReplicaSet)

WAIT_FOR_THEIR_PODS = frozenset({("apps", "StatefulSet")})
"""API group and kind of the workloads that make a pod only when the one before it is gone: the two
have the same name."""


def without_indexes(workload: W) -> W:
    """The workload without the indexes that have ended: a large Job has others with every pod."""
    if isinstance(workload, Job):
        status = JobStatus(conditions=workload.status.conditions)
        return msgspec.structs.replace(workload, status=status)
    return workload


def without_progress(workload: W) -> W:
    """The same, also without the revisions of its pod template: most workloads are equal then."""
    if isinstance(workload, StatefulSet):
        return msgspec.structs.replace(workload, status=StatefulSetStatus())
    return without_indexes(workload)


def has_fixed_template(workload: Workload) -> bool:
    """Whether the pod template can never change: the API server refuses that, also while a Job is
    suspended."""
    return isinstance(workload, Job)


_NO_TEMPLATE = PodTemplateSpec()


def template_of(workload: Workload) -> PodTemplateSpec:
    """The workload's pod template; an empty one for a kind whose template is not read."""
    return _NO_TEMPLATE if isinstance(workload, CustomWorkload) else workload.spec.template
