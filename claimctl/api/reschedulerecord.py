"""RescheduleRecord: what ``claimctl reschedule`` remembers from run to run."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from claimctl.api.common import (
    Count,
    Model,
    ObjectName,
    SubdomainName,
    Uid,
    Word,
    atomic_list,
    map_list,
)

MAX_WORKLOADS = 500
MAX_MOVES = 16
MAX_TAINTS = 500
MAX_ATTEMPTS = 500
MAX_RESIZES = 500
MAX_VICTIMS = 128
MAX_SKIPPED = 32
MAX_AVOIDANCES = 100
MAX_REFUSALS = 16
MAX_AVOIDED = 16


class RecordedMove(Model):
    """One eviction, and what became of it."""

    strategy: Word = ""
    """The strategy that chose the pod."""
    at: datetime | None = None
    """When the pod was evicted."""
    source: ObjectName = ""
    """The node that the pod was to leave."""
    predicted: ObjectName = ""
    """The node where the replacement was expected."""
    landed: ObjectName = ""
    """The node of the replacement; empty if it has none."""
    outcome: Word = ""
    """UnderWay, Landed, Bounced (the replacement is on the source), Pending or Gone."""


class RecordedWorkload(Model):
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
    moves: Annotated[
        tuple[RecordedMove, ...], Field(max_length=MAX_MOVES, json_schema_extra=atomic_list())
    ] = ()
    """The moves, oldest first."""


class RecordedTaint(Model):
    """A taint that claimctl sets and removes again. It is recorded before it is set."""

    node: ObjectName
    """The node."""
    node_uid: Annotated[Uid, Field(alias="nodeUID")] = ""
    """The node's UID."""
    key: Annotated[str, Field(max_length=316)]
    """The key of the taint."""
    value: Word = ""
    """The value of the taint, by which claimctl knows its own."""
    pod_namespace: Word = ""
    """The namespace of the pod."""
    pod_name: ObjectName = ""
    """The pod that gets the room, or one of the pods that leave the node."""
    pod_uid: Annotated[Uid, Field(alias="podUID")] = ""
    """The pod's UID."""
    since: datetime | None = None
    """When the taint was recorded."""
    deadline: datetime | None = None
    """When claimctl removes the taint at the latest."""


class RecordedAttempts(Model):
    """How often claimctl made room for a critical pod in vain."""

    pod_uid: Annotated[Uid, Field(alias="podUID")]
    """The UID of the critical pod."""
    count: Count = 0
    """The number of attempts."""
    last: datetime | None = None
    """When the last attempt was given up."""


class RecordedResize(Model):
    """A round of evictions for a resize. It is recorded before its first eviction."""

    pod_uid: Annotated[Uid, Field(alias="podUID")]
    """The UID of the pod that is resized."""
    namespace: Word = ""
    """The namespace of the pod."""
    name: ObjectName = ""
    """The pod that is resized."""
    generation: Count = 0
    """The pod's generation, which says which size is meant."""
    since: datetime | None = None
    """When the round began."""
    victims: Annotated[
        tuple[Uid, ...], Field(max_length=MAX_VICTIMS, json_schema_extra=atomic_list())
    ] = ()
    """The UIDs of the pods to evict."""
    free_cpu: Annotated[Count, Field(alias="freeCPU")] = 0
    """Thousandths of a cpu that nobody was expected to have once the victims are gone."""
    free_memory: Count = 0
    """Bytes of memory that nobody was expected to have once the victims are gone."""


class RecordedRefusal(Model):
    """A pod that its node refused."""

    pod_uid: Annotated[Uid, Field(alias="podUID")]
    """The UID of the pod."""
    node: ObjectName = ""
    """The node that refused it."""
    at: datetime | None = None
    """When the pod was created."""


class RecordedAvoidedNode(Model):
    """A node that the pods of one owner avoid, or have avoided."""

    node: ObjectName
    """The node."""
    seen: Word = ""
    """A digest of what the node was like. A node that has changed is tried again."""
    times: Count = 0
    """How often it was avoided in a row. Each time is twice as long as the one before."""
    since: datetime | None = None
    """Since when pods avoid it."""
    until: datetime | None = None
    """Until when."""


