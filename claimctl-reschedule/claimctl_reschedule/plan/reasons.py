"""Why a pod that was considered is not moved. Each such pod has exactly one reason."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files


class Ground(StrEnum):
    """The reason for which a pod stays; ``Reason`` is about claims."""

    # the evictor's rules: these pods are never moved, or only with a switch of the policy
    STATIC = "StaticPod"
    TERMINATING = "Terminating"
    NOT_SCHEDULED = "NotScheduled"
    FINISHED = "Finished"
    UNKNOWN_SCHEDULER = "UnknownScheduler"
    CRITICAL = "CriticalPod"
    NO_OWNER = "NoOwnerThatReplacesIt"
    DAEMON_SET = "DaemonSetPod"
    LOCAL_STORAGE = "LocalStorage"
    PRIORITY = "PriorityThreshold"
    VOLUME_CLAIM = "VolumeClaim"
    STORAGE_CLASS = "ProtectedStorageClass"
    RESOURCE_CLAIM = "ResourceClaim"
    NO_BUDGET = "NoDisruptionBudget"
    LABELS = "LabelSelector"
    NAMESPACE_LABELS = "NamespaceLabelSelector"
    NAMESPACE = "NamespaceExcluded"
    NODE_NOT_SELECTED = "NodeNotSelected"
    MIN_REPLICAS = "MinReplicas"
    MIN_AGE = "MinPodAge"
    DO_NOT_DISRUPT = "DoNotDisrupt"
    PREFERS_NO_EVICTION = "PrefersNoEviction"
    NO_OTHER_NODE = "NoOtherNode"
    # PodDisruptionBudgets
    BUDGET_SPENT = "DisruptionBudget"
    TWO_BUDGETS = "SeveralDisruptionBudgets"
    BUDGET_NOT_OBSERVED = "DisruptionBudgetNotObserved"
    # limits and memory
    LIMIT_PER_NODE = "LimitPerNode"
    LIMIT_PER_NAMESPACE = "LimitPerNamespace"
    LIMIT_TOTAL = "LimitTotal"
    LIMIT_OF_STRATEGY = "LimitPerNodeOfStrategy"
    COOLDOWN = "Cooldown"
    BOUNCES = "BouncedTooOften"
    PING_PONG = "WouldPingPong"
    ALREADY_MOVED = "AlreadyMoved"
    # places
    NO_BETTER_NODE = "NoBetterNode"
    STAYS = "WouldReturn"
    FIT_UNKNOWN = "FitUnknown"
    # claims and units
    PINNED = "PinnedByClaim"
    MAY_RETURN = "MayReturn"
    NO_PLACE_IN_CLAIM = "NoPlaceInClaim"
    NO_DEVICES = "NoFreeDevices"
    CLAIM_UNREACHABLE = "ClaimUnreachable"
    DOWNGRADE = "DowngradeInProgress"
    NEVER_REALLOCATED = "NeverReallocated"
    CONTROLLER_AWAY = "ControllerAway"
    CONTROLLER_IS_NEW = "ControllerIsNew"
    UNIT = "UnitNotMovable"
    # critical pods
    SCHEDULER_PREEMPTS = "SchedulerPreempts"
    DOES_NOT_FIT_EVEN_EMPTY = "DoesNotFitEvenEmpty"
    VICTIMS_STAY = "VictimsStay"
    ROOM_FOR_ANOTHER = "RoomForAnother"
    TOLERATION_MISSING = "TolerationMissing"
    ATTEMPTS_SPENT = "AttemptsSpent"
    BACKING_OFF = "BackingOff"
    # resizes that wait
    RESIZE_YOUNG = "DeferredRecently"
    RESIZE_NOT_OBSERVED = "ResizeNotObserved"
    ROOM_IS_COMING = "RoomIsComing"
    NEVER_PREEMPTS = "NeverPreempts"
    KUBELET_PREEMPTS = "KubeletPreempts"
    NODE_FORBIDS = "NodeForbidsPreemption"
    NODE_NOT_READY = "NodeNotReady"
    LEFT_TO_SCHEDULER = "LeftToScheduler"
    GATE_UNKNOWN = "GateUnknown"
    NOT_ENOUGH = "NotEnoughLowerPriority"
    ROOM_ALREADY_MADE = "RoomAlreadyMade"
    # pods that their node cannot run
    REFUSED_BY_NODE = "RefusedByNode"
    REFUSED_FOR_ITSELF = "RefusedForItself"
    STUCK_AGAIN = "StuckAgain"
    BRAKED = "Braked"
    # while a plan is executed
    CHANGED = "Changed"
    REFUSED = "RefusedByBudget"
    PARTLY_EVICTED = "PartlyEvicted"
    FAILED = "RequestFailed"
    DEADLINE = "DeadlineReached"
    REPLACEMENT_PENDING = "ReplacementPending"
    INTERRUPTED = "Interrupted"
    # what cannot be read
    UNREADABLE = "CannotBeRead"


MEANINGS: Mapping[Ground, str] = {
    Ground(name): text
    for name, text in tomllib.loads(
        files(__package__).joinpath("reasons.toml").read_text(encoding="utf-8")
    ).items()
}
"""Each reason in one sentence."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a pod is not moved, and the names or numbers behind it."""

    reason: Ground
    detail: str = ""
