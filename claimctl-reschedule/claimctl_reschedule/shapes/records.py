"""claimctl.io/v1alpha1 RescheduleRecord: what ``claimctl reschedule`` remembers from run to run.

Its CRD is made from these structs.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from claimctl.wire.base import Wire
from claimctl.wire.limits import Count, ObjectName, Time, Uid, Word, limit, map_list
from claimctl.wire.meta import ObjectMeta
from claimctl.wire.resources import kind_of

MAX_WORKLOADS = 500
MAX_MOVES = 16
MAX_TAINTS = 500
MAX_ATTEMPTS = 500
MAX_RESIZES = 500
MAX_VICTIMS = 128
MAX_AVOIDANCES = 100
MAX_REFUSALS = 16
MAX_AVOIDED = 16
"""What the CRD allows of each. The oldest are forgotten first."""


def atomic_list(most: int) -> Meta:
    """A list that has one writer, who replaces it as a whole."""
    return limit(maxItems=most, **{"x-kubernetes-list-type": "atomic"})


class RecordedMove(Wire, frozen=True, kw_only=True):
    """One eviction, and what became of it."""

    strategy: Word = ""
    """The strategy that chose the pod."""
    at: Time | None = None
    """When the pod was evicted."""
    source: ObjectName = ""
    """The node that the pod was to leave."""
    predicted: ObjectName = ""
    """The node where the replacement was expected."""
    landed: ObjectName = ""
    """The node of the replacement; empty if it has none."""
    outcome: Word = ""
    """UnderWay, Landed, Bounced (the replacement is on the source), Pending or Gone."""


class RecordedWorkload(Wire, frozen=True, kw_only=True):
    """The last moves of the pods of one controller owner, oldest first."""

    uid: Uid
    """The owner's UID."""
    kind: Word = ""
    """The owner's kind."""
    namespace: Word = ""
    """The owner's namespace."""
    name: ObjectName = ""
    """The owner's name."""
    revision: Word = ""
    """The revision of the pod template at the time of the moves."""
    moves: Annotated[tuple[RecordedMove, ...], atomic_list(MAX_MOVES)] = ()
    """The moves, oldest first."""


class RecordedTaint(Wire, frozen=True, kw_only=True):
    """A taint that claimctl sets and removes again. It is recorded before it is set."""

    node: ObjectName
    """The node."""
    node_uid: Uid = field(name="nodeUID", default="")
    """The node's UID."""
    key: Annotated[str, limit(maxLength=316)]
    """The key of the taint."""
    value: Word = ""
    """The value of the taint, by which claimctl knows its own."""
    pod_namespace: Word = ""
    """The namespace of the pod."""
    pod_name: ObjectName = ""
    """The pod that gets the room, or one of the pods that leave the node."""
    pod_uid: Uid = field(name="podUID", default="")
    """The pod's UID."""
    victims: Annotated[tuple[Uid, ...], atomic_list(MAX_VICTIMS)] = ()
    """The UIDs of the pods that are to leave the node."""
    since: Time | None = None
    """When the taint was recorded."""
    renewed: Time | None = None
    """When the process that set the taint last said that it needs it."""
    deadline: Time | None = None
    """When claimctl removes the taint at the latest."""


class RecordedAttempts(Wire, frozen=True, kw_only=True):
    """How often claimctl made room for a critical pod in vain."""

    pod_uid: Uid = field(name="podUID")
    """The UID of the critical pod."""
    count: Count = 0
    """The number of attempts."""
    last: Time | None = None
    """When the last attempt was given up."""


class RecordedResize(Wire, frozen=True, kw_only=True):
    """A round of evictions for a resize. It is recorded before its first eviction."""

    pod_uid: Uid = field(name="podUID")
    """The UID of the pod that is resized."""
    namespace: Word = ""
    """The namespace of the pod."""
    name: ObjectName = ""
    """The pod that is resized."""
    generation: Count = 0
    """The pod's generation, which says which size is meant."""
    since: Time | None = None
    """When the round began."""
    victims: Annotated[tuple[Uid, ...], atomic_list(MAX_VICTIMS)] = ()
    """The UIDs of the pods to evict."""
    free_cpu: Count = field(name="freeCPU", default=0)
    """Thousandths of a cpu that nobody was expected to have once the victims are gone."""
    free_memory: Count = 0
    """Bytes of memory that nobody was expected to have once the victims are gone."""


class RecordedRefusal(Wire, frozen=True, kw_only=True):
    """A pod that its node refused."""

    pod_uid: Uid = field(name="podUID")
    """The UID of the pod."""
    node: ObjectName = ""
    """The node that refused it."""
    at: Time | None = None
    """When the pod was created."""


