"""Why a pod that was considered is not moved. Each such pod has exactly one reason."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


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
    Ground.STATIC: "A kubelet made the pod from a file; no server can move it.",
    Ground.TERMINATING: "The pod is being deleted already.",
    Ground.NOT_SCHEDULED: "The pod has no node.",
    Ground.FINISHED: "The pod has finished and uses nothing any more.",
    Ground.UNKNOWN_SCHEDULER: "Another scheduler places the pod, which claimctl cannot predict.",
    Ground.CRITICAL: "The pod is critical for the cluster.",
    Ground.NO_OWNER: "No controller would make a replacement.",
    Ground.DAEMON_SET: "A DaemonSet wants the pod on this very node.",
    Ground.LOCAL_STORAGE: "The pod has local storage (hostPath or emptyDir) that it would lose.",
    Ground.PRIORITY: "The pod's priority reaches `priorityThreshold` of the policy.",
    Ground.VOLUME_CLAIM: "The pod has a PersistentVolumeClaim, and the policy protects those.",
    Ground.STORAGE_CLASS: "The policy protects the storage class of a volume of the pod.",
    Ground.RESOURCE_CLAIM: "The pod has a ResourceClaim, and the policy protects those.",
    Ground.NO_BUDGET: "No PodDisruptionBudget selects the pod, and the policy asks for one.",
    Ground.LABELS: "The policy's `labelSelector` does not select the pod.",
    Ground.NAMESPACE_LABELS: "The policy's `namespaceLabelSelector` does not select the namespace.",
    Ground.NAMESPACE: "The policy leaves the namespace out.",
    Ground.NODE_NOT_SELECTED: "The policy's `nodeSelector` does not select the pod's node.",
    Ground.MIN_REPLICAS: "The owner has fewer pods than `minReplicas` of the policy.",
    Ground.MIN_AGE: "The pod is younger than `minPodAge` of the policy.",
    Ground.DO_NOT_DISRUPT: "An annotation of Karpenter or of cluster-autoscaler forbids it.",
    Ground.PREFERS_NO_EVICTION: "The pod asks not to be evicted, and the policy obeys.",
    Ground.NO_OTHER_NODE: "No other node fits a replacement.",
    Ground.BUDGET_SPENT: "A PodDisruptionBudget allows no further eviction now.",
    Ground.TWO_BUDGETS: "Several PodDisruptionBudgets select the pod; the server refuses that.",
    Ground.BUDGET_NOT_OBSERVED: "The PodDisruptionBudget has changed, and its status is old.",
    Ground.LIMIT_PER_NODE: "The run has reached `maxNoOfPodsToEvictPerNode`.",
    Ground.LIMIT_PER_NAMESPACE: "The run has reached `maxNoOfPodsToEvictPerNamespace`.",
    Ground.LIMIT_TOTAL: "The run has reached `maxNoOfPodsToEvictTotal`.",
    Ground.LIMIT_OF_STRATEGY: "The run has reached `evictionLimits.node` of the strategy.",
    Ground.COOLDOWN: "The owner's pods were moved a short time ago.",
    Ground.BOUNCES: "Replacements of this owner came back three times; the template must change.",
    Ground.PING_PONG: "The move would undo one of the last 24 hours.",
    Ground.ALREADY_MOVED: "An earlier strategy of the same plan moves the pod.",
    Ground.NO_BETTER_NODE: "On no other node would the pod be better placed.",
    Ground.STAYS: "The scheduler would put the replacement on the same node again.",
    Ground.FIT_UNKNOWN: "claimctl cannot judge where a replacement fits.",
    Ground.PINNED: "A claim stays allocated on this node, so a replacement can run only here.",
    Ground.MAY_RETURN: "Nothing keeps the replacement from the devices of this node.",
    Ground.NO_PLACE_IN_CLAIM: "The list of a claim has no place left for a replacement.",
    Ground.NO_DEVICES: "No other node has free devices for the pod's claims.",
    Ground.CLAIM_UNREACHABLE: "The devices are gone or tainted: the controller reallocates them.",
    Ground.DOWNGRADE: "A DowngradePlan is under way, so held claims stay as they are.",
    Ground.NEVER_REALLOCATED: "A hold on the claim says that it is never reallocated.",
    Ground.CONTROLLER_AWAY: "No controller acts that would give the held claim up.",
    Ground.CONTROLLER_IS_NEW: "The controller leads since a moment: until the claim's "
    "`forceDeletedPodGraceSeconds` have passed, it gives no claim up.",
    Ground.UNIT: "Another pod that must move together with this one cannot be moved.",
    Ground.SCHEDULER_PREEMPTS: "The scheduler itself makes room for the pod.",
    Ground.DOES_NOT_FIT_EVEN_EMPTY: "No node fits the pod, even without pods of lower priority.",
    Ground.VICTIMS_STAY: "It would fit without pods of lower priority that may not be evicted now.",
    Ground.ROOM_FOR_ANOTHER: "Room is being made on its node for another critical pod; it is next.",
    Ground.TOLERATION_MISSING: "The pod does not tolerate `CriticalAddonsOnly`, the taint that "
    "would keep its place free.",
    Ground.ATTEMPTS_SPENT: "claimctl has made room for the pod in vain as often as it may.",
    Ground.BACKING_OFF: "claimctl has made room for the pod in vain, and waits before it tries "
    "again.",
    Ground.RESIZE_YOUNG: "Its resize was deferred less than `deferredSeconds` ago.",
    Ground.RESIZE_NOT_OBSERVED: "The kubelet has not looked at the latest size of the pod yet.",
    Ground.ROOM_IS_COMING: "Its resize fits now, or as soon as pods that are being deleted "
    "have gone.",
    Ground.NEVER_PREEMPTS: "The pod's `preemptionPolicy` is Never, so no pod makes room for it.",
    Ground.KUBELET_PREEMPTS: "The pod is critical, so that its kubelet itself evicts pods for it.",
    Ground.NODE_FORBIDS: "The node's `podPreemptionPolicy` forbids evictions for resizes.",
    Ground.NODE_NOT_READY: "The node is not ready, so no kubelet would grant the resize.",
    Ground.LEFT_TO_SCHEDULER: "The policy says `standBack: Always`.",
    Ground.GATE_UNKNOWN: "claimctl cannot find out whether the scheduler makes room for resizes.",
    Ground.NOT_ENOUGH: "Too few pods of lower priority on its node may be evicted.",
    Ground.ROOM_ALREADY_MADE: "claimctl has made room for this size once, and its node has no "
    "more room than was expected then.",
    Ground.REFUSED_BY_NODE: "A node refused the pod, and no other node takes its replacement, or "
    "one refusal is not enough to act.",
    Ground.REFUSED_FOR_ITSELF: "Each node would refuse the pod, because of its own template.",
    Ground.STUCK_AGAIN: "A replacement is stuck on the same node; it is not evicted again.",
    Ground.BRAKED: "Nodes refuse the pods of this owner, so its new pods wait.",
    Ground.CHANGED: "The pod, or its node, has changed since the plan was made.",
    Ground.REFUSED: "The server refused the eviction until the run's deadline.",
    Ground.PARTLY_EVICTED: "A unit could not be evicted as a whole, so the run ended.",
    Ground.FAILED: "A request failed.",
    Ground.DEADLINE: "The run ended before it came to this pod.",
    Ground.REPLACEMENT_PENDING: "An earlier replacement of the same workload has no node.",
    Ground.INTERRUPTED: "The run was interrupted.",
    Ground.UNREADABLE: "An object that concerns the pod cannot be read.",
}
"""Each reason in one sentence."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The reason why a pod is not moved, and the names or numbers behind it."""

    reason: Ground
    detail: str = ""
