"""The result of planning: what to do step by step, and why nothing is done for the other pods.

A plan is JSON as ``wire.base.encode`` writes it; ``wire.base.decode(data, Plan)`` reads it.
"""

from __future__ import annotations

import hashlib
from datetime import datetime

import msgspec
from msgspec.structs import replace

from claimctl.wire.base import encode
from claimctl_reschedule.plan.reasons import Ground
from claimctl_reschedule.shapes.records import RecordedAvoidance


class Piece(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A part of a plan, immutable; field names are camelCase in JSON."""


class PodRef(Piece, frozen=True, kw_only=True):
    namespace: str
    name: str
    uid: str
    node: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class Owner(Piece, frozen=True, kw_only=True):
    """The controller owner of a pod; ``workload`` is the UID of the Deployment above it, if any."""

    kind: str
    name: str
    uid: str
    workload: str = ""

    @property
    def workload_uid(self) -> str:
        """What ``maxUnavailablePerWorkload`` counts by."""
        return self.workload or self.uid


class Facts(Piece, frozen=True, kw_only=True):
    """For what a pod was chosen. If one of them has changed, the pod is left alone."""

    phase: str = ""
    ready: bool = False
    owner: str = ""
    """The UID of the controller owner."""
    priority: int = 0
    requests: tuple[tuple[str, str], ...] = ()
    """Resource names and whole numbers (milli-CPU for cpu), sorted by name."""
    claims: tuple[str, ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    """All labels: disruption budgets select by them."""
    annotations: tuple[tuple[str, str], ...] = ()
    """Those annotations that the evictor's rules read."""


class Move(Piece, frozen=True, kw_only=True):
    """The eviction of one pod.

    ``destination`` is the predicted node of the replacement, '' where no prediction is made (the
    victims of a critical pod). Moves with the same ``unit`` are made all or none; '' is a pod
    alone. If ``closes`` names a node, the plan's taint step for this node comes first.
    """

    strategy: str
    pod: PodRef
    profile: str = ""
    owner: Owner | None = None
    destination: str = ""
    unit: str = ""
    closes: str = ""
    facts: Facts = Facts()
    why: str = ""
    """What the move is good for, in one line."""
    cleans: bool = False
    """Whether the pod has ended: no replacement follows, and the move is not remembered."""
    paced: bool = False
    """Whether it may leave before or after the others of its unit, so that the most moves of a
    workload that are under way hold for it."""
    waits: bool = False
    """Whether ``destination`` is expected only once the moves before it have settled: their pods
    have ended, and their replacements are on nodes."""


class TaintStep(Piece, frozen=True, kw_only=True):
    """Taint a node before the evictions of ``unit``; the taint protocol removes it again.

    ``pod`` is the critical pod that gets the room, or None if the taint only keeps the unit's
    replacements away. Without a ``unit`` an empty node is kept empty, while others are emptied.
    """

    node: str
    node_uid: str
    key: str
    value: str
    unit: str
    effect: str = "NoSchedule"
    pod: PodRef | None = None
    timeout_seconds: float = 600.0


class ResizeStep(Piece, frozen=True, kw_only=True):
    """The resize for which the pods of ``unit`` are evicted. It is looked at before each of them,
    and its round is noted before the first. The rest is as in
    ``records.RecordedResize``."""

    pod: PodRef
    generation: int
    unit: str
    victims: tuple[str, ...] = ()
    free_cpu: int = 0
    free_memory: int = 0


class Reallocation(Piece, frozen=True, kw_only=True):
    """Ask the controller to give up a held claim, once the pods of ``unit`` are evicted.
    ``leader_since`` is when the controller became the leader that the plan counts on."""

    namespace: str
    reservation: str
    claim: str
    claim_uid: str
    unit: str = ""
    leader_since: datetime | None = None


class AvoidStep(Piece, frozen=True, kw_only=True):
    """Remember what is known of an owner's refused pods, and which nodes its new pods avoid. This
    comes before all evictions. ``taints`` are for clusters without the admission policy."""

    entry: RecordedAvoidance
    taints: tuple[TaintStep, ...] = ()
    why: str = ""
    """What is new for the owner's pods, in one line; '' if only the memory changes."""
    refused: int = 0
    """How many refused pods the record did not know yet."""


class Release(Piece, frozen=True, kw_only=True):
    """Remove the scheduling gate of the brake from a pod, after all records are written."""

    pod: PodRef
    why: str = ""


class Skipped(Piece, frozen=True, kw_only=True):
    """A pod that a strategy considered, and why it stays."""

    pod: PodRef
    strategy: str
    reason: Ground
    detail: str = ""
    profile: str = ""


class Note(Piece, frozen=True, kw_only=True):
    """What concerns no single pod, such as: no node is under-used."""

    strategy: str
    text: str
    profile: str = ""


class Plan(Piece, frozen=True, kw_only=True):
    """The steps of one run, in their order. ``digest`` covers everything but itself and
    ``made_at``: equal plans have equal digests."""

    made_at: datetime
    cluster_uid: str = ""
    moves: tuple[Move, ...] = ()
    taints: tuple[TaintStep, ...] = ()
    reallocations: tuple[Reallocation, ...] = ()
    resizes: tuple[ResizeStep, ...] = ()
    avoidances: tuple[AvoidStep, ...] = ()
    releases: tuple[Release, ...] = ()
    next_look: datetime | None = None
    """When another run is due, before its interval is over."""
    skipped: tuple[Skipped, ...] = ()
    notes: tuple[Note, ...] = ()
    digest: str = ""

    def sealed(self) -> Plan:
        """The plan with its digest."""
        return replace(self, digest=self.computed_digest())

    def computed_digest(self) -> str:
        """The digest that the content calls for; another ``digest`` means the plan was edited."""
        fixed = replace(self, digest="", made_at=datetime.fromtimestamp(0, self.made_at.tzinfo))
        return hashlib.sha256(encode(fixed)).hexdigest()[:16]