class RecordedAvoidedNode(Wire, frozen=True, kw_only=True):
    """A node that the pods of one owner avoid, or have avoided."""

    node: ObjectName
    """The node."""
    seen: Word = ""
    """A digest of what the node was like. A node that has changed is tried again."""
    times: Count = 0
    """How often it was avoided in a row. Each time is twice as long as the one before."""
    since: Time | None = None
    """Since when pods avoid it."""
    until: Time | None = None
    """Until when."""


class RecordedBrake(Wire, frozen=True, kw_only=True):
    """Why new pods of an owner wait: nodes refused too many of them."""

    since: Time | None = None
    """Since when they wait."""
    probes: Count = 0
    """How many pods were let through to see whether a node takes them again."""
    next_probe: Time | None = None
    """When the next pod is let through."""


class RecordedAvoidance(Wire, frozen=True, kw_only=True):
    """What is done about the pods of one owner that nodes refuse.

    The admission policy claimctl-avoidance reads ``nodes`` and ``braked`` when a pod is created.
    """

    owner_uid: Uid = field(name="ownerUID")
    """The owner's UID."""
    kind: Word = ""
    """The owner's kind."""
    namespace: Word = ""
    """The owner's namespace."""
    name: ObjectName = ""
    """The owner's name."""
    nodes: Annotated[tuple[ObjectName, ...], atomic_list(MAX_AVOIDED)] = ()
    """The nodes that new pods of the owner avoid now."""
    braked: bool = False
    """Whether new pods of the owner get the scheduling gate claimctl.io/brake."""
    refusals: Annotated[tuple[RecordedRefusal, ...], atomic_list(MAX_REFUSALS)] = ()
    """The last pods that were refused, oldest first."""
    avoided: Annotated[tuple[RecordedAvoidedNode, ...], atomic_list(MAX_AVOIDED)] = ()
    """The nodes that are avoided, or were."""
    brake: RecordedBrake | None = None
    """Set while the owner is braked."""


class RecordedRun(Wire, frozen=True, kw_only=True):
    """The last run that acted."""

    ended: Time | None = None
    """When it ended."""
    digest: Word = ""
    """The digest of its plan."""
    planned: Count = 0
    """How many evictions it planned."""
    evicted: Count = 0
    """How many pods it evicted."""


class RescheduleRecordStatus(Wire, frozen=True, kw_only=True):
    """What is remembered."""

    workloads: Annotated[tuple[RecordedWorkload, ...], map_list("uid", most=MAX_WORKLOADS)] = ()
    """The workloads with moves; beyond 500, those with the oldest moves are forgotten."""
    taints: Annotated[tuple[RecordedTaint, ...], map_list("node", "key", most=MAX_TAINTS)] = ()
    """The taints that claimctl has set, or is about to set."""
    attempts: Annotated[tuple[RecordedAttempts, ...], map_list("podUID", most=MAX_ATTEMPTS)] = ()
    """The critical pods that claimctl could not help yet."""
    resizes: Annotated[tuple[RecordedResize, ...], map_list("podUID", most=MAX_RESIZES)] = ()
    """The resizes for which claimctl has made room, as long as they wait."""
    avoidances: Annotated[
        tuple[RecordedAvoidance, ...], map_list("ownerUID", most=MAX_AVOIDANCES)
    ] = ()
    """The owners whose pods avoid nodes; beyond 100, the oldest are forgotten."""
    last_run: RecordedRun | None = None
    """The last run that acted."""


class RescheduleRecord(Wire, frozen=True, kw_only=True):
    """RescheduleRecord is the memory of 'claimctl reschedule': the moves that it made, so that it
    does not move the same pods for ever, and the taints that it has to remove."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()
    status: RescheduleRecordStatus = RescheduleRecordStatus()


RESCHEDULERECORDS = kind_of("claimctl.io/v1alpha1", RescheduleRecord, namespaced=False)


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


class Record(Struct, frozen=True, kw_only=True):
    """The status of a RescheduleRecord by UIDs: of controller owners, of critical pods, and of pods
    that are resized. Each entry has its times."""

    workloads: Mapping[str, RecordedWorkload] = {}
    taints: tuple[RecordedTaint, ...] = ()
    attempts: Mapping[str, RecordedAttempts] = {}
    rounds: Mapping[str, RecordedResize] = {}
    avoidances: tuple[RecordedAvoidance, ...] = ()


def record_of(status: RescheduleRecordStatus) -> Record:
    """The record as planning reads it, without what another version wrote."""
    return Record(
        workloads={workload.uid: _readable(workload) for workload in status.workloads},
        taints=tuple(taint for taint in status.taints if taint.since and taint.deadline),
        attempts={attempt.pod_uid: attempt for attempt in status.attempts},
        rounds={resize.pod_uid: resize for resize in status.resizes if resize.since},
        avoidances=status.avoidances,
    )


def _readable(workload: RecordedWorkload) -> RecordedWorkload:
    known = list(MoveOutcome)
    moves = tuple(move for move in workload.moves if move.at and move.outcome in known)
    return replace(workload, moves=moves)
