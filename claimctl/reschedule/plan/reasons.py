"""Why a pod that was considered is not moved. Each such pod has exactly one reason."""

from __future__ import annotations

from collections.abc import Mapping
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


MEANINGS: Mapping[Reason, str] = {
    Reason.STATIC: "A kubelet made the pod from a file; no server can move it.",
    Reason.TERMINATING: "The pod is being deleted already.",
    Reason.NOT_SCHEDULED: "The pod has no node.",
    Reason.FINISHED: "The pod has finished and uses nothing any more.",
    Reason.UNKNOWN_SCHEDULER: "Another scheduler places the pod, which claimctl cannot predict.",
    Reason.CRITICAL: "The pod is critical for the cluster.",
    Reason.NO_OWNER: "No controller would make a replacement.",
    Reason.DAEMON_SET: "A DaemonSet wants the pod on this very node.",
    Reason.LOCAL_STORAGE: "The pod has local storage (hostPath or emptyDir) that it would lose.",
    Reason.PRIORITY: "The pod's priority reaches `priorityThreshold` of the policy.",
    Reason.VOLUME_CLAIM: "The pod has a PersistentVolumeClaim, and the policy protects those.",
    Reason.STORAGE_CLASS: "The policy protects the storage class of a volume of the pod.",
    Reason.RESOURCE_CLAIM: "The pod has a ResourceClaim, and the policy protects those.",
    Reason.NO_BUDGET: "No PodDisruptionBudget selects the pod, and the policy asks for one.",
    Reason.LABELS: "The policy's `labelSelector` does not select the pod.",
    Reason.NAMESPACE_LABELS: "The policy's `namespaceLabelSelector` does not select the namespace.",
    Reason.NAMESPACE: "The policy leaves the namespace out.",
    Reason.NODE_NOT_SELECTED: "The policy's `nodeSelector` does not select the pod's node.",
    Reason.MIN_REPLICAS: "The owner has fewer pods than `minReplicas` of the policy.",
    Reason.MIN_AGE: "The pod is younger than `minPodAge` of the policy.",
    Reason.DO_NOT_DISRUPT: "An annotation of Karpenter or of cluster-autoscaler forbids it.",
    Reason.PREFERS_NO_EVICTION: "The pod asks not to be evicted, and the policy obeys.",
    Reason.NO_OTHER_NODE: "No other node fits a replacement.",
    Reason.BUDGET_SPENT: "A PodDisruptionBudget allows no further eviction now.",
    Reason.TWO_BUDGETS: "Several PodDisruptionBudgets select the pod; the server refuses that.",
    Reason.BUDGET_NOT_OBSERVED: "The PodDisruptionBudget has changed, and its status is old.",
    Reason.LIMIT_PER_NODE: "The run has reached `maxNoOfPodsToEvictPerNode`.",
    Reason.LIMIT_PER_NAMESPACE: "The run has reached `maxNoOfPodsToEvictPerNamespace`.",
    Reason.LIMIT_TOTAL: "The run has reached `maxNoOfPodsToEvictTotal`.",
    Reason.LIMIT_OF_STRATEGY: "The run has reached `evictionLimits.node` of the strategy.",
    Reason.COOLDOWN: "The owner's pods were moved a short time ago.",
    Reason.BOUNCES: "Replacements of this owner came back three times; the template must change.",
    Reason.PING_PONG: "The move would undo one of the last 24 hours.",
    Reason.ALREADY_MOVED: "An earlier strategy of the same plan moves the pod.",
    Reason.NO_BETTER_NODE: "On no other node would the pod be better placed.",
    Reason.STAYS: "The scheduler would put the replacement on the same node again.",
    Reason.FIT_UNKNOWN: "claimctl cannot judge where a replacement fits.",
    Reason.PINNED: "A claim stays allocated on this node, so a replacement can run only here.",
    Reason.MAY_RETURN: "Nothing keeps the replacement from the devices of this node.",
    Reason.NO_PLACE_IN_CLAIM: "The list of a claim has no place left for a replacement.",
    Reason.NO_DEVICES: "No other node has free devices for the pod's claims.",
    Reason.CLAIM_UNREACHABLE: "The devices are gone or tainted: the controller reallocates them.",
    Reason.DOWNGRADE: "A DowngradePlan is under way, so held claims stay as they are.",
    Reason.NEVER_REALLOCATED: "A hold on the claim says that it is never reallocated.",
    Reason.CONTROLLER_AWAY: "No controller acts that would give the held claim up.",
    Reason.CONTROLLER_IS_NEW: "The controller leads since a moment: until the claim's "
    "`forceDeletedPodGraceSeconds` have passed, it gives no claim up.",
    Reason.UNIT: "Another pod that must move together with this one cannot be moved.",
    Reason.SCHEDULER_PREEMPTS: "The scheduler itself makes room for the pod.",
    Reason.DOES_NOT_FIT_EVEN_EMPTY: "No node fits the pod, even without pods of lower priority.",
    Reason.VICTIMS_STAY: "It would fit without pods of lower priority that may not be evicted now.",
    Reason.ROOM_FOR_ANOTHER: "Room is being made on its node for another critical pod; it is next.",
    Reason.TOLERATION_MISSING: "The pod does not tolerate `CriticalAddonsOnly`, the taint that "
    "would keep its place free.",
    Reason.ATTEMPTS_SPENT: "claimctl has made room for the pod in vain as often as it may.",
    Reason.BACKING_OFF: "claimctl has made room for the pod in vain, and waits before it tries "
    "again.",
    Reason.RESIZE_YOUNG: "Its resize was deferred less than `deferredSeconds` ago.",
    Reason.RESIZE_NOT_OBSERVED: "The kubelet has not looked at the latest size of the pod yet.",
    Reason.ROOM_IS_COMING: "Its resize fits now, or as soon as pods that are being deleted "
    "have gone.",
    Reason.NEVER_PREEMPTS: "The pod's `preemptionPolicy` is Never, so no pod makes room for it.",
    Reason.KUBELET_PREEMPTS: "The pod is critical, so that its kubelet itself evicts pods for it.",
    Reason.NODE_FORBIDS: "The node's `podPreemptionPolicy` forbids evictions for resizes.",
    Reason.NODE_NOT_READY: "The node is not ready, so no kubelet would grant the resize.",
    Reason.LEFT_TO_SCHEDULER: "The policy says `standBack: Always`.",
    Reason.GATE_UNKNOWN: "claimctl cannot find out whether the scheduler makes room for resizes.",
    Reason.NOT_ENOUGH: "Too few pods of lower priority on its node may be evicted.",
    Reason.ROOM_ALREADY_MADE: "claimctl has made room for this size once, and its node has no "
    "more room than was expected then.",
    Reason.REFUSED_BY_NODE: "A node refused the pod, and no other node takes its replacement, or "
    "one refusal is not enough to act.",
    Reason.REFUSED_FOR_ITSELF: "Each node would refuse the pod, because of its own template.",
    Reason.STUCK_AGAIN: "A replacement is stuck on the same node; it is not evicted again.",
    Reason.BRAKED: "Nodes refuse the pods of this owner, so its new pods wait.",
    Reason.CHANGED: "The pod, or its node, has changed since the plan was made.",
    Reason.REFUSED: "The server refused the eviction until the run's deadline.",
    Reason.PARTLY_EVICTED: "A unit could not be evicted as a whole, so the run ended.",
    Reason.FAILED: "A request failed.",
    Reason.DEADLINE: "The run ended before it came to this pod.",
    Reason.REPLACEMENT_PENDING: "An earlier replacement of the same workload has no node.",
    Reason.INTERRUPTED: "The run was interrupted.",
    Reason.UNREADABLE: "An object that concerns the pod cannot be read.",
}
"""Each reason in one sentence."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a pod is not moved, and the names or numbers behind it."""

    reason: Reason
    detail: str = ""
