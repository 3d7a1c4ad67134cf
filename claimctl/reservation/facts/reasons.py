"""The enums of conditions, reasons, release steps and retention policies."""

from __future__ import annotations

from enum import StrEnum


class RetentionPolicy(StrEnum):
    WHILE_RUNNING = "WhileRunning"
    PERSISTENT = "Persistent"
    MANUAL = "Manual"


class ConditionType(StrEnum):
    READY = "Ready"
    RESERVED = "Reserved"
    CONSISTENT = "Consistent"
    RELEASED = "Released"


class ReleaseStep(StrEnum):
    """The step of a release, recorded in the reservation's status."""

    INTENT = "Intent"
    FENCED = "Fenced"


class Reason(StrEnum):
    """Every reason that a condition or an event of claimctl can have."""

    # all is well
    RESERVED = "Reserved"
    HELD = "Held"
    CONSISTENT = "Consistent"
    READY = "Ready"
    # why a claim is released
    WORKLOAD_ENDED = "WorkloadEnded"
    ORDINAL_ENDED = "OrdinalEnded"
    IDLE = "Idle"
    REALLOCATED = "Reallocated"
    UNUSED_TOO_LONG = "UnusedTooLong"
    WITHDRAWN = "Withdrawn"
    RELEASE_REQUESTED = "ReleaseRequested"
    CLAIM_DELETED = "ClaimDeleted"
    WORKLOAD_RECREATED = "WorkloadRecreated"
    # why a claim is not reserved (yet)
    CLAIM_NOT_FOUND = "ClaimNotFound"
    NOT_ALLOCATED = "NotAllocated"
    PENDING = "Pending"
    WORKLOAD_NOT_FOUND = "WorkloadNotFound"
    WORKLOAD_KIND_UNSUPPORTED = "WorkloadKindUnsupported"
    WORKLOAD_STATE_UNKNOWN = "WorkloadStateUnknown"
    CLAIM_NOT_NAMED_BY_POD_TEMPLATE = "ClaimNotNamedByPodTemplate"
    CLAIM_NOT_NAMED_BY_POD = "ClaimNotNamedByPod"
    CLAIM_NOT_CREATED_FOR_WORKLOAD = "ClaimNotCreatedForWorkload"
    ALREADY_RESERVED_FOR = "AlreadyReservedFor"
    STICKY_NAME_TAKEN = "StickyNameTaken"
    TEMPLATE_NOT_FOUND = "TemplateNotFound"
    TEMPLATE_INVALID = "TemplateInvalid"
    UNCHANGEABLE = "ClaimCannotBeChanged"
    HOLD_YIELDED = "HoldYielded"
    DEVICE_TAINTED = "DeviceTainted"
    DEVICE_GONE = "DeviceGone"
    # why no hold is in the list: it comes while the last pod leaves, or after the plan
    HELD_BETWEEN_PODS = "HeldBetweenPods"
    DRIVER_REFUSES_HOLD = "DriverRefusesHold"
    FROZEN = "FrozenForDowngrade"
    # why pods are listed one by one although the cluster serves PodGroups
    NO_SCHEDULING_GROUP = "PodTemplateWithoutSchedulingGroup"
    POD_TEMPLATE_IMMUTABLE = "PodTemplateImmutable"
    TEMPLATE_INJECTION_OFF = "TemplateInjectionNotAllowed"
    CLAIM_NOT_IN_POD_GROUP = "ClaimNotInPodGroup"
    TOO_MANY_CLAIMS_FOR_POD_GROUP = "TooManyClaimsForPodGroup"
    POD_GROUP_PENDING = "PodGroupPending"
    # why a release waits
    WORKLOAD_WANTS_PODS = "WorkloadWantsPods"
    PODS_PINNED = "PodsPinned"
    IDLE_TIMEOUT = "IdleTimeoutNotReached"
    RETENTION = "RetentionPolicy"
    CHILDREN_REMAIN = "ChildrenRemain"
    CONSUMERS_LEFT = "ConsumersLeft"
    FORCE_DELETED_PODS = "ForceDeletedPods"
    HISTORY_UNKNOWN = "HistoryUnknown"
    OTHER_HOLDERS = "OtherHolders"
    UNKNOWN_REFERENCES = "UnknownReferences"
    PODS_MAY_BE_BOUND = "PodsMayBeBound"
    PODS_LISTED = "PodsListedByScheduler"
    SETTLING = "Settling"
    RELEASING = "Releasing"
    FINISHED_PODS_LEFT = "FinishedPodsLeft"
    # why claimctl decides nothing
    UNREADABLE = "UnreadableObject"
    # why an orphan is not freed
    CANNOT_TELL = "CannotTell"
    FOREIGN_FINALIZER = "ForeignFinalizer"
    # what is wrong with the list, or with the cluster
    MORE_PODS_THAN_PLACES = "MorePodsThanPlaces"
    SCHEDULER_IGNORES_GROUPS = "SchedulerIgnoresPodGroups"
    KUBELETS_REFUSE = "KubeletsRefusePods"
    OLD_KUBELETS = "OldKubelets"
    NEARLY_FULL = "ReservedForNearlyFull"
    FULL = "ReservedForFull"
    STRANDED_POD = "StrandedPod"
    FIGHTING_WRITER = "FightingWriter"
    STATUS_SHORTENED = "StatusShortened"
    FORBIDDEN = "Forbidden"
    INVALID = "Invalid"
    INVALID_ANNOTATION = "InvalidAnnotation"
    STICKY_NOT_IN_FORCE = "StickyNotInForce"
    LIMIT_EXCEEDED = "LimitExceeded"
