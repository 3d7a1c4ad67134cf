"""claimctl.io/v1alpha1: ClaimReservation and DowngradePlan.

Their CRDs are made from these structs.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import field

from claimctl.wire.base import Wire
from claimctl.wire.claims import Reference
from claimctl.wire.limits import (
    IMMUTABLE,
    OPTIONAL,
    REQUIRED,
    Count,
    LabelName,
    ObjectName,
    Seconds,
    SubdomainName,
    Time,
    Uid,
    Version,
    Word,
    limit,
    map_list,
    rules,
    set_list,
)
from claimctl.wire.meta import Condition, ObjectHeader
from claimctl.wire.ordinals import Ordinal

RESERVE_ANNOTATION = "claimctl.io/reserve"
STICKY_ANNOTATION = "claimctl.io/sticky"
"""In a pod template: ``*``, or the entries of ``spec.resourceClaims`` whose claims are to be kept
for each ordinal."""
STICKY_CLAIMS_ANNOTATION = "claimctl.io/sticky-claims"
"""On a pod: the entries that the policy ``claimctl-sticky-claims`` has rewritten, each with the
template of its claim, like ``tpus=tpu-slice``."""
RELEASE_ANNOTATION = "claimctl.io/release"
"""On a ClaimReservation: the UID of the claim that ``claimctl release`` asks to release."""
REALLOCATE_ANNOTATION = "claimctl.io/reallocate"
"""On a ClaimReservation: the UID of the claim whose devices are to be given up, so that its waiting
pods get others. The controller removes it when it has done so."""
REALLOCATE_FOR_ANNOTATION = "claimctl.io/reallocate-for"
"""On a ClaimReservation, beside ``REALLOCATE_ANNOTATION``: the value of the taint for which a run
of ``claimctl reschedule`` made the request."""
DRIVER_CHECK_LABEL = "claimctl.io/driver-check"
"""On everything that ``claimctl doctor driver`` makes; the value is the name of its Job. Also the
name of the scheduling gate of its pods."""
ENDED_PODS_ANNOTATION = "claimctl.io/ended-pods"
"""On a ClaimReservation: force-deleted pods that do not run any more, as somebody states with
``claimctl release --node-is-off`` or ``--pod-has-ended`` (see ``reservation.users.statements``)."""
RELEASE_REQUESTS = (RELEASE_ANNOTATION, REALLOCATE_ANNOTATION)
"""The annotations of a ClaimReservation that ask for a release of its claim."""
FINALIZER = "claimctl.io/release"
POD_GROUP_ANNOTATION = "claimctl.io/pod-group"
"""On a workload: ``inject`` asks claimctl to add a PodGroup to its pod template."""
NO_SIGNS_SECONDS = 300.0
"""How long a vanished pod counts as running if nothing shows what its kubelet does, in seconds."""
MANAGED_LABEL = "app.kubernetes.io/managed-by"
TOMBSTONE_GROUP = "claimctl.io"
TOMBSTONE_RESOURCE = "finishedpods"
DOWNGRADE_PLAN_NAME = "claimctl"
"""The only valid name of a DowngradePlan, so that there is at most one."""

NEVER_REALLOCATED = "reallocationPolicy is Never, or reallocateTimeoutSeconds is null"
"""Why claimctl does not give a claim up (see ``ClaimReservationSpec.reallocate_after_seconds``)."""

_SUPPORTED = "self.apiGroup.contains('.') || self.apiGroup in ['apps', 'batch']"
_TEMPLATE_STAYS = (
    "has(self.resourceClaimTemplateName) == has(oldSelf.resourceClaimTemplateName)"
    " && (!has(self.resourceClaimTemplateName)"
    " || self.resourceClaimTemplateName == oldSelf.resourceClaimTemplateName)"
)


class WorkloadRef(Wire, frozen=True, kw_only=True):
    api_group: Annotated[Word, REQUIRED] = ""
    """The API group of the workload, like apps, batch or jobset.x-k8s.io."""
    kind: Annotated[Word, REQUIRED] = ""
    """The kind of the workload, like Deployment or JobSet."""
    name: Annotated[SubdomainName, REQUIRED] = ""
    """The name of the workload."""


RETAIN, DELETE = "Retain", "Delete"
"""What happens to a sticky claim when its ordinal is not wanted any more."""
AfterUse = Annotated[str, limit(enum=[RETAIN, DELETE])]


class StickyClaim(Wire, frozen=True, kw_only=True):
    """Which ordinal the claim belongs to, and what happens when that is not wanted any more."""

    ordinal: Count
    """The ordinal of the StatefulSet's pod, the completion index of the Job's, or the group index
    of the LeaderWorkerSet's."""
    member: Count | None = None
    """The index of the pod in its group: the worker index of a LeaderWorkerSet."""
    when_scaled: AfterUse = RETAIN
    """When the workload is scaled below the ordinal. Retain: as for an idle workload, by
    retentionPolicy and idleTimeoutSeconds. Delete: the claim is released and deleted."""
    when_deleted: AfterUse = DELETE
    """When the workload is deleted. Delete: the claim is released and deleted. Retain: as for an
    idle workload, and a new workload of that name goes on with the claim."""

    @property
    def whose(self) -> Ordinal:
        """Which pod of the workload it belongs to."""
        return Ordinal(self.ordinal, self.member)


