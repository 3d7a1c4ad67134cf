"""Workloads: the parts of them that a rule reads, and their pod templates."""

from __future__ import annotations

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


class StatefulSetSpec(ScalableSpec, frozen=True, kw_only=True):
    ordinals: StatefulSetOrdinals | None = None

    @property
    def wanted_ordinals(self) -> range:
        """The ordinals of the pods that the StatefulSet wants."""
        start = self.ordinals.start if self.ordinals is not None else 0
        return range(start, start + (1 if self.replicas is None else self.replicas))


class StatefulSet(ObjectHeader, frozen=True, kw_only=True):
    spec: StatefulSetSpec = StatefulSetSpec()


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


WAIT_FOR_THEIR_PODS = frozenset({("apps", "StatefulSet")})
"""API group and kind of the workloads that make a pod only when the one before it is gone: the two
have the same name."""


def has_fixed_template(workload: Workload) -> bool:
    """Whether the pod template can never change: the API server refuses that, also while a Job is
    suspended."""
    return isinstance(workload, Job)


_NO_TEMPLATE = PodTemplateSpec()


def template_of(workload: Workload) -> PodTemplateSpec:
    """The workload's pod template; an empty one for a kind whose template is not read."""
    return _NO_TEMPLATE if isinstance(workload, CustomWorkload) else workload.spec.template
