"""Deployments, ReplicaSets, StatefulSets and Jobs: how many pods they want, how they end."""

from __future__ import annotations

from claimctl.wire.base import Wire
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


class StatefulSet(ObjectHeader, frozen=True, kw_only=True):
    spec: ScalableSpec = ScalableSpec()


class JobSpec(Wire, frozen=True, kw_only=True):
    parallelism: int | None = None
    completions: int | None = None
    suspend: bool = False
    template: PodTemplateSpec = PodTemplateSpec()


class JobStatus(Wire, frozen=True, kw_only=True):
    conditions: tuple[Condition, ...] = ()


class Job(ObjectHeader, frozen=True, kw_only=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


Workload = Deployment | StatefulSet | Job
