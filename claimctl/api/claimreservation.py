"""ClaimReservation: one claim reserved for one workload."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from claimctl.api.common import (
    IMMUTABLE,
    MAX_ITEMS,
    Condition,
    Count,
    LabelName,
    Model,
    ObjectName,
    Reference,
    Seconds,
    SubdomainName,
    Uid,
    Word,
    map_list,
    rules,
    set_list,
)

_SUPPORTED = (
    "(self.apiGroup == 'apps' && self.kind in ['Deployment', 'StatefulSet'])"
    " || (self.apiGroup == 'batch' && self.kind == 'Job')"
)
_TEMPLATE_STAYS = (
    "has(self.resourceClaimTemplateName) == has(oldSelf.resourceClaimTemplateName)"
    " && (!has(self.resourceClaimTemplateName)"
    " || self.resourceClaimTemplateName == oldSelf.resourceClaimTemplateName)"
)


class WorkloadRef(Model):
    """The workload that the claim is reserved for, in the ClaimReservation's namespace."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (
                _SUPPORTED,
                "must be a Deployment or StatefulSet of apiGroup apps, or a Job of apiGroup batch",
            ),
            (IMMUTABLE, "workloadRef is immutable: make another ClaimReservation"),
        )
    )

    api_group: Annotated[str, Field(max_length=63)]
    """The API group of the workload: apps or batch."""
    kind: Annotated[str, Field(max_length=63)]
    """The kind of the workload: Deployment, StatefulSet or Job."""
    name: SubdomainName
    """The name of the workload."""


class ClaimReservationSpec(Model):
    """The desired reservation. All names refer to the namespace of the ClaimReservation."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            (_TEMPLATE_STAYS, "resourceClaimTemplateName is immutable: make another one")
        )
    )

    resource_claim_name: Annotated[
        SubdomainName,
        Field(
            json_schema_extra=rules(
                (IMMUTABLE, "resourceClaimName is immutable: make another ClaimReservation")
            )
        ),
    ]
    """The ResourceClaim to reserve. Immutable."""
    resource_claim_template_name: SubdomainName | None = None
    """The ResourceClaimTemplate from which claimctl creates the claim if it does not exist. Such a
    claim is owned by this ClaimReservation and is deleted with it. Immutable."""
    workload_ref: WorkloadRef
    """The workload that the claim is reserved for. Immutable."""
    retention_policy: Literal["WhileRunning", "Persistent", "Manual"] = "WhileRunning"
    """When claimctl releases the claim. WhileRunning: when the workload has ended, or has wanted no
    pods for idleTimeoutSeconds. Persistent: when the workload has ended. Manual: when a user asks
    with 'claimctl release'."""
    idle_timeout_seconds: Seconds = 60
    """With WhileRunning: for how many seconds a workload that wants no pods (scaled to 0 or
    suspended) keeps its claim."""
    force_deleted_pod_grace_seconds: Seconds = 300
    """For how many seconds a pod that vanished before it was done counts as a consumer: its
    containers may still use the device. Such a pod was force-deleted, or lost with its node."""
    reallocate_timeout_seconds: Seconds | None = 60
    """For how many seconds pods that name the claim may be unschedulable while no pod uses it. Then
    claimctl releases the claim, so that it can be allocated anew. null means never.
    (To change a number to null on an existing object, use 'kubectl replace' or server-side apply:
    in a merge patch, null removes the field, and the default comes back.)"""


class ReferenceCounts(Model):
    """How full the claim's status.reservedFor is."""

    pods: Count = 0
    """References to pods."""
    workloads: Count = 0
    """References to anything else."""
    limit: Count = 256
    """How many references the API allows."""


class ForceDeletedPod(Model):
    """A pod that vanished while its containers may have been running."""

    uid: Uid
    """The pod's UID."""
    name: ObjectName = ""
    """The pod's name."""
    node_name: ObjectName = ""
    """The node it was bound to."""
    boot_id: Annotated[str, Field(alias="bootID", max_length=128)] = ""
    """The node's boot ID when the pod vanished. A new boot ID of the same machine proves that the
    pod's containers ended."""
    since: datetime | None = None
    """When the controller noticed that the pod was gone."""


class ReleaseProgress(Model):
    """A release in progress, so that any controller can continue it."""

    step: Word = ""
    """The step that the release has reached."""
    reason: Word = ""
    """Why the claim is released."""
    since: datetime | None = None
    """When the release began."""
    claim_uid: Annotated[Uid, Field(alias="claimUID")] = ""
    """The UID of the claim that is being released."""
    resource_version: Annotated[str, Field(max_length=64)] = ""
    """The claim's resourceVersion after the fence; empty before the fence."""


class ClaimReservationStatus(Model):
    """The state that the controller has observed."""

    observed_generation: Count | None = None
    """The generation of the spec that the status belongs to."""
    dialect: Word = ""
    """The reservation API in use: native, podgroup or hold."""
    claim_uid: Annotated[Uid, Field(alias="claimUID")] = ""
    """The UID of the claim that the status belongs to."""
    reserved_for: Reference | None = None
    """The workload reference in the claim's list."""
    pod_group_name: Annotated[str, Field(max_length=253)] = ""
    """The PodGroup through which the workload's pods share the claim."""
    references: ReferenceCounts | None = None
    """How full the claim's status.reservedFor is."""
    consumers: Count = 0
    """Pods that use the claim and are not done."""
    nodes: Annotated[
        tuple[ObjectName, ...], Field(max_length=MAX_ITEMS, json_schema_extra=set_list())
    ] = ()
    """The nodes of the consumers."""
    allocation_time: datetime | None = None
    """When the claim was allocated."""
    last_consumer_time: datetime | None = None
    """When the controller saw that the last consumer was done."""
    idle_since: datetime | None = None
    """Since when the workload has wanted no pods."""
    force_deleted_pods: Annotated[
        tuple[ForceDeletedPod, ...], Field(max_length=MAX_ITEMS, json_schema_extra=map_list("uid"))
    ] = ()
    """Pods that vanished while their containers may have been running."""
    release: ReleaseProgress | None = None
    """The release in progress."""
    conditions: Annotated[
        tuple[Condition, ...], Field(max_length=16, json_schema_extra=map_list("type"))
    ] = ()
    """Ready, Reserved, Consistent and Released."""


class ObjectMeta(Model):
    """Standard metadata; the API server knows its schema."""

    model_config = ConfigDict(extra="allow")

    name: SubdomainName
    namespace: LabelName | None = None


class ClaimReservation(Model):
    """ClaimReservation keeps a ResourceClaim reserved for a workload, from its first pod until the
    workload has ended, and then gives the devices back."""

    api_version: Literal["claimctl.io/v1alpha1"] = "claimctl.io/v1alpha1"
    kind: Literal["ClaimReservation"] = "ClaimReservation"
    metadata: ObjectMeta
    spec: ClaimReservationSpec
    status: ClaimReservationStatus | None = None
