"""Workloads: the parts of them that a rule reads, and their pod templates."""

from __future__ import annotations

from bisect import bisect_right
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple, TypeVar

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


STATEFUL_SET = ("apps", "StatefulSet")
LEADER_WORKER_SET = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
_ORDINAL_WORDS = {STATEFUL_SET: "sts", ("batch", "Job"): "job", LEADER_WORKER_SET: "lws"}
KINDS_WITH_ORDINALS = tuple(sorted(kind for _, kind in _ORDINAL_WORDS))
_OWN_GROUPS = frozenset({"", "apps", "batch"})
"""The API groups of Kubernetes' own workloads."""


def ordinal_word(api_group: str, kind: str) -> str:
    """The part of the name of an ordinal's claim that stands for the kind; '' for a kind of
    Kubernetes itself whose pods have no ordinals.

    No two kinds have the same word: a dot becomes a hyphen, and a hyphen becomes two.
    """
    word = _ORDINAL_WORDS.get((api_group, kind), "")
    if word or api_group in _OWN_GROUPS:
        return word
    return f"{kind.lower()}-{api_group.replace('-', '--').replace('.', '-')}"


def has_groups(api_group: str) -> bool:
    """Whether the pods of a kind of this API group may have the index of a group, and one in it."""
    return api_group not in _OWN_GROUPS


class Ordinal(NamedTuple):
    """Which pod of a workload it is.

    Attributes:
        number: the ordinal of a StatefulSet's pod, the completion index of a Job's, or the index of
            the group of a LeaderWorkerSet's.
        member: the index of the pod in its group; None where pods have no groups.
    """

    number: int
    member: int | None = None

    def __str__(self) -> str:
        return str(self.number) if self.member is None else f"{self.number}-{self.member}"


class WorkloadPart(NamedTuple):
    """The object, a part of a workload, that makes the pods of an ordinal.

    Attributes:
        api_group: of its kind.
        kind: of the object.
        name: of the object.
        ordinal: that of the pods in it.
    """

    api_group: str
    kind: str
    name: str
    ordinal: int


def part_for(api_group: str, kind: str, name: str, ordinal: Ordinal) -> WorkloadPart | None:
    """The part of a workload that makes the pods of an ordinal; None if the workload makes them
    itself.

    One StatefulSet with the name of the LeaderWorkerSet makes all leaders, and one with the name of
    a leader makes the workers of its group.
    """
    if (api_group, kind) != LEADER_WORKER_SET or ordinal.member is None:
        return None
    if ordinal.member:
        return WorkloadPart(*STATEFUL_SET, f"{name}-{ordinal.number}", ordinal.member)
    return WorkloadPart(*STATEFUL_SET, name, ordinal.number)


def pod_name(api_group: str, kind: str, workload: str, ordinal: Ordinal) -> str:
    """The name of the ordinal's pod; '' for a kind whose pods have other names."""
    if (api_group, kind) not in (STATEFUL_SET, LEADER_WORKER_SET):
        return ""
    leader = f"{workload}-{ordinal.number}"
    return f"{leader}-{ordinal.member}" if ordinal.member else leader


class OrdinalWish(StrEnum):
    """Whether a workload wants a pod of an ordinal."""

    YES = "Yes"
    NOT_NOW = "NotNow"
    """The workload is scaled below the ordinal."""
    NEVER = "Never"
    """The index of a Job has succeeded, or has failed for good."""


def has_ordinals(workload: Workload) -> bool:
    """Whether each pod of the workload has an ordinal of one number: not for groups of pods."""
    if isinstance(workload, Job):
        return workload.spec.completion_mode == "Indexed"
    return isinstance(workload, StatefulSet)


def ordinal_wish(workload: Workload, ordinal: int) -> OrdinalWish:
    """Whether the workload wants a pod of the ordinal, now or later."""
    wants, fewer = True, False
    if isinstance(workload, StatefulSet):
        fewer = ordinal not in workload.spec.wanted_ordinals
    elif isinstance(workload, Job):
        status, completions = workload.status, workload.spec.completions
        ended = (status.completed_indexes, status.failed_indexes or "")
        wants = not any(_contains(indexes, ordinal) for indexes in ended)
        fewer = completions is not None and ordinal >= completions
    if not wants:
        return OrdinalWish.NEVER
    return OrdinalWish.NOT_NOW if fewer else OrdinalWish.YES


def may_have_earlier_template(workload: Workload, ordinal: int) -> bool:
    """Whether a new pod of the ordinal may have an earlier pod template than the workload has."""
    return isinstance(workload, StatefulSet) and ordinal in _earlier(workload)


def _earlier(workload: StatefulSet) -> range:
    """The ordinals whose new pods may have an earlier pod template."""
    status = workload.status
    differ = status.current_revision != status.update_revision
    differ |= status.observed_generation < workload.metadata.generation
    return workload.spec.ordinals_below_partition if differ else range(0)


def wants_the_same(before: Workload, after: Workload) -> bool:
    """Whether both certainly want the same ordinals, with the same pod templates. Most of a
    StatefulSet's status, which changes with each pod, says nothing about them."""
    if not (isinstance(before, StatefulSet) and isinstance(after, StatefulSet)):
        return False
    same = before.spec.wanted_ordinals == after.spec.wanted_ordinals
    return same and _earlier(before) == _earlier(after)


def _contains(indexes: str, ordinal: int) -> bool:
    """Whether an index is among those of a Job's status."""
    ranges = _ranges(indexes)
    at = bisect_right(ranges, ordinal, key=_START) - 1
    return at >= 0 and ordinal in ranges[at]


_START = attrgetter("start")


@lru_cache(maxsize=8)
def _ranges(indexes: str) -> tuple[range, ...]:
    """The indexes in a Job's status, like ``1,3-5,7``, from the lowest up. They are many, and other
    ones after each pod, so that few such texts are remembered."""
    ranges = []
    for part in filter(None, indexes.split(",")):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            ranges.append(range(int(first), int(last or first) + 1))
    return tuple(sorted(ranges, key=_START))


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