class ClaimReservationSpec(Wire, frozen=True, kw_only=True):
    """The desired reservation. All names refer to the namespace of the ClaimReservation."""

    resource_claim_name: Annotated[
        SubdomainName,
        REQUIRED,
        rules((IMMUTABLE, "resourceClaimName is immutable: make another ClaimReservation")),
    ] = ""
    """The ResourceClaim to reserve. Immutable."""
    resource_claim_template_name: SubdomainName | None = None
    """The ResourceClaimTemplate from which claimctl creates the claim if it does not exist. Such a
    claim is owned by this ClaimReservation and is deleted with it. Immutable."""
    workload_ref: Annotated[
        WorkloadRef,
        REQUIRED,
        rules(
            (
                _SUPPORTED,
                "apiGroup must be that of a workload, like apps, batch or jobset.x-k8s.io",
            ),
            (IMMUTABLE, "workloadRef is immutable: make another ClaimReservation"),
        ),
    ] = WorkloadRef()
    """The workload that the claim is reserved for. Immutable."""
    retention_policy: Annotated[str, limit(enum=["WhileRunning", "Persistent", "Manual"])] = (
        "WhileRunning"
    )
    """When claimctl releases the claim. WhileRunning: when the workload has ended, or has wanted no
    pods for idleTimeoutSeconds. Persistent: when the workload has ended. Manual: when a user asks
    with 'claimctl release'."""
    idle_timeout_seconds: Seconds = 60
    """With WhileRunning: for how many seconds a workload that wants no pods (scaled to 0 or
    suspended) keeps its claim."""
    force_deleted_pod_grace_seconds: Seconds | None = None
    """For how many seconds a pod that vanished before it was done counts as a consumer: its
    containers may still use the device. Such a pod was force-deleted, or lost with its node. Absent
    or null: until signs of life of its node show that the kubelet has ended the containers."""
    reallocate_timeout_seconds: Seconds | None = 60
    """For how many seconds pods that name the claim may be unschedulable while no pod uses it. Then
    claimctl releases the claim, so that it can be allocated anew. It does so at once where the node
    of the devices is cordoned, tainted or gone. null means never, but
    'kubectl apply' drops it: write reallocationPolicy Never."""
    reallocation_policy: Annotated[str, limit(enum=["AfterTimeout", "Never"])] = "AfterTimeout"
    """Whether claimctl gives up a claim whose devices its pods cannot reach. AfterTimeout: after
    reallocateTimeoutSeconds. Never: only 'claimctl release' frees it."""

    sticky: StickyClaim | None = None
    """For the claim of one ordinal of the workload, as claimctl.io/sticky in a pod template asks
    for: which ordinal. The claim is created when a pod names it. Absent: a claim of all pods."""

    @property
    def reallocate_after_seconds(self) -> int | None:
        """For how long pods may be unschedulable before the claim is given up; None for ever. A
        policy that this version does not know counts as Never."""
        if self.reallocation_policy != "AfterTimeout":
            return None
        return self.reallocate_timeout_seconds

    @property
    def fixed_grace_seconds(self) -> float:
        """The grace where nothing is known of the kubelet: as set, else 300 s."""
        seconds = self.force_deleted_pod_grace_seconds
        return NO_SIGNS_SECONDS if seconds is None else float(seconds)


