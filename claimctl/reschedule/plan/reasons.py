"""Why a pod that was considered is not moved. Each such pod has exactly one reason."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Reason(StrEnum):
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
    """An annotation of Karpenter or of cluster-autoscaler asks to leave the pod alone."""
    PREFERS_NO_EVICTION = "PrefersNoEviction"
    NO_OTHER_NODE = "NoOtherNode"
    """nodeFit: no other node fits a replacement."""
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
    """An earlier strategy of this plan moves the pod."""
    # places
    NO_BETTER_NODE = "NoBetterNode"
    STAYS = "WouldReturn"
    """The scheduler is expected to put the replacement on the same node again."""
    FIT_UNKNOWN = "FitUnknown"
    """claimctl cannot judge where a replacement fits."""
    # claims and units
    PINNED = "PinnedByClaim"
    MAY_RETURN = "MayReturn"
    NO_PLACE_IN_CLAIM = "NoPlaceInClaim"
    NO_DEVICES = "NoFreeDevices"
    CLAIM_UNREACHABLE = "ClaimUnreachable"
    """A device or node of the claim is gone or tainted: the controller reallocates the claim."""
    DOWNGRADE = "DowngradeInProgress"
    NEVER_REALLOCATED = "NeverReallocated"
    """A hold on the claim has no reallocateTimeoutSeconds."""
    CONTROLLER_AWAY = "ControllerAway"
    """No controller would give the held claim up."""
    CONTROLLER_IS_NEW = "ControllerIsNew"
    """The controller started recently, so that it waits before it gives the held claim up."""
    UNIT = "UnitNotMovable"
    """Another pod that must move together with this one cannot be moved."""
    # critical pods
    SCHEDULER_PREEMPTS = "SchedulerPreempts"
    DOES_NOT_FIT_EVEN_EMPTY = "DoesNotFitEvenEmpty"
    VICTIMS_STAY = "VictimsStay"
    """It would fit if pods of lower priority left that may not be evicted now."""
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
    """A node refused the pod for the first time, or the pod waits for a later look."""
    REFUSED_FOR_ITSELF = "RefusedForItself"
    """Every node would refuse the pod: the fault is in its template."""
    STUCK_AGAIN = "StuckAgain"
    """A replacement is stuck on the same node; it is not evicted again."""
    BRAKED = "Braked"
    """New pods of the owner wait, because nodes refuse them."""
    # while a plan is executed
    CHANGED = "Changed"
    REFUSED = "RefusedByBudget"
    PARTLY_EVICTED = "PartlyEvicted"
    FAILED = "RequestFailed"
    DEADLINE = "DeadlineReached"
    REPLACEMENT_PENDING = "ReplacementPending"
    """An earlier move of the workload has not found a node, so no further one begins."""
    INTERRUPTED = "Interrupted"
    # what cannot be read
    UNREADABLE = "CannotBeRead"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a pod is not moved, and the names or numbers behind it."""

    reason: Reason
    detail: str = ""