class RecordedBrake(Model):
    """Why new pods of an owner wait: nodes refused too many of them."""

    since: datetime | None = None
    """Since when they wait."""
    probes: Count = 0
    """How many pods were let through to see whether a node takes them again."""
    next_probe: datetime | None = None
    """When the next pod is let through."""


class RecordedAvoidance(Model):
    """What is done about the pods of one owner that nodes refuse.

    The admission policy claimctl-avoidance reads ``nodes`` and ``braked`` when a pod is created.
    """

    owner_uid: Annotated[Uid, Field(alias="ownerUID")]
    """The owner's UID."""
    kind: Word = ""
    """The owner's kind."""
    namespace: Word = ""
    """The owner's namespace."""
    name: ObjectName = ""
    """The owner's name."""
    nodes: Annotated[
        tuple[ObjectName, ...], Field(max_length=MAX_AVOIDED, json_schema_extra=atomic_list())
    ] = ()
    """The nodes that new pods of the owner avoid now."""
    braked: bool = False
    """Whether new pods of the owner get the scheduling gate claimctl.io/brake."""
    refusals: Annotated[
        tuple[RecordedRefusal, ...],
        Field(max_length=MAX_REFUSALS, json_schema_extra=atomic_list()),
    ] = ()
    """The last pods that were refused, oldest first."""
    avoided: Annotated[
        tuple[RecordedAvoidedNode, ...],
        Field(max_length=MAX_AVOIDED, json_schema_extra=atomic_list()),
    ] = ()
    """The nodes that are avoided, or were."""
    brake: RecordedBrake | None = None
    """Set while the owner is braked."""


class RecordedRun(Model):
    """The last run that acted."""

    ended: datetime | None = None
    """When it ended."""
    digest: Word = ""
    """The digest of its plan."""
    planned: Count = 0
    """How many evictions it planned."""
    evicted: Count = 0
    """How many pods it evicted."""
    skipped: Annotated[
        tuple[Annotated[str, Field(max_length=512)], ...],
        Field(max_length=MAX_SKIPPED, json_schema_extra=atomic_list()),
    ] = ()
    """The unsupported parts of the policy, which ``--skip-unsupported`` leaves out."""


class RescheduleRecordStatus(Model):
    """What is remembered."""

    workloads: Annotated[
        tuple[RecordedWorkload, ...],
        Field(max_length=MAX_WORKLOADS, json_schema_extra=map_list("uid")),
    ] = ()
    """The workloads with moves; beyond 500, those with the oldest moves are forgotten."""
    taints: Annotated[
        tuple[RecordedTaint, ...],
        Field(max_length=MAX_TAINTS, json_schema_extra=map_list("node", "key")),
    ] = ()
    """The taints that claimctl has set, or is about to set."""
    attempts: Annotated[
        tuple[RecordedAttempts, ...],
        Field(max_length=MAX_ATTEMPTS, json_schema_extra=map_list("podUID")),
    ] = ()
    """The critical pods that claimctl could not help yet."""
    resizes: Annotated[
        tuple[RecordedResize, ...],
        Field(max_length=MAX_RESIZES, json_schema_extra=map_list("podUID")),
    ] = ()
    """The resizes for which claimctl has made room, as long as they wait."""
    avoidances: Annotated[
        tuple[RecordedAvoidance, ...],
        Field(max_length=MAX_AVOIDANCES, json_schema_extra=map_list("ownerUID")),
    ] = ()
    """The owners whose pods avoid nodes; beyond 100, the oldest are forgotten."""
    last_run: RecordedRun | None = None
    """The last run that acted."""


class RecordMeta(Model):
    """Standard metadata; the API server knows its schema."""

    model_config = ConfigDict(extra="allow")

    name: SubdomainName


class RescheduleRecord(Model):
    """RescheduleRecord is the memory of 'claimctl reschedule': the moves that it made, so that it
    does not move the same pods for ever, and the taints that it has to remove."""

    api_version: Literal["claimctl.io/v1alpha1"] = "claimctl.io/v1alpha1"
    kind: Literal["RescheduleRecord"] = "RescheduleRecord"
    metadata: RecordMeta
    status: RescheduleRecordStatus | None = None