class ReferenceCounts(Wire, frozen=True, kw_only=True):
    pods: Count = 0
    """References to pods."""
    workloads: Count = 0
    """References to anything else."""
    limit: Count = 256
    """How many references the API allows."""


class ForceDeletedPod(Wire, frozen=True, kw_only=True):
    """A pod that vanished while its containers may have been running."""

    uid: Uid
    """The pod's UID."""
    name: ObjectName = ""
    """The pod's name."""
    node_name: ObjectName = ""
    """The node it was bound to."""
    boot_id: Uid = field(name="bootID", default="")
    """The node's boot ID when the pod vanished. A new boot ID of the same machine proves that the
    pod's containers ended."""
    since: Time | None = None
    """When the controller noticed that the pod was gone."""
    termination_grace_period_seconds: Seconds | None = None
    """The pod's own grace period, within which its kubelet ends it."""


class ReleaseProgress(Wire, frozen=True, kw_only=True):
    """A release in progress, so that any controller can continue it."""

    step: Word = ""
    """The step that the release has reached."""
    reason: Word = ""
    """Why the claim is released."""
    since: Time | None = None
    """When the release began."""
    claim_uid: Uid = field(name="claimUID", default="")
    """The UID of the claim that is being released."""
    resource_version: Version = ""
    """The claim's resourceVersion after the fence; empty before the fence."""


class ClaimReservationStatus(Wire, frozen=True, kw_only=True):
    """The state that the controller has observed."""

    observed_generation: Annotated[Count, OPTIONAL] = 0
    """The generation of the spec that the status belongs to."""
    dialect: Word = ""
    """The reservation API in use: native, podgroup or hold."""
    claim_uid: Uid = field(name="claimUID", default="")
    """The UID of the claim that the status belongs to."""
    reserved_for: Reference | None = None
    """The workload reference in the claim's list."""
    pod_group_name: ObjectName = ""
    """The PodGroup through which the workload's pods share the claim."""
    references: ReferenceCounts | None = None
    """How full the claim's status.reservedFor is."""
    consumers: Count = 0
    """Pods that use the claim and are not done."""
    nodes: Annotated[tuple[ObjectName, ...], set_list()] = ()
    """The nodes of the consumers."""
    allocation_time: Time | None = None
    """When the claim was allocated."""
    last_consumer_time: Time | None = None
    """When the controller saw that the last consumer was done."""
    idle_since: Time | None = None
    """Since when the workload has wanted no pods."""
    force_deleted_pods: Annotated[tuple[ForceDeletedPod, ...], map_list("uid")] = ()
    """Pods that vanished while their containers may have been running."""
    release: ReleaseProgress | None = None
    """The release in progress."""
    conditions: Annotated[tuple[Condition, ...], map_list("type", most=16)] = ()
    """Ready, Reserved, Consistent and Released."""


class ClaimReservation(ObjectHeader, frozen=True, kw_only=True):
    """ClaimReservation keeps a ResourceClaim reserved for a workload, from its first pod until the
    workload has ended, and then gives the devices back."""

    spec: Annotated[
        ClaimReservationSpec,
        REQUIRED,
        rules((_TEMPLATE_STAYS, "resourceClaimTemplateName is immutable: make another one")),
    ] = ClaimReservationSpec()
    status: ClaimReservationStatus = ClaimReservationStatus()


