"""What is remembered of earlier runs, so that runs do not move the same pods for ever."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from claimctl.reschedule.shapes.records import RecordedAvoidance


class MoveOutcome(StrEnum):
    """What became of a move."""

    UNDER_WAY = "UnderWay"
    LANDED = "Landed"
    """The replacement runs on another node than the evicted pod."""
    BOUNCED = "Bounced"
    """The replacement runs on the node that the pod should leave."""
    PENDING = "Pending"
    """The replacement has no node."""
    GONE = "Gone"
    """The owner made no replacement."""


@dataclass(frozen=True, slots=True)
class PastMove:
    """``landed`` is the node of the replacement, '' if it has none."""

    strategy: str
    at: datetime
    source: str
    predicted: str
    landed: str = ""
    outcome: MoveOutcome = MoveOutcome.UNDER_WAY


@dataclass(frozen=True, slots=True)
class WorkloadMemory:
    """The last moves of one controller owner's pods, oldest first."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    revision: str = ""
    """The template at the time of the moves: the label controller-revision-hash of a
    StatefulSet's pods. A ReplicaSet has another UID for each template."""
    moves: tuple[PastMove, ...] = ()


@dataclass(frozen=True, slots=True)
class TaintEntry:
    """A taint that a run of claimctl wanted to set, and that is to be removed again."""

    node: str
    node_uid: str
    key: str
    value: str
    pod_namespace: str
    pod_name: str
    pod_uid: str
    """The critical pod that the taint is for, or one pod of the unit that leaves the node."""
    since: datetime
    deadline: datetime


@dataclass(frozen=True, slots=True)
class Attempts:
    """How often claimctl has made room for a critical pod in vain, and when it last gave up."""

    count: int = 0
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class Round:
    """One round of evictions for a resize, noted before the first of them.

    Attributes:
        generation: of the pod that is resized.
        victims: the UIDs of the pods to evict.
        free_cpu, free_memory: what the kubelet was expected to have left for the pod and all that
            wait, once the victims have gone; milli-CPU and bytes.
    """

    pod_uid: str
    generation: int
    since: datetime
    victims: tuple[str, ...] = ()
    free_cpu: int = 0
    free_memory: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    workloads: Mapping[str, WorkloadMemory] = field(default_factory=dict)
    """By the UID of the controller owner."""
    taints: tuple[TaintEntry, ...] = ()
    attempts: Mapping[str, Attempts] = field(default_factory=dict)
    """By the UID of the critical pod."""
    rounds: Mapping[str, Round] = field(default_factory=dict)
    """By the UID of the pod that is resized: the last round for it."""
    avoidances: tuple[RecordedAvoidance, ...] = ()
