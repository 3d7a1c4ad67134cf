"""The ordinals of workloads: which pods have one, and which ordinals a workload wants.

A StatefulSet numbers its pods, an Indexed Job its completions, and a LeaderWorkerSet its groups and
the pods in each.

The functions from ``has_ordinals`` on read the objects of Kubernetes' own kinds. A kind of them
that gets ordinals has a word in ``_ORDINAL_WORDS``, and a case in ``has_ordinals`` and
``ordinal_wish``. Where its pods are named by their ordinals, or may have an earlier template, it
has one in ``pod_name``, ``may_have_earlier_template`` and ``wants_the_same``, too.

Of any other kind, its WorkloadKind says how many ordinals there are. Only LeaderWorkerSet is known
here besides: by a short word, the names of its pods, and what makes them.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import StrEnum
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from claimctl.wire.workloads import Job, StatefulSet, Workload

STATEFUL_SET = ("apps", "StatefulSet")
LEADER_WORKER_SET = ("leaderworkerset.x-k8s.io", "LeaderWorkerSet")
_ORDINAL_WORDS = {STATEFUL_SET: "sts", ("batch", "Job"): "job", LEADER_WORKER_SET: "lws"}
"""By API group and kind: the word in the names of claims; see ``ordinal_word``."""
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
    """Whether the workload wants a pod of the ordinal, now or later; YES for one of another kind
    than StatefulSet and Job."""
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