PREPARE, RESTORE = "Prepare", "Restore"
"""What a DowngradePlan asks for."""


class ClaimName(Wire, frozen=True, kw_only=True):
    """The name of one claim."""

    namespace: LabelName
    """The claim's namespace."""
    name: Annotated[ObjectName, limit(minLength=1)]
    """The claim's name."""


class DowngradePlanSpec(Wire, frozen=True, kw_only=True):
    """The desired downgrade. While the plan exists, claimctl adds no workload references."""

    action: Annotated[str, OPTIONAL, limit(enum=[PREPARE, RESTORE])] = PREPARE
    """Prepare replaces workload references by pod references. Restore adds the replaced workload
    references again, and ends the freeze. Absent means Prepare."""
    namespaces: Annotated[tuple[LabelName, ...], set_list()] = ()
    """The namespaces whose claims are expanded. Empty means all namespaces."""
    claim_selector: Annotated[str, limit(maxLength=4096)] = ""
    """A label selector of the claims that are expanded, like team=ml. Empty means all claims of
    the namespaces."""
    skip: Annotated[tuple[ClaimName, ...], map_list("namespace", "name")] = ()
    """Claims that stay as they are, with their workload references."""
    parallelism: Annotated[int, limit(minimum=0, maximum=64, format="int64")] | None = None
    """How many claims are written at a time. 0 or absent means 8."""
    upgrade_to: Annotated[str, limit(maxLength=16)] = ""
    """The Kubernetes version that the plan makes way for, like 1.37. Then it replaces references to
    PodGroups alone, and workloads keep their claims. Empty: the plan prepares a downgrade."""


class DowngradedClaim(Wire, frozen=True, kw_only=True):
    """The result for one claim, with what is needed to undo it."""

    namespace: Word
    """The claim's namespace."""
    name: ObjectName
    """The claim's name."""
    uid: Uid = ""
    """The claim's UID."""
    state: Word = ""
    """Pending, Expanded, Unchanged, Refused, Failed, Skipped, Restored or NotRestored."""
    reason: Word = ""
    """Why, in one word for programs."""
    message: Annotated[str, limit(maxLength=4096)] = ""
    """Why, and what would have to change, for people."""
    pods: Count = 0
    """How many pods the claim lists now, or would have to list."""
    workload_references: Annotated[tuple[Reference, ...], map_list("uid", most=256)] = ()
    """The references other than pods' that the claim lists, or that the plan replaced."""
    replaced_references: Annotated[tuple[Reference, ...], map_list("uid", most=256)] = ()
    """The workloadReferences that the plan replaced by pod references. While the state is Pending,
    the plan is about to replace them."""
    resource_version: Version = ""
    """The resourceVersion of the claim that the replacing write carries."""


class DowngradePlanStatus(Wire, frozen=True, kw_only=True):
    """The progress of the plan."""

    observed_generation: Annotated[Count, OPTIONAL] = 0
    """The generation of the spec that the status belongs to."""
    phase: Word = ""
    """Frozen, Expanding, Prepared, Blocked, Failed, Restoring, Restored or PartlyRestored."""
    total: Count = 0
    """How many claims the plan concerns."""
    done: Count = 0
    """How many of them are finished."""
    claims: Annotated[tuple[DowngradedClaim, ...], map_list("namespace", "name")] = ()
    """The result for each claim."""
    conditions: Annotated[tuple[Condition, ...], map_list("type", most=16)] = ()
    """The plan's conditions."""


class DowngradePlan(ObjectHeader, frozen=True, kw_only=True):
    """DowngradePlan freezes reservations and replaces workload references by pod references, so
    that an administrator can switch the cluster's reservation feature off while pods run."""

    spec: DowngradePlanSpec = DowngradePlanSpec()
    status: DowngradePlanStatus = DowngradePlanStatus()
